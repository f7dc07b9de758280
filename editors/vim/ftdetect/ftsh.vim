autocmd BufNewFile,BufRead *.ftsh setfiletype ftsh
autocmd BufNewFile,BufRead * if getline(1) =~# '^#!.*\<ftsh\>' | setfiletype ftsh | endif
