cat > mirror.ftsh <<'END'
cd part

function fetch
    url=$1
    try 5 times backoff fixed from 10 ms
        # The index names the files.
        wget -q "$url/index"
    end
end

function check
    gzip -t index
end

try 2 times backoff fixed from 10 ms
    fetch http://a
    check
end
END
mkdir part
program wget 'n=$(($(cat n 2> /dev/null) + 1)); echo $n > n; case $n in 5|10) ;; *) exit 4;; esac'
program gzip 'exit 1'
ftsh --summary -l 0 mirror.ftsh 2>&1 | sed -n '/summary/,$p'
