ftsh --crno backup.ftsh
