printf '#!/usr/bin/ftsh\nfunction copy\n    rsync -a /srv nas:\nend\ntry 1 time\n    copy\nend\n' > backup.ftsh
program rsync 'exit 12'
ftsh backup.ftsh 2>&1 | head -n 1
