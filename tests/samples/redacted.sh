cat > nightly.ftsh <<'END'
args customer

PGPASSWORD=$PGPASSWORD pg_dump "$customer" > dump.sql
gzip -f dump.sql

# The token is in the command, and so in the message.
curl -H "Authorization: Bearer $TOKEN" https://api.example.org/
END
program pg_dump ''
program curl 'exit 22'
export PGPASSWORD=hunter2 TOKEN=t0ps3cret
ftsh -l 5 --redact PGPASSWORD --redact TOKEN nightly.ftsh shop
