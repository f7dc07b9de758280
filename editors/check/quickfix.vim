" Writes to $ERRORS the valid entries of the quickfix list after `:make` in $SCRIPT.
set nocompatible nomore noswapfile encoding=utf-8
exe 'set runtimepath^=' . fnameescape($FTSH_VIM)
filetype plugin on
exe 'silent edit ' . fnameescape($SCRIPT)
setlocal filetype=ftsh
silent make!
let s:valid = filter(getqflist(), 'v:val.valid')
call writefile(map(s:valid, 'printf("%d:%d %s", v:val.lnum, v:val.col, v:val.text)'), $ERRORS)
qa!
