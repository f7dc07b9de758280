//! Parts of words.

use insta::assert_snapshot;

use super::parse_part;

/// Returns the words of the first command with their parts.
fn words(text: &str) -> String {
    use crate::ast::{CommandKind, Quoted, WordPart};
    let script = parse_part(text).expect("a program");
    let CommandKind::Pipeline(pipeline) = &script.body.commands[0].kind else {
        panic!("not a command: {text}")
    };
    let part = |part: &WordPart| match part {
        WordPart::Bare(text) => format!("bare {text:?}"),
        WordPart::Escaped(c) => format!("escaped {c:?}"),
        WordPart::Single(text) => format!("single {text:?}"),
        WordPart::Double(pieces) => {
            let piece = |piece: &Quoted| match piece {
                Quoted::Text(text) => format!("{text:?}"),
                Quoted::Variable(variable) => format!("{:?}", variable.parameter),
                Quoted::Call(call) => format!("call {}", &text[std::ops::Range::from(call.span)]),
            };
            format!("double [{}]", pieces.iter().map(piece).collect::<Vec<_>>().join(", "))
        }
        WordPart::Call(call) => format!("call {}", &text[std::ops::Range::from(call.span)]),
        WordPart::Variable(variable) => match &variable.substitute {
            None => format!("{:?}", variable.parameter),
            Some((kind, parts)) => {
                let parts: Vec<_> = parts
                    .iter()
                    .map(|part| match part {
                        WordPart::Bare(text) => text.clone(),
                        other => format!("{other:?}"),
                    })
                    .collect();
                format!("{:?} {kind:?} {parts:?}", variable.parameter)
            }
        },
    };
    let words = &pipeline.stages[0].simple().expect("a command").words;
    let lines =
        words.iter().map(|word| word.parts.iter().map(part).collect::<Vec<_>>().join(" + "));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn words_are_runs_of_text_and_strings() {
    assert_snapshot!(words(r#"echo a"b c"'d' \  x\;y 5.add.3 dd if=a,b(c) #no"#), @r#"
bare "echo"
bare "a" + double ["b c"] + single "d"
escaped ' '
bare "x" + escaped ';' + bare "y"
bare "5.add.3"
bare "dd"
bare "if=a,b(c)"
"#);
}

#[test]
fn backslashes_in_double_quotes_escape_only_what_could_be_special() {
    assert_snapshot!(words(r#"printf "a\n" "s/\.x$/y/" "\"\'\$\\\`" "a\
b""#), @r#"
bare "printf"
double ["a\\n"]
double ["s/\\.x$/y/"]
double ["\"'$\\`"]
double ["ab"]
"#);
}

#[test]
fn single_quotes_escape_quotes_and_backslashes() {
    assert_snapshot!(words(r#"echo 'a\nb' '\'' '\"' '\\' '\\n' '$x `y`'"#), @r#"
bare "echo"
single "a\\nb"
single "'"
single "\""
single "\\"
single "\\n"
single "$x `y`"
"#);
}

#[test]
fn variables_have_three_spellings() {
    assert_snapshot!(words(r#"echo $a ${a} $(a) $1 ${10} $12 $# $* $@ $$ ${#} $(@) "$@" "a$a.b""#), @r#"
bare "echo"
Named("a")
Named("a")
Named("a") Command ["Call(Expr { span: Span { start: 15, end: 16 }, kind: Collected(Block { commands: [Command { span: Span { start: 15, end: 16 }, gap: false, kind: Pipeline(Pipeline { stages: [Stage { kind: Simple(Simple { span: Span { start: 15, end: 16 }, assignments: [], modifiers: [], words: [Word { span: Span { start: 15, end: 16 }, parts: [Bare(\"a\")] }], redirects: [] }), pipe_errors: false }] }), redirects: [], one_line: false }] }) })"]
Positional(1)
Positional(10)
Positional(1) + bare "2"
Count
Star
At
Pid
Count
At
double [At]
double ["a", Named("a"), ".b"]
"#);
}

#[test]
fn a_dollar_that_begins_nothing_is_text() {
    assert_snapshot!(words(r#"echo $ a$ $% "foo$" "$" "$ 5" $"x""#), @r#"
bare "echo"
bare "$"
bare "a$"
bare "$%"
double ["foo$"]
double ["$"]
double ["$ 5"]
bare "$" + double ["x"]
"#);
}

#[test]
fn substitutes_hold_words() {
    assert_snapshot!(words(r#"echo ${a:-b c} ${a:-"$b"} ${a:+} "${a:-it's \} $b}" ${a:-${b:-c}}"#), @r#"
bare "echo"
Named("a") Default ["b c"]
Named("a") Default ["Double([Variable(VariableUse { span: Span { start: 21, end: 23 }, parameter: Named(\"b\"), index: None, substitute: None })])"]
Named("a") Alternative []
double [Named("a")]
Named("a") Default ["Variable(VariableUse { span: Span { start: 57, end: 64 }, parameter: Named(\"b\"), index: None, substitute: Some((Default, [Bare(\"c\")])) })"]
"#);
}

#[test]
fn calls_are_expressions_in_braces() {
    assert_snapshot!(words(r#"echo ${f(x)}.jpg "a ${ f ("b }", ${g()}) .add. 1 } c""#), @r#"
bare "echo"
call f(x) + bare ".jpg"
double ["a ", call f ("b }", ${g()}) .add. 1, " c"]
"#);
    assert_snapshot!(super::tidied(r#"cat <<E
 ${ f ( $x,'y' ) .add. 1 }$
${g()} \${f(x)} ${f("x")}
E
"#), @r#"
cat <<E
 ${f($x, 'y') .add. 1}$
${g()} \${f(x)} ${f("x")}
E
"#);
}

#[test]
fn a_lone_backquote_in_a_string_is_text() {
    assert_snapshot!(words(r#"echo "the `foo' file" "\`a\`""#), @r#"
bare "echo"
double ["the `foo' file"]
double ["`a`"]
"#);
}
