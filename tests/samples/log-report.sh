cat > backup.ftsh <<'END'
function copy
    try 5 times backoff none
        rsync -a /srv "$1:"
    end
end

forall target in nas
    copy $target
end
END
program rsync 'exit 12'
ftsh -l 5 backup.ftsh
