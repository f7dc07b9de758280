# numbers vary
# The third host does not answer.
cat > bin/ssh <<'END'
#!/bin/sh
for word; do host=$line; line=$word; done
[ "$host" = n3 ] && { echo "ssh: connect to host n3 port 22: Connection refused" >&2; exit 255; }
unset FTSH_SCOPE FTSH_DEADLINE FTSH_KILL_TIMEOUT FTSH_ON
cd /
exec sh -c "$line"
END
chmod +x bin/ssh
printf 'forall n in 1 .to. 12 on ssh "n1 n2 n3"\n    true\nend\n' > many.ftsh
ftsh --summary -l 0 many.ftsh 2>&1 | sed -n '/machines/,/n2/p'
