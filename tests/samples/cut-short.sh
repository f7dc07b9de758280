# A recorded run that was killed while its command hung.
cat > nightly.ftsh <<'END'
#!/usr/bin/ftsh --lock

dump inventory > inventory.sql
gzip -f inventory.sql

# Each host has ten minutes.
for host in host7 host8
    try for 10 minutes backoff none
        rsync -a $host:/srv /backup/$host
    end
end
END
program dump 'echo "create table t;"'
program rsync 'if mkdir tried 2> /dev/null; then exit 12; fi; : > running; exec sleep 100'
ftsh -l 0 --journal nightly.journal nightly.ftsh > out 2>&1 &
until [ -e running ]; do sleep 0.01; done
kill -9 $(cat /proc/$!/task/$!/children) $!
wait
# A killed process holds its locks until the kernel has ended it.
until ftsh --status nightly.journal | grep -q 'cut short'; do sleep 0.01; done
echo '$ ftsh --status nightly.journal'
ftsh --status nightly.journal
