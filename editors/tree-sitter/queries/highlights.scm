; No node is told twice, since editors don't agree on which wins.
(comment) @comment

["try" "limit" "catch" "finally" "if" "case" "when" "else" "end" "forany" "forall" "function" "return" "shift" "channel" "list" "args" "use"] @keyword
(for "for" @keyword)
(while "while" @keyword)
(in "in" @keyword)
(with "with" @keyword)
(jump) @keyword
(prefix ["accept" "keep"] @keyword (statuses)? @type)

(command name: (word) @function)
(call name: (function_name) @function)
(function name: (function_name) @function)

(operator) @operator
(redirect_operator) @punctuation.special
["|" "|&"] @punctuation.special
(group ["(" ")"] @punctuation.bracket)
(succeeds ["(" ")"] @punctuation.bracket)
(call ["(" ")" ","] @punctuation.bracket)

; generated: try-words
(try ["or" "every" "each" "usual" "stalled" "memory" "while" "atomic in" "atomic" "same input" "signal" "backoff" "no leftovers" "through" "from" "to" "by" "jitter"] @type)
; end of generated
(limit ["for" "or"] @type)
(within ["stalled" "memory" "signal"] @type)
(for ["in" "from input" "by"] @type)
; generated: loop-clauses
(for ["in order" "hedge after" "atomic in" "at most" "at least" "keep going" "finish running" "output grouped" "output tagged" "retry lost" "once in" "while free" "while load" "takes" "gives" "on NAME" "usual" "or"] @type)
; end of generated
(try "--" @type)
(within "--" @type)
(in "--" @type)
(for "--" @type)
(list ["in" "add"] @type)
(channel ["at most" "rate" "per" "budget" "breaker" "failures" "failure"] @type)
(try (duration (unit) @type))
(try (size (unit) @type))
(within (size (unit) @type))
(limit (duration (unit) @type))
(within (duration (unit) @type))
(channel (duration (unit) @type))
(channel (unit) @type)
(policy) @type

[(string) (raw_string)] @string
[(document) (document_word)] @string
[(variable) (expansion)] @variable
