# The script is that of the page, with short delays.
sed 's/1 second/20 ms/' page.ftsh > sync.ftsh
program rsync 'echo "rsync: [Receiver] failed to connect to data.example.org: Connection refused (111)" >&2; exit 10'
ftsh --cron sync.ftsh
