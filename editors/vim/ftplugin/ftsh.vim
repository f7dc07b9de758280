" Scripts of the fault-tolerant shell.
if exists('b:did_ftplugin')
  finish
endif
let b:did_ftplugin = 1

setlocal commentstring=#\ %s comments=:# expandtab shiftwidth=4 softtabstop=4
setlocal errorformat=%E%trror[%*[a-z-]]:\ %m,%W%tarning[%*[a-z-]]:\ %m,%Z\ %#-->\ %f:%l:%c,%-G%.%#
setlocal makeprg=ftsh\ -n\ %:S
let b:undo_ftplugin = 'setlocal commentstring< comments< expandtab< shiftwidth< softtabstop< errorformat< makeprg<'
