printf 'cd /srv\n\n(cd backup; make)\n' > backup.ftsh
ftsh -n backup.ftsh 2>&1 | head -n 2
