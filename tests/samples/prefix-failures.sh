program rsync 'exit 12'
program ssh 'exit 255'
exec 2>&1
ftsh -l 5 try 5 times backoff none -- rsync -a /srv nas:
ftsh -l 5 forall host in host2 try 3 times backoff none -- ssh {} uptime
ftsh try for 10 minutse -- rsync -a /srv nas:
