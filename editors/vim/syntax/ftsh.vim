" Scripts of the fault-tolerant shell. Each command is a region from its first word to its end, so that words mean
" something where they do and nowhere else.
if exists('b:current_syntax')
  finish
endif

syn case match
syn sync fromstart

" generated: words
let s:operators = 'to\|step\|or\|and\|eq\|ne\|eql\|neql\|lt\|le\|gt\|ge\|contains\|matches\|add\|sub\|mul\|div\|mod\|pow\|not\|exists\|isr\|isw\|isx\|isfile\|isdir\|islink\|ispipe\|issock\|isblock\|ischar'
let s:functions = 'lines\|split\|json\|length\|lower\|upper\|trim\|replace\|match\|substr\|starts\|ends\|join\|count\|format\|round\|min\|max\|abs\|newer\|basename\|dirname\|suffix\|stem\|now\|files\|time\|seconds\|random'
let s:builtins = 'cd\|pwd\|umask\|echo\|read\|local\|export\|unset\|source\|exec\|success\|failure\|giveup\|defer\|exit\|sleep'
let s:try_words = 'for\|or\|every\|each\|usual\|stalled\|memory\|while\|atomic\|in\|atomic\|same\|input\|signal\|backoff\|no\|leftovers\|through\|from\|to\|by\|jitter\|times\|time\|ethernet\|exponential\|full\|equal\|decorrelated\|normal\|proportional\|slotted\|windowed\|fixed\|none\|ms\|millisecond\|milliseconds\|s\|sec\|second\|seconds\|m\|min\|minute\|minutes\|h\|hour\|hours\|d\|day\|days\|B\|kB\|KB\|MB\|GB\|TB\|KiB\|MiB\|GiB\|TiB'
let s:forany_clauses = 'in\s\+order\|hedge\s\+after\s\+usual\s\+or\|hedge\s\+after\|atomic\s\+in\|at\s\+most'
let s:forall_clauses = 'at\s\+most\|at\s\+least\|keep\s\+going\|finish\s\+running\|output\s\+grouped\|output\s\+tagged\|retry\s\+lost\|once\s\+in\|atomic\s\+in\|while\s\+free\|while\s\+load\|takes\|gives\|on\s\+[A-Za-z][A-Za-z0-9._-]*'
let s:channel_words = 'at\|most\|rate\|per\|budget\|breaker\|failures\|failure\|ms\|millisecond\|milliseconds\|s\|sec\|second\|seconds\|m\|min\|minute\|minutes\|h\|hour\|hours\|d\|day\|days'
" end of generated

" What words are made of.
syn match ftshEscape contained "\\." extend
syn region ftshString contained start=+'+ skip=+\\.+ end=+'+ extend
syn region ftshString contained start=+"+ skip=+\\.+ end=+"+ extend contains=ftshVariable,ftshStringEscape
syn match ftshVariable contained "\$\h\w*" extend
syn match ftshVariable contained "\$[0-9#*@$]" extend
syn match ftshVariable contained "\${[^}"]*}\=" extend
" A call in a word: `${f("x")}`.
syn match ftshVariable contained +\${[ \t]*[^ \t"'$(){}:]\+[ \t]*(\%("\%(\\.\|[^"\\]\)*"\|'\%(\\.\|[^'\\]\)*'\|[^}"']\)*}\=+ extend
syn match ftshVariable contained "\$([^)"]*)\=" extend
syn match ftshStringEscape contained "\\." extend
" A sign inside of a word means nothing.
syn match ftshPlain contained "[^ \t\\'\"$;|<>&()]\@1<=#"
syn match ftshComment "#.*$"
syn match ftshCommentInside contained "\%(^\|[ \t()|<>]\)\@1<=#.*$" extend
syn match ftshPipe "|&\="

syn match ftshRedirection contained "\d\=\%(<<<\|->>&\|->>\|->&\|->\|-<\|>>&\|&>>\|>>\|>&\|&>\|<&\|<\|>\)"

" Here-documents: the rest of their line, then lines up to the word.
syn region ftshDocument contained matchgroup=ftshRedirection start=+<<\s*\z([^ \t;|<>'"\\-][^ \t;|<>'"]*\)+ matchgroup=ftshDocumentEnd end=+^\z1\r\=$+ extend contains=ftshDocumentHead,ftshVariable
syn region ftshDocument contained matchgroup=ftshRedirection start=+<<\s*'\z([^']*\)'+ matchgroup=ftshDocumentEnd end=+^\z1\r\=$+ extend contains=ftshDocumentHead
syn region ftshDocument contained matchgroup=ftshRedirection start=+<<\s*"\z([^"]*\)"+ matchgroup=ftshDocumentEnd end=+^\z1\r\=$+ extend contains=ftshDocumentHead
syn region ftshDocument contained matchgroup=ftshRedirection start=+<<-\s*\z([^ \t;|<>'"\\-][^ \t;|<>'"]*\)+ matchgroup=ftshDocumentEnd end=+^\s*\z1\r\=$+ extend contains=ftshDocumentHead,ftshVariable
syn region ftshDocument contained matchgroup=ftshRedirection start=+<<-\s*'\z([^']*\)'+ matchgroup=ftshDocumentEnd end=+^\s*\z1\r\=$+ extend contains=ftshDocumentHead
syn region ftshDocument contained matchgroup=ftshRedirection start=+<<-\s*"\z([^"]*\)"+ matchgroup=ftshDocumentEnd end=+^\s*\z1\r\=$+ extend contains=ftshDocumentHead
syn region ftshDocumentHead contained oneline start="\%(<<-\=\s*['"]\=[^ \t;|<>'"]\+['"]\=\)\@40<=." end="$" contains=@ftshParts,ftshPipe,@ftshHeads

syn cluster ftshParts contains=ftshEscape,ftshString,ftshVariable,ftshPlain,ftshCommentInside,ftshRedirection,ftshDocument

" Expressions.
exe 'syn match ftshOperator contained "\%([ \t(=]\|^\)\@1<=\.\%(' . s:operators . '\)\.\ze\%([ \t()]\|$\)"'
syn match ftshSucceeds contained "\.\%(succeeds\|yes\|output\)\.\ze\%([ \t()]\|$\)" nextgroup=ftshCommandParentheses skipwhite
" Symbols, which have blanks around them. Behind another operator, a symbol is a value.
syn match ftshCalculator contained "\%([^ \t.(,=!<>&|*/%+-][ \t]\)\@5<=[-+*/%]\ze\%([ \t]\|$\)"
syn match ftshComparator contained "\%([^ \t.(,=!<>&|*/%+-][ \t]\)\@5<=\%(&&\|||\|[=!]=\|[<>]=\=\)\ze\%([ \t]\|$\)"
" Before an operator between two values, `!` is a value.
syn match ftshComparator contained "[ \t(]\@1<=!\ze[ \t(]\%([ \t]*\%($\|[;#),]\|\.\%(\%(not\|exists\|is\a\+\|succeeds\|yes\|output\)\.\)\@!\a\+\.\)\)\@!"
" In lists they are operators between numbers, variables, calls and parentheses only.
syn match ftshCounting contained "\%(\%()\|\%(^\|[ \t(]\)\%($\w\+\|${[^} \t]*}\|[-+]\=\.\=\d[0-9.]*\)\)[ \t]\+\)\@60<=[-+*/%]\ze[ \t]\+\%([$(]\|[-+]\=\.\=\d\|\w\+(\)"
syn cluster ftshSymbols contains=ftshCalculator,ftshComparator
" Parentheses, which may hold what else ends commands.
syn region ftshParentheses contained start="(" end=")" extend contains=ftshParentheses,ftshString,ftshVariable,ftshEscape,ftshRedirection,ftshPlain,ftshOperator,ftshSucceeds,ftshFunction,@ftshSymbols
" Commands in expressions have no symbols.
syn region ftshCommandParentheses contained start="(" end=")" extend contains=ftshCommandParentheses,ftshString,ftshVariable,ftshEscape,ftshRedirection,ftshPlain

exe 'syn match ftshFunction contained "\<\%(' . s:functions . '\)\ze("'
syn cluster ftshExpression contains=@ftshParts,ftshOperator,ftshSucceeds,ftshParentheses,ftshFunction

" Words of heads: whole ones.
exe 'syn match ftshTryClause contained "\%([ \t]\|^\)\@1<=\%(' . s:try_words . '\)\ze\%([ \t;|<>&]\|$\)"'
syn match ftshTryName contained "\%([ \t]through\s\+\)\@40<=\h\w*"
syn match ftshIn contained "\%([ \t]\|^\)\@1<=\%(in\|from\s\+input\%(\s\+by\)\?\)\ze\%([ \t;]\|$\)"
exe 'syn match ftshAnyClause contained "\%([ \t]\|^\)\@1<=\%(' . s:forany_clauses . '\)\ze\%([ \t;|]\|$\)"'
exe 'syn match ftshAllClause contained "\%([ \t]\|^\)\@1<=\%(\<in[ \t]\+\)\@20<!\%(' . s:forall_clauses . '\)\ze\%([ \t;|]\|$\)"'
exe 'syn match ftshRule contained "\%([ \t]\|^\)\@1<=\%(' . s:channel_words . '\)\ze\%([ \t;|]\|$\)"'
syn match ftshListWord contained "\%(list\s\+\h\w*\s\+\)\@40<=in\ze\%([ \t;]\|$\)"
syn match ftshListWord contained "\%(list\s\+\)\@40<=add\ze\s\+\%(in\%([ \t;]\|$\)\)\@!"
syn match ftshRuleName contained "\%(channel\s\+\)\@40<=\h\w*"

" Where commands end. What may go on behind these ends says `extend`.
let s:ends = 'skip="\\$" end="\ze[;|]" end="$" keepend'
" A command behind `--`.
let s:dashes = 'matchgroup=ftshIn end="\%(\<by[ \t]\)\@3<![ \t]\@1<=--\ze[ \t]\+[^ \t;#]" matchgroup=NONE '
" A condition goes on behind `||`.
let s:condition_ends = 'skip="\\$\|||" end="\ze[;|]" end="$" keepend'

" Commands, from the least special to the most: what is defined later wins.
exe 'syn region ftshCommand start="[^ \t;|#\\]" ' . s:ends . ' contains=@ftshParts'
exe 'syn region ftshAssignment start="\h\w*=" ' . s:ends . ' contains=@ftshExpression,ftshCalculator'
exe 'syn match ftshBuiltin "\%(' . s:builtins . '\)\ze\%([ \t;|<>&]\|$\)" nextgroup=ftshCommandRest'
syn match ftshBuiltin "\%(local\|export\)\ze[ \t]\+\h\w*=" nextgroup=ftshDeclared
exe 'syn region ftshDeclared contained start="[ \t]" ' . s:ends . ' contains=@ftshExpression,ftshCalculator'
exe 'syn region ftshCommandRest contained start="[^;|]" ' . s:ends . ' contains=@ftshParts'
syn match ftshAlone "\%(break\|continue\|finally\)\ze\s*\%($\|[;#\r]\)"
exe 'syn region ftshTry matchgroup=ftshKeyword start="\%(try\ze\%([ \t\r;|<>&]\|$\)\|limit\ze[ \t]\+[\x22\x27]\?\%(\$\|[0-9.]\+[ \t]*\a\)\)" matchgroup=NONE ' . s:dashes . s:condition_ends . ' contains=@ftshExpression,@ftshSymbols,ftshTryClause,ftshTryName'
exe 'syn region ftshFor matchgroup=ftshKeyword start="for\ze\%([ \t]\|$\)" matchgroup=NONE ' . s:dashes . s:ends . ' contains=@ftshExpression,ftshCounting,ftshIn'
exe 'syn region ftshForAny matchgroup=ftshKeyword start="forany\ze\%([ \t]\|$\)" matchgroup=NONE ' . s:dashes . s:ends . ' contains=@ftshExpression,ftshCounting,ftshIn,ftshAnyClause'
exe 'syn region ftshForAll matchgroup=ftshKeyword start="forall\ze\%([ \t]\|$\)" matchgroup=NONE ' . s:dashes . s:ends . ' contains=@ftshExpression,ftshCounting,ftshIn,ftshAllClause'
exe 'syn region ftshCondition matchgroup=ftshKeyword start="\%(if\|while\|return\|shift\|else\s\+if\|else\)\ze\%([ \t\r;|<>&]\|$\)" matchgroup=NONE ' . s:condition_ends . ' contains=@ftshExpression,@ftshSymbols'
exe 'syn region ftshCondition matchgroup=ftshKeyword start="case\ze\%([ \t\r;|<>&]\|$\)" matchgroup=NONE ' . s:ends . ' contains=@ftshExpression'
exe 'syn region ftshCondition matchgroup=ftshKeyword start="in\%([ \t]\+[^ \t;|<>&#]\)\@=" matchgroup=NONE ' . s:dashes . s:ends . ' contains=@ftshExpression'
exe 'syn region ftshPlainHead matchgroup=ftshKeyword start="\%(catch\|end\|when\|function\)\ze\%([ \t\r;|<>&]\|$\)" matchgroup=NONE ' . s:ends . ' contains=@ftshParts'
exe 'syn region ftshChannel matchgroup=ftshKeyword start="channel\ze\%([ \t]\|$\)" matchgroup=NONE ' . s:ends . ' contains=@ftshParts,ftshRule,ftshRuleName'
" Options of a script may have a `|` before a dash.
exe 'syn region ftshArgs matchgroup=ftshKeyword start=@args\ze\s\+[A-Za-z_"''-]@ matchgroup=NONE skip="\\$\||-" end="\ze[;|]" end="$" keepend contains=@ftshParts'
exe 'syn region ftshList matchgroup=ftshKeyword start="list\ze\s\+\%(add\s\+\h\|\h\w*\s\+in\%([ \t\r;]\|$\)\)" matchgroup=NONE ' . s:ends . ' contains=@ftshExpression,ftshCounting,ftshListWord'
exe 'syn region ftshUse matchgroup=ftshKeyword start="use\ze\s\+[^ \t;|<>&]\+\s*\%([;#]\|$\)" matchgroup=NONE ' . s:ends . ' contains=@ftshParts'
" Words before a command.
syn match ftshModifier "\%(keep\|with\)\ze[ \t]\+[^ \t;|<>&#]"
syn match ftshModifier "accept\ze[ \t]\+\d[0-9,]*\%([ \t;|<>&]\|$\)" nextgroup=ftshStatuses skipwhite
syn match ftshStatuses contained "\d[0-9,]*"
syn cluster ftshHeads contains=ftshModifier,ftshCommand,ftshAssignment,ftshBuiltin,ftshAlone,ftshTry,ftshFor,ftshForAny,ftshForAll,ftshCondition,ftshPlainHead,ftshChannel,ftshList,ftshArgs,ftshUse

hi def link ftshKeyword Keyword
hi def link ftshAlone Keyword
hi def link ftshModifier Keyword
hi def link ftshStatuses Type
hi def link ftshTryClause Type
hi def link ftshIn Type
hi def link ftshAnyClause Type
hi def link ftshAllClause Type
hi def link ftshRule Type
hi def link ftshListWord Type
hi def link ftshOperator Operator
hi def link ftshSucceeds Operator
hi def link ftshCalculator Operator
hi def link ftshCounting Operator
hi def link ftshComparator Operator
hi def link ftshString String
hi def link ftshStringEscape String
hi def link ftshDocument String
hi def link ftshDocumentEnd String
hi def link ftshVariable Identifier
hi def link ftshComment Comment
hi def link ftshCommentInside Comment
hi def link ftshBuiltin Function
hi def link ftshFunction Function
hi def link ftshRedirection Special
hi def link ftshPipe Special

let b:current_syntax = 'ftsh'
