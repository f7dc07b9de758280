mkdir run && cd run
cat > ledger.ftsh <<'END'
#!/usr/bin/ftsh
# Books the entries of a day.
args day

function book
    sort -u entries > part
    echo "$day done" >> ledger
end

mkdir -p data
book
cp part copy
mv part data
END
seq 3 > entries
PATH=$PATH:$PWD/../bin ftsh --storm ledger.ftsh monday
