printf '#!/usr/bin/ftsh\ntry for 1 day backoff fixed from 1 hour\n    rsync -a /srv nas:\nend\n' > backup.ftsh
program rsync 'exit 12'
mkfifo log
ftsh backup.ftsh 2> log &
sed -n '/until attempt/{p;q}' log
kill $!
