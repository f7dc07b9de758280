// Grammar of ftsh for highlight.js, 10 or later. In a page, the script registers the language and
// highlights its blocks. For other uses: `hljs.registerLanguage('ftsh', require('./ftsh.js'))`.
(function () {
  'use strict';

  // generated: words
  const OPERATORS = 'to|step|or|and|eq|ne|eql|neql|lt|le|gt|ge|contains|matches|add|sub|mul|div|mod|pow|not|exists|isr|isw|isx|isfile|isdir|islink|ispipe|issock|isblock|ischar';
  const FUNCTIONS = 'lines|split|json|length|lower|upper|trim|replace|match|substr|starts|ends|join|count|format|round|min|max|abs|newer|basename|dirname|suffix|stem|now|files|time|seconds|random';
  const BUILTINS = 'cd|pwd|umask|echo|read|local|export|unset|source|exec|success|failure|giveup|defer|exit|sleep';
  const TRY_WORDS = 'for|or|every|each|usual|stalled|memory|while|atomic|in|atomic|same|input|signal|backoff|no|leftovers|through|from|to|by|jitter|times|time|ethernet|exponential|full|equal|decorrelated|normal|proportional|slotted|windowed|fixed|none|ms|millisecond|milliseconds|s|sec|second|seconds|m|min|minute|minutes|h|hour|hours|d|day|days|B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB';
  const FORANY_CLAUSES = 'in\\s+order|hedge\\s+after\\s+usual\\s+or|hedge\\s+after|atomic\\s+in|at\\s+most';
  const FORALL_CLAUSES = 'at\\s+most|at\\s+least|keep\\s+going|finish\\s+running|output\\s+grouped|output\\s+tagged|retry\\s+lost|once\\s+in|atomic\\s+in|while\\s+free|while\\s+load|takes|gives|on\\s+[A-Za-z][A-Za-z0-9._-]*';
  const CHANNEL_WORDS = 'at|most|rate|per|budget|breaker|failures|failure|ms|millisecond|milliseconds|s|sec|second|seconds|m|min|minute|minutes|h|hour|hours|d|day|days';
  // end of generated

  // Places where a command begins, and where a word ends.
  const LINE = '(?:^|[;|])[ \\t]*(?:try|limit|for(?:any|all)?|in)[ \\t][^;\\n]*[ \\t]--';
  const START = `(?:(?<!\\\\\\r?\\n)^|[;|]|(?<=${LINE})(?=[ \\t]))[ \\t]*`;
  const END = '(?![^\\s;|<>&])';
  // Words between the variable and the list of a loop.
  const INPUT = 'in|from\\s+input|(?<=from\\s+input\\s+)by';
  const whole = (words) => `(?:${words})${END}`;

  function ftsh(hljs) {
    const escape = { begin: /\\[^]/ };
    const call = { className: 'variable', begin: /\$\{[ \t]*[^\s"'$(){}:]+[ \t]*\(/, end: /\}|$/ };
    const variables = [
      call,
      { className: 'variable', begin: /\$\{[^}"]*\}?|\$\([^)"]*\)?|\$[A-Za-z_]\w*|\$[0-9#*@$]/ },
    ];
    call.contains = [
      { begin: /'/, end: /'/, contains: [escape] },
      { begin: /"/, end: /"/, contains: [escape, ...variables] },
      ...variables,
    ];
    // A here-document: the rest of its line, then lines up to its word.
    // After `<<-`, blanks may stand before the word.
    const hereDocument = (begin, contains) => {
      let word, isIndented;
      return {
        begin,
        end: /(?!)/,
        'on:begin': (match) => {
          word = match[2];
          isIndented = match[1] === '-';
        },
        contains: [
          {
            className: 'string',
            begin: /\n/,
            end: /^([^\r\n]+)\r?$/,
            'on:end': (match, response) => {
              const line = isIndented ? match[1].trimStart() : match[1];
              if (line !== word) response.ignoreMatch();
            },
            endsParent: true,
            contains,
          },
        ],
      };
    };
    const documents = [
      hereDocument(/<<(-?)[ \t]*'([^'\n]*)'/, []),
      hereDocument(/<<(-?)[ \t]*"([^"\n]*)"/, []),
      hereDocument(/<<(?!<)(-?)[ \t]*([^\s'";|<>\\-][^\s'";|<>]*)/, variables),
    ];
    const parts = [
      escape,
      ...documents,
      { className: 'string', begin: /'/, end: /'/, contains: [escape] },
      { className: 'string', begin: /"/, end: /"/, contains: [escape, ...variables] },
      ...variables,
      { className: 'comment', begin: /(?:^|[ \t])#/, end: /$/ },
      { className: 'meta', begin: /\d?(?:<<<|<<|->>&|->>|->&|->|-<|>>&|&>>|>>|>&|&>|<|>)/ },
    ];
    // Symbols have blanks around them. Behind another operator, a symbol is a value.
    const APART = '(?<=[^\\s.(,=!<>&|*/%+-][ \\t])';
    const calculators = [{ className: 'symbol', begin: `${APART}[-+*/%](?=\\s|$)` }];
    // In lists they are operators between numbers, variables, calls and parentheses only.
    const COUNTS = '(?<=(?:\\)|(?:^|[\\s(])(?:\\$\\w+|\\$\\{[^}\\s]*\\}|[-+]?\\.?\\d[\\d.]*))[ \\t]+)';
    const counting = [
      { className: 'symbol', begin: `${COUNTS}[-+*/%](?=[ \\t]+(?:[$(]|[-+]?\\.?\\d|\\w+\\())` },
    ];
    const symbols = [
      ...calculators,
      { className: 'symbol', begin: `${APART}(?:&&|\\|\\||[=!]=|[<>]=?)(?=\\s|$)` },
      // Before an operator between two values, `!` is a value.
      { className: 'symbol', begin: /(?<=[ \t(])!(?=[ \t(])(?![ \t]*(?:[;#),\n]|$|\.(?!(?:not|exists|is[a-z]+|succeeds|yes|output)\.)[a-z]+\.))/ },
    ];
    // Commands in expressions have no symbols.
    const command = { begin: /(?<=\.(?:succeeds|yes|output)\.[ \t]*)\(/, end: /\)/ };
    command.contains = [{ begin: /\(/, end: /\)/, contains: ['self', ...parts] }, ...parts];
    const group = { begin: /\(/, end: /\)/ };
    const expression = [
      { className: 'symbol', begin: `\\.(?:${OPERATORS}|succeeds|yes|output)\\.(?=[\\s()]|$)` },
      { className: 'built_in', begin: `\\b(?:${FUNCTIONS})(?=\\()` },
      command,
      group,
      ...parts,
    ];
    group.contains = [...symbols, ...expression];
    // A command goes on behind `--`.
    const dashes = { className: 'type', begin: /(?<!by[ \t])(?<=[ \t])--(?=[ \t]+[^\s;#])/, endsParent: true };
    // Head of a structure: its keyword, and the words that have a meaning in such heads.
    const head = (keyword, words, contains, end = /(?=[;|])|$/) => ({
      begin: `${START}(?=${whole(keyword)})`,
      end,
      contains: [
        { className: 'keyword', begin: whole(keyword) },
        ...(words ? [{ className: 'type', begin: `(?:^|[ \\t])${whole(words)}` }] : []),
        ...contains,
      ],
    });
    // A first word alone.
    const first = (className, words) => ({
      begin: `${START}(?=${whole(words)})`,
      end: /(?=[;|])|$/,
      contains: [{ className, begin: whole(words), endsParent: true }],
    });
    // A condition continues after `||`.
    const CONDITION_END = /(?=;|(?<!\|)\|(?!\|))|$/;
    const condition = [...symbols, ...expression];
    const statements = [
      head('try', TRY_WORDS, [dashes, ...condition], CONDITION_END),
      head('limit(?=[ \\t]+["\']?(?:\\$|[0-9.]+[ \\t]*[A-Za-z]))', TRY_WORDS, [dashes, ...condition], CONDITION_END),
      head('forany', `${FORANY_CLAUSES}|${INPUT}`, [dashes, ...counting, ...expression]),
      head('forall', `${FORALL_CLAUSES}|${INPUT}`, [dashes, ...counting, ...expression]),
      head('for', INPUT, [dashes, ...counting, ...expression]),
      head('else[ \\t]+if|if|while|return|shift|else', '', condition, CONDITION_END),
      head('case', '', expression),
      head('in(?=[ \\t]+[^ \\t;|<>&#])', '', [dashes, ...expression]),
      head('catch|end|when', '', parts),
      head('(?:finally|break|continue)(?=[ \\t]*(?:$|[;#\\r]))', '', parts),
      head('channel', CHANNEL_WORDS, parts),
      head('list(?=[ \\t]+(?:add[ \\t]+[A-Za-z_]|[A-Za-z_]\\w*[ \\t]+in(?:[ \\t;]|$)))', 'in|add', [...counting, ...expression]),
      head('use(?=[ \\t]+[^ \\t;|<>&]+[ \\t]*(?:[;#]|$))', '', parts),
      {
        begin: `${START}(?=args[ \\t]+[A-Za-z_"'-])`,
        end: /(?=;|\|(?!-))|$/,
        contains: [{ className: 'keyword', begin: whole('args') }, ...parts],
      },
      {
        begin: `${START}(?=(?:accept[ \\t]+\\d[\\d,]*|keep|with)[ \\t]+[^\\s;|<>&#])`,
        // highlight.js tests an end without the text before it.
        end: /(?![ \t]|accept[ \t]+\d|(?:keep|with)[ \t]|\d[\d,]*[ \t])/,
        contains: [
          { className: 'keyword', begin: whole('accept|keep|with') },
          { className: 'type', begin: /\d[\d,]*/ },
        ],
      },
      {
        begin: `${START}(?=(?:local|export)[ \\t]+[A-Za-z_]\\w*=)`,
        end: /(?=[;|])|$/,
        contains: [{ className: 'built_in', begin: whole('local|export') }, ...calculators, ...expression],
      },
      first('built_in', BUILTINS),
      // The name of a function may be that of a structure.
      first('keyword', 'function'),
      { begin: `${START}(?=[A-Za-z_]\\w*=)`, end: /(?=[;|])|$/, contains: [...calculators, ...expression] },
      ...parts,
      { className: 'meta', begin: /\|&?/ },
    ];
    for (const it of documents) it.contains.push(...statements);
    return { name: 'ftsh', contains: statements };
  }

  if (typeof module === 'object') {
    module.exports = ftsh;
  } else {
    hljs.registerLanguage('ftsh', ftsh);
    for (const block of document.querySelectorAll('code.language-ftsh')) {
      (hljs.highlightElement || hljs.highlightBlock)(block);
    }
  }
})();
