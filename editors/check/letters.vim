" Writes to $LETTERS, of each script named in $SCRIPTS, its path and a letter for each of its bytes.
set nocompatible nomore noswapfile encoding=utf-8 fileformats=unix
exe 'set runtimepath^=' . fnameescape($FTSH_VIM)
filetype plugin on
syntax on
let s:letters = {'ftshKeyword': 'K', 'ftshAlone': 'K', 'ftshTryClause': 'L', 'ftshIn': 'L', 'ftshAnyClause': 'L',
  \ 'ftshAllClause': 'L', 'ftshRule': 'L', 'ftshListWord': 'L', 'ftshModifier': 'K', 'ftshStatuses': 'L', 'ftshOperator': 'O', 'ftshSucceeds': 'O', 'ftshCalculator': 'O', 'ftshCounting': 'O', 'ftshComparator': 'O', 'ftshString': 'S', 'ftshStringEscape': 'S', 'ftshDocument': 'S',
  \ 'ftshDocumentEnd': 'S', 'ftshVariable': 'V', 'ftshComment': 'C', 'ftshCommentInside': 'C'}
let s:out = []
for s:path in readfile($SCRIPTS)
  exe 'silent edit ++enc=utf-8 ++ff=unix ' . fnameescape(s:path)
  setlocal filetype=ftsh synmaxcol=0
  syntax sync fromstart
  let s:text = ''
  for s:line in range(1, line('$'))
    for s:column in range(1, col([s:line, '$']) - 1)
      let s:text .= get(s:letters, synIDattr(synID(s:line, s:column, 1), 'name'), '.')
    endfor
    let s:text .= s:line < line('$') || &endofline ? ' ' : ''
  endfor
  call extend(s:out, [s:path, s:text])
endfor
call writefile(s:out, $LETTERS)
qall!
