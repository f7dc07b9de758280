// The grammar of ftsh for editors. It takes the scripts that ftsh takes, but for calls of functions that are named like a
// keyword (`accept`, `args`, `case`, `channel`, `in`, `limit`, `list`, `local`), and some that it refuses: what is wrong with a script `ftsh --lsp` tells.
//
// Words are three kinds by where they stand: in commands, in the commands of `.succeeds. ( … )`, which end at a
// parenthesis, and in expressions, where `( ) ,` are tokens. Words of small letters and points are told apart here, since
// they may be keywords; all others, and what depends on more than that, by src/scanner.c.

const list = (rule) => seq(rule, repeat(seq(',', rule)));
// Pieces without blanks between them.
const joined = (part, glue) => seq(part, repeat(seq(glue, part)));
// Text that isn't a comment, whatever it begins with.
const text = (pattern) => token.immediate(prec(1, pattern));
const either = (words) => (words.length > 1 ? choice(...words) : words[0]);
const binary = ($, operand, among) =>
  choice(
    ...OPERATORS.map(([level, ...operators]) =>
      prec.left(10 * level, seq(operand, alias(either(among(operators)), $.operator), operand))),
  );
const phrase = (first, second) =>
  alias(token(new RegExp(`${first}[ \\t]+${second}`)), `${first} ${second}`);

// generated: words
const OPERATORS = [
  [1, '.to.', '.step.'],
  [2, '.or.', '||'],
  [3, '.and.', '&&'],
  [4, '.eq.', '.ne.', '==', '!=', '.eql.', '.neql.', '.lt.', '.le.', '.gt.', '.ge.', '<', '<=', '>', '>='],
  [5, '.contains.', '.matches.'],
  [6, '.add.', '.sub.', '+', '-'],
  [7, '.mul.', '.div.', '.mod.', '*', '/', '%'],
  [9, '.pow.'],
];
const QUESTIONS = [
  '.not.', '.exists.', '.isr.', '.isw.', '.isx.', '.isfile.', '.isdir.', '.islink.', '.ispipe.', '.issock.', '.isblock.', '.ischar.',
];
const UNITS = [
  'times', 'time', 'ms', 'millisecond', 'milliseconds', 's', 'sec', 'second', 'seconds', 'm', 'min', 'minute', 'minutes', 'h', 'hour', 'hours', 'd', 'day', 'days',
];
const BYTE_UNITS = [
  'B', 'kB', 'KB', 'MB', 'GB', 'TB', 'KiB', 'MiB', 'GiB', 'TiB',
];
// end of generated

module.exports = grammar({
  name: 'ftsh',

  externals: ($) => [
    $._command_text, $._inner_text, $._operand_text,
    $._command_glue, $._inner_glue, $._operand_glue,
    $._assigned, $._environment_name, $._equals, $._equals_nothing,
    $._finally, $._jump,
    $._call_start, $._call_end,
    $._document_start, $.document_word, $._document_begin, $._document_text, $.document_end,
    $._error,
  ],

  extras: ($) => [/[ \t\r]/, /\\\r*\n/, $.comment],

  word: ($) => $._plain,

  rules: {
    script: ($) => seq(repeat($._line), optional($._statement)),

    comment: () => token(/#[^\n]*/),
    _line: ($) => choice(seq($._statement, $._end), $._end),
    _end: ($) => choice(';', $._newline),
    _newline: ($) => seq('\n', repeat($.document)),
    block: ($) => seq($._end, repeat($._line)),

    _statement: ($) =>
      choice($.assignment, $.local, $.channel, $.list, $.args, $.use, $.return, $.shift, $.function, alias($._jump, $.jump), $._pipeline),

    // ---- Structures

    _structure: ($) => choice($.try, $.within, $.in, $.with, $.if, $.case, $.while, $.for),
    _close: ($) => seq('end', repeat($.redirection)),

    try: ($) =>
      seq(
        'try',
        optional(alias($._first_limit, $.limit)),
        repeat($._try_clause),
        choice($._line_form, seq($.block, $._handled)),
      ),
    within: ($) =>
      seq(
        'limit',
        $.duration,
        repeat(choice($._watch_clause, seq('signal', $._expression))),
        choice($._line_form, seq($.block, $._handled)),
      ),
    with: ($) => seq('with', $._pipeline, $.block, $._handled),
    in: ($) => seq('in', $._expression, choice($._line_form, seq($.block, $._handled))),
    // A structure around one command, on one line.
    _line_form: ($) => seq('--', choice($.assignment, $._pipeline)),
    _handled: ($) => seq(optional($.catch), optional($.finally), $._close),
    catch: ($) => seq('catch', $.block),
    finally: ($) => seq(alias($._finally, 'finally'), $.block),

    if: ($) => seq('if', $._expression, $.block, repeat($.else_if), optional($.else), $._close),
    else_if: ($) => seq('else', 'if', $._expression, $.block),
    else: ($) => seq('else', $.block),

    case: ($) => seq('case', $._expression, $.block, repeat($.when), optional($.else), $._close),
    when: ($) => seq('when', repeat1(alias($._command_word, $.word)), $.block),

    while: ($) => seq('while', $._expression, $.block, $._handled),

    for: ($) =>
      choice(
        seq('for', $._list, choice($._line_form, seq($.block, $._handled))),
        seq('forany', $._list, repeat($._forany_clause), choice($._line_form, seq($.block, $._handled))),
        seq('forall', $._list, repeat($._forall_clause), choice($._line_form, seq($.block, $._handled))),
      ),
    _list: ($) =>
      seq(
        field('variable', alias($._bare, $.name)),
        choice(
          seq('in', repeat($._item)),
          seq(phrase('from', 'input'), optional(seq('by', $._item))),
        ),
      ),

    function: ($) => seq('function', field('name', alias($._bare, $.function_name)), repeat(alias($._command_word, $.word)), $.block, optional($.catch), optional($.finally), 'end'),
    return: ($) => seq('return', optional($._expression)),
    shift: ($) => seq('shift', optional($._expression)),

    // ---- Clauses

    _try_clause: ($) =>
      choice(
        // generated: try-clauses
        seq('every', $.duration),
        seq('each', optional(seq('usual', 'or')), $.duration),
        seq('stalled', $.duration),
        seq('memory', $.size),
        seq('while', $._expression),
        seq(phrase('atomic', 'in'), repeat($._item)),
        'atomic',
        phrase('same', 'input'),
        seq('signal', $._expression),
        phrase('no', 'leftovers'),
        // end of generated
        $.limit,
        seq('through', $._expression),
        seq('backoff', alias($._bare, $.policy), repeat($._backoff_clause)),
      ),
    // Only the first limit may lack a word before it; thus a symbol cannot begin a later clause.
    _first_limit: ($) => $.duration,
    limit: ($) => seq(choice('for', 'or'), $.duration),
    _watch_clause: ($) => choice(seq('stalled', $.duration), seq('memory', $.size)),
    duration: ($) => prec.right(seq($._expression, optional($.unit))),
    unit: () => choice(...UNITS),
    size: ($) => prec.right(seq($._expression, optional(alias($._byte_unit, $.unit)))),
    _byte_unit: () => choice(...BYTE_UNITS),
    _backoff_clause: ($) =>
      choice(
        seq('from', $.duration),
        seq('to', $.duration),
        seq('by', $._expression),
        prec.right(seq('jitter', $._item, optional('%'))),
      ),

    // generated: loop-clauses
    _forany_clause: ($) =>
      choice(
        phrase('in', 'order'),
        seq(phrase('hedge', 'after'), optional(seq('usual', 'or')), $.duration),
        seq(phrase('atomic', 'in'), repeat($._item)),
        seq(phrase('at', 'most'), $._expression),
      ),
    _forall_clause: ($) =>
      choice(
        seq(phrase('at', 'most'), $._expression),
        seq(phrase('at', 'least'), $._expression),
        phrase('keep', 'going'),
        phrase('finish', 'running'),
        seq(phrase('output', 'grouped'), optional(seq('in', 'order'))),
        phrase('output', 'tagged'),
        seq(phrase('retry', 'lost'), $._expression, optional(choice('times', 'time'))),
        seq('takes', repeat($._item)),
        seq('gives', repeat($._item)),
        seq(phrase('once', 'in'), $._expression),
        seq(phrase('atomic', 'in'), repeat($._item)),
        seq(phrase('while', 'free'), $.size),
        seq(phrase('while', 'load'), $._expression),
        seq(alias(token(/on[ \t]+[A-Za-z][A-Za-z0-9._-]*/), 'on NAME'), optional($._expression)),
      ),
    // end of generated

    channel: ($) => seq('channel', $._expression, repeat($._rule)),
    _rule: ($) =>
      choice(
        seq(phrase('at', 'most'), $._expression),
        seq('rate', $._expression),
        seq('per', choice($.duration, $.unit)),
        seq('budget', $._item, optional('%')),
        seq('breaker', $._expression),
        seq(choice('failures', 'failure'), $.duration),
      ),

    args: ($) =>
      seq('args', repeat(choice(alias($._command_word, $.word), alias(token.immediate('|'), $.alternative)))),
    use: ($) => seq('use', alias($._command_word, $.word)),
    list: ($) =>
      seq('list', choice(seq(alias($._bare, $.name), 'in'), seq('add', alias($._bare, $.name))), repeat($._expression)),

    // ---- Commands

    assignment: ($) =>
      seq(alias($._assigned, $.name), choice(alias($._equals, '='), alias($._equals_nothing, '=')), optional($._expression)),
    local: ($) => seq('local', choice($.assignment, alias($._bare, $.name))),

    _pipeline: ($) => choice($.pipeline, $._stage),
    pipeline: ($) => seq($._stage, repeat1(seq($._pipe, $._stage))),
    _pipe: ($) => prec.right(seq(choice('|', '|&'), repeat($._newline))),
    _stage: ($) => choice($.command, $._structure),

    command: ($) =>
      choice(
        seq(
          repeat(choice($.environment, $.redirection, $.prefix)), field('name', alias($._command_word, $.word)),
          repeat(choice($.redirection, alias($._command_word, $.word))),
        ),
        field('name', alias('keep', $.word)),
      ),
    prefix: ($) => choice('keep', seq('accept', alias($._command_word, $.statuses))),
    environment: ($) =>
      seq(
        alias($._environment_name, $.name),
        choice(seq(alias($._equals, '='), alias($._inner_word, $.word)), alias($._equals_nothing, '=')),
      ),
    redirection: ($) => $._redirection,
    _redirection: ($) =>
      choice(
        seq($.redirect_operator, alias($._command_word, $.word)),
        seq(alias($._document_start, $.redirect_operator), $.document_word),
      ),
    redirect_operator: () =>
      token(prec(1, /[0-9]?(<<<|->>&|->>|->&|->|-<<|-<|>>&|&>>|>>|>&|&>|<&|<|>)/)),

    _inner_pipeline: ($) =>
      choice(alias($._inner_pipes, $.pipeline), alias($._inner_command, $.command)),
    _inner_pipes: ($) =>
      seq(alias($._inner_command, $.command), repeat1(seq($._pipe, alias($._inner_command, $.command)))),
    _inner_command: ($) =>
      seq(
        repeat(choice($.environment, alias($._inner_redirection, $.redirection))),
        field('name', alias($._inner_word, $.word)),
        repeat(choice(alias($._inner_redirection, $.redirection), alias($._inner_word, $.word))),
      ),
    _inner_redirection: ($) => seq($.redirect_operator, alias($._inner_word, $.word)),

    // ---- Expressions

    _expression: ($) => choice($.binary, $.unary, $.succeeds, $.group, $.call, alias($._operand, $.word)),
    binary: ($) => binary($, $._expression, (operators) => operators),
    unary: ($) =>
      choice(
        prec.right(80, seq(alias(choice(...QUESTIONS), $.operator), $._expression)),
        prec.right(35, seq(alias('!', $.operator), $._expression)),
      ),
    // Words of lists have no symbols between them, as `-` and `*` may be words.
    _item: ($) =>
      choice(
        alias($._item_binary, $.binary), alias($._item_unary, $.unary), $.succeeds, $.group, $.call,
        alias($._operand, $.word),
      ),
    _item_binary: ($) =>
      binary($, $._item, (operators) => operators.filter((operator) => operator.startsWith('.'))),
    _item_unary: ($) => prec.right(80, seq(alias(choice(...QUESTIONS), $.operator), $._item)),
    succeeds: ($) => seq(alias(choice('.succeeds.', '.yes.', '.output.'), $.operator), '(', $._inner_pipeline, ')'),
    group: ($) => seq('(', $._expression, ')'),
    call: ($) =>
      prec(1, seq(field('name', alias($._bare, $.function_name)), '(', optional(list($._expression)), ')')),

    // ---- Words

    // Words of small letters, points and percent signs: what keywords are made of.
    _plain: () => /[a-z.%]+/,
    _bare: ($) => choice($._plain, $._operand_text),

    _command_word: ($) => joined(choice($._plain, $._command_text, $._piece), $._command_glue),
    _inner_word: ($) => joined(choice($._plain, $._inner_text, $._piece), $._inner_glue),
    _operand: ($) => joined(choice($._bare, $._piece), $._operand_glue),

    _piece: ($) => choice($.string, $.raw_string, $._variable),
    raw_string: () => /'([^'\\]|\\[\s\S])*'/,
    string: ($) =>
      seq('"', repeat(choice($._string_text, $.escape, alias($._variable_inside, $.expansion), $.variable)), token.immediate('"')),
    _string_text: () => choice(text(/[^"$\\]+/), token.immediate('$')),
    escape: () => token.immediate(/\\[\s\S]/),

    // ---- Variables

    _variable: ($) => choice($.variable, $.expansion),
    variable: () => token(/\$([A-Za-z_][A-Za-z0-9_]*|[0-9#*@$])/),
    expansion: ($) =>
      choice(
        $._called,
        seq('${', $.parameter, optional($.index), optional($._default), token.immediate('}')),
        seq('$(', $.parameter, token.immediate(')')),
      ),
    _variable_inside: ($) =>
      choice(
        $._called,
        seq('${', $.parameter, optional($.index), optional($._default_inside), token.immediate('}')),
        seq('$(', $.parameter, token.immediate(')')),
      ),
    _called: ($) => 
      seq('${', $._call_start, optional(list($._expression)), ')', optional($._sum), $._call_end),
    _sum: ($) => repeat1(seq(alias(choice(...OPERATORS.flatMap(([, ...all]) => all)), $.operator), $._expression)),
    parameter: () => token.immediate(/[A-Za-z0-9_]+|[#*@$]/),
    index: () => token.immediate(/\[[^\]\n]*\]/),
    _default: ($) =>
      seq(
        token.immediate(/:[-+?]/),
        repeat(choice(
          $.string, $.raw_string, $._variable, $.escape, text(/[^}"'`\\$\n]+/), token.immediate('$'),
        )),
      ),
    _default_inside: ($) =>
      seq(
        token.immediate(/:[-+?]/),
        repeat(choice(
          $.variable, alias($._variable_inside, $.expansion), $.escape, text(/[^}"`$\\]+/), token.immediate('$'),
        )),
      ),

    // ---- Here-documents

    document: ($) =>
      seq(
        $._document_begin,
        repeat(choice($._document_text, $.variable, alias($._variable_inside, $.expansion))),
        $.document_end,
      ),
  },
});
