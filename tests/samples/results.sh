printf 'forall host in nas1 nas2\n    test $host = nas1\nend\n' > hosts.ftsh
ftsh -l 0 --results hosts.tsv hosts.ftsh
sed -n '1p; /nas2$/p' hosts.tsv
