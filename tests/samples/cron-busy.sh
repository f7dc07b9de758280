printf '#!/usr/bin/ftsh\ntouch running; sleep 100\n' > sync.ftsh
mkfifo fifo
export FTSH_LOCK_DIR=$PWD/locks
ftsh --lock=sync sync.ftsh > out 2>&1 &
until [ -e running ]; do sleep 0.01; done
ftsh --lock=sync sync.ftsh 2>&1 | sed "s:$PWD/sync.ftsh:/srv/jobs/sync.ftsh:; s:$PWD/:/run/lock/:"
kill $!
