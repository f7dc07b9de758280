//! Parsed scripts, shown by the printer.

use insta::assert_snapshot;

use super::{parse_part, shape, tidied};
use crate::print;

#[test]
fn lines_join_also_inside_words() {
    assert_snapshot!(tidied("echo a \\\n  b fo\\\no \"c\\\nd\" \\\n# gone\n"), @r#"echo a b foo "cd" # gone"#);
}

#[test]
fn carriage_returns_before_newlines_are_removed() {
    assert_snapshot!(tidied("try\r\n  echo \"a\r\nb\" \\\r\n c # d\r\nend\r\n"), @r#"
try
    echo "a
b" c # d
end
"#);
}

#[test]
fn a_byte_order_mark_is_removed() {
    assert_snapshot!(tidied("\u{feff}#!/usr/bin/ftsh\necho"), @"
#!/usr/bin/ftsh
echo
");
}

#[test]
fn semicolons_end_commands_and_heads() {
    assert_snapshot!(tidied("try for 5 minutes; cp a b; end;; if a;else;b;end"), @"
try for 5 minutes
    cp a b
end
if a
else
    b
end
");
}

#[test]
fn comments_and_single_blank_lines_are_kept() {
    assert_snapshot!(tidied(
        "#!/usr/bin/ftsh\n\n\n# one\ntry # two\n\n\n  # three\n  a # four\n\n  \n  b; # five\n\n\
         # six\n\ncatch # seven\n  # eight\nend # nine\n# ten\n; # eleven\n\n\n"
    ), @"
#!/usr/bin/ftsh

# one
try # two

    # three
    a # four

    b # five

    # six
catch # seven
    # eight
end # nine
# ten
# eleven
");
}

#[test]
fn keywords_are_words_elsewhere() {
    assert_snapshot!(tidied(
        "echo waiting for the end\nfor x in in in\nend\nfor in in for end try\nend\n\"end\" a\n\
         endless\nend=5\ntry=$end\nforany x in a in orders b\nend\n'try' for 5 times\n\
         return-it\nif=3\nevery 5 times\ntime ls\n"
    ), @r#"
echo waiting for the end
for x in in in
end
for in in for end try
end
"end" a
endless
end=5
try=$end
forany x in a in orders b
end
'try' for 5 times
return-it
if=3
every 5 times
time ls
"#);
}

#[test]
fn structures_may_touch_parentheses() {
    assert_snapshot!(tidied("if($x .lt. 5)\nend\nwhile(true)\nend\nfor x in(a)(b)\nend\nreturn(5)"), @"
if ($x .lt. 5)
end
while (true)
end
for x in (a) (b)
end
return (5)
");
}

#[test]
fn assignments_take_one_expression() {
    assert_snapshot!(tidied(
        "a=1\na= 1\na=\nb=$a .add. 1\nc=\"x y\"\nd=f( 1,2 )\ne=5 .to. 100 .step. 5\n\
         color=#fff\npath=/a:/b\nx=a=b\ny=x # unset\nz= # unset\nn=-1"
    ), @r#"
a=1
a=1
a=
b=$a .add. 1
c="x y"
d=f(1, 2)
e=5 .to. 100 .step. 5
color=#fff
path=/a:/b
x=a=b
y=x # unset
z= # unset
n=-1
"#);
}

#[test]
fn an_assignment_before_words_is_for_one_command() {
    assert_snapshot!(tidied("A=1 B=\"x y\" cmd c=d\nA= cmd a\nLC_ALL=C > out sort < in\nA=.git/x ls"), @r#"
A=1 B="x y" cmd c=d
A='' cmd a
LC_ALL=C sort > out < in
A=.git/x ls
"#);
}

#[test]
fn operators_bind_as_the_reference_says() {
    fn grouped(text: &str) -> String {
        use crate::ast::{CommandKind, Expr, ExprKind};
        fn show(expr: &Expr) -> String {
            match &expr.kind {
                ExprKind::Unary { operator, operand, .. } => {
                    format!("({} {})", operator.spelling(), show(operand))
                }
                ExprKind::Binary { operator, left, right, .. } => {
                    format!("({} {} {})", show(left), operator.spelling(), show(right))
                }
                ExprKind::Range { from, to, step } => {
                    let step = step.as_ref().map(|step| format!(" by {}", show(step)));
                    format!("[{} to {}{}]", show(from), show(to), step.unwrap_or_default())
                }
                _ => "x".to_owned(),
            }
        }
        let script = parse_part(&format!("a={text}")).expect("a program");
        match &script.body.commands[0].kind {
            CommandKind::Assign { value: Some(value), .. } => show(value),
            _ => panic!("not an assignment"),
        }
    }
    assert_snapshot!(grouped("x .sub. x .sub. x"), @"((x .sub. x) .sub. x)");
    assert_snapshot!(grouped("x .pow. x .pow. x"), @"((x .pow. x) .pow. x)");
    assert_snapshot!(grouped("x .add. x .mul. x .pow. x .div. x"), @"(x .add. ((x .mul. (x .pow. x)) .div. x))");
    assert_snapshot!(grouped("x .or. x .and. x .eq. x .add. x"), @"(x .or. (x .and. (x .eq. (x .add. x))))");
    assert_snapshot!(grouped(".not. x .eq. x .and. .not. .exists. x"), @"(((.not. x) .eq. x) .and. (.not. (.exists. x)))");
    assert_snapshot!(grouped(".not. x .pow. x .mul. x"), @"((.not. (x .pow. x)) .mul. x)");
    assert_snapshot!(grouped("x .pow. .not. x .pow. x .add. x"), @"((x .pow. (.not. (x .pow. x))) .add. x)");
    assert_snapshot!(grouped("x .to. x .add. x .step. x .mul. x"), @"[x to (x .add. x) by (x .mul. x)]");
    assert_snapshot!(grouped("x .or. x .to. x"), @"[(x .or. x) to x]");
    assert_snapshot!(grouped("x .contains. x .and. x .matches. x"), @"((x .contains. x) .and. (x .matches. x))");
}

#[test]
fn operators_are_whole_words() {
    assert_snapshot!(tidied(
        "a=5.add.3\nb=\"5\".add.\"3\"\nc=(5).add.(3)\nd=$x.add.3\ne=(.not.(true))\nf=.exists.x\n\
         for x in .x y.eq. .eq.z\nend"
    ), @r#"
a=5.add.3
b="5" .add. "3"
c=(5) .add. (3)
d=$x.add.3
e=(.not. (true))
f=.exists.x
for x in .x y.eq. .eq.z
end
"#);
}

#[test]
fn calls_may_stand_apart_from_their_parentheses() {
    assert_snapshot!(tidied(
        "a=f ( $x , g( ) ) .add. f-2(1)\nfor x in foo (baz)\nend\nfor x in (foo) (baz)\nend\n\
         for x in \"foo\" (baz)\nend"
    ), @r#"
a=f($x, g()) .add. f-2(1)
for x in foo(baz)
end
for x in (foo) (baz)
end
for x in "foo" (baz)
end
"#);
}

#[test]
fn commands_in_conditions() {
    assert_snapshot!(tidied(
        "if .not. .succeeds. ( grep -q a=b,c \"(x)\" < $f | sort 2>&1 ) .and. $x .eq. 1\nend\n\
         if .succeeds.(A=1 cmd a(b))\nend"
    .replace("a(b)", "ab").as_str()), @r#"
if .not. .succeeds. (grep -q a=b,c "(x)" < $f | sort 2>&1) .and. $x .eq. 1
end
if .succeeds. (A=1 cmd ab)
end
"#);
}

#[test]
fn redirections() {
    assert_snapshot!(tidied(
        "a <f >g>>h 2>i 2>>j 0<k 5>l\na >& f\na &> f\na >>&f\na &>>f\na 2>&1 1>&2 >&2 2>>&1 <&3 2>& 1\n\
         a -> v ->> v 2-> v 2->> v ->& v ->>& v -< v 0-<v\na <<< \"x y\" 3<<<z\n> f a b\n\
         a>b 12 >c x-> d 2 > e\na &> 2\ntry\nend -> log 2>&1\n"
    ), @r#"
a < f > g >> h 2> i 2>> j < k 5> l
a &> f
a &> f
a &>> f
a &>> f
a 2>&1 >&2 >&2 2>>&1 <&3 2>&1
a -> v ->> v 2-> v 2->> v ->& v ->>& v -< v -< v
a <<< "x y" 3<<< z
a b > f
a 12 x- 2 > b > c > d > e
a &> 2
try
end -> log 2>&1
"#);
}

#[test]
fn pipelines_may_continue_after_the_bar() {
    assert_snapshot!(tidied("a | b |& c|\n  d 2>&1 |\n\n e"), @"a | b |& c | d 2>&1 | e");
}

#[test]
fn here_documents_begin_on_the_next_line() {
    assert_snapshot!(tidied(
        "cat <<A <<'B' > f; echo x # why\na $x \\$x \\\\ \"q\" \\\"\nA\nb $x\\\nB\n\
         if .succeeds. (grep x <<C)\n  x\nC\n  try\n  end <<\\D\nD\nend\n"
    ), @r#"
cat <<A <<'B' > f
a $x \$x \ "q" \"
A
b $x\
B
echo x # why
if .succeeds. (grep x <<C)
  x
C
    try
    end <<'D'
D
end
"#);
}

#[test]
fn indented_here_documents_keep_their_indentation() {
    let text = "if true\n    cat <<-E > f\n      a $b\n\n    c\n    E\nend\n";
    assert_eq!(tidied(text), text);
    let text = "cat <<-'E'\n\t$a\n\tE\n";
    assert_eq!(tidied(text), text);
}

#[test]
fn a_here_document_can_hold_its_own_delimiter() {
    assert_snapshot!(tidied("cat <<E\na\nE\\\n\nb\\\nE\n"), @r#"
cat <<E
a
E\

b\
E
"#);
}

#[test]
fn try_heads_of_the_original_ftsh() {
    for head in [
        "try 1 time 10 seconds",
        "try for 1 time 10 seconds",
        "try 1 time or 10 seconds",
        "try for 1 time or 10 seconds",
        "try 10 seconds 1 time",
        "try for 10 seconds 1 time",
        "try 10 seconds or 1 time",
        "try for 10 seconds or 1 time",
        "try or 10 seconds for 1 time",
    ] {
        assert_eq!(
            tidied(&format!("{head}\nend")),
            "try for 10 seconds or 1 time\nend\n",
            "{head}"
        );
    }
    assert_snapshot!(tidied(
        "try\nend\ntry 5 times\nend\ntry for 5 times\nend\ntry $n times\nend\n\
         try for $a .add. f(2) hours every (3) days\nend\ntry for 3 days every 1 hour\nend\n\
         try every 30 seconds\nend"
    ), @"
try
end
try 5 times
end
try 5 times
end
try $n times
end
try for $a .add. f(2) hours every (3) days
end
try for 3 days every 1 hour
end
try every 30 seconds
end
");
}

#[test]
fn new_clauses_in_any_order() {
    assert_snapshot!(tidied(
        "try while $error_code .eql. 75 5 times each 500ms for 1h30m\nend\n\
         try 1.5 seconds or 3 times backoff full from 100 ms to 20 s by 2\nend\n\
         try $d every 1 m\nend\ntry backoff normal jitter $p% by (1 .add. 1) to 3 h from $d 5 times\n\
         end\ntry backoff proportional jitter 10 %\nend\ntry for \"1h\"\nend\ntry atomic\nend\n\
         try for $d atomic\nend\ntry while $a .eql. 1 atomic every 2 s for 1h 5 times\nend"
    ), @r#"
try for 1h30m or 5 times each 500ms while $error_code .eql. 75
end
try for 1.5 seconds or 3 times backoff full from 100 ms to 20 seconds by 2
end
try for $d every 1 minute
end
try 5 times backoff normal from $d to 3 hours by (1 .add. 1) jitter $p%
end
try backoff proportional jitter 10%
end
try for "1h"
end
try atomic
end
try for $d atomic
end
try for 1h or 5 times every 2 seconds atomic while $a .eql. 1
end
"#);
}

#[test]
fn loops_with_their_own_clauses() {
    assert_snapshot!(tidied(
        "forany x in a b in order # c\nend\nforall x in $@ 1 .to. 10 at most $n .mul. 2\nend\n\
         for x in\nend\nforall x in at 'most' most 'at most' at most 3\nend\n\
         forall x in keep 'going' at least $n   keep \\\n going at most 1 .add. 1\nend\n\
         forany x in a hedge after 5s at most 2\nend\nforany x in a at most $n in order hedge after $d\nend\n\
         forany x in a hedge after 2 sec in order\nend\nforany x in 'hedge' after hedge after $n .mul. 2 min\nend\n\
         forall x in a on  slurm\nend\nforall x in a retry lost 3 on ssh \"host1 ${more}*4\" at most 9\nend\n\
         forall x in on 'slurm' on slurm --mem=4G retry lost $n .add. 1 times\nend\n\
         forall x in takes 'gives' gives \"$x.o\" ./b/$x/ takes  *.c \"$x\" on ssh h at most 2\nend\n\
         for x in it takes two gives\nend"
    ), @r#"
forany x in a b in order # c
end
forall x in $@ 1 .to. 10 at most $n .mul. 2
end
for x in
end
forall x in at 'most' most 'at most' at most 3
end
forall x in keep 'going' at most 1 .add. 1 at least $n keep going
end
forany x in a hedge after 5s at most 2
end
forany x in a in order hedge after $d at most $n
end
forany x in a in order hedge after 2 seconds
end
forany x in 'hedge' after hedge after $n .mul. 2 minutes
end
forall x in a on slurm
end
forall x in a at most 9 on ssh "host1 $more*4" retry lost 3 times
end
forall x in on 'slurm' on slurm --mem=4G retry lost $n .add. 1 times
end
forall x in takes 'gives' at most 2 on ssh h takes *.c "$x" gives "$x.o" ./b/$x/
end
for x in it takes two gives
end
"#);
}

#[test]
fn functions_may_have_dashes_and_stand_inside() {
    assert_snapshot!(tidied("function f-1.x\n  return\nend\nif true\nfunction set\nset -e\nshift 2;shift\nend\nend"), @"
function f-1.x
    return
end
if true
    function set
        set -e
        shift 2
        shift
    end
end
");
}

#[test]
fn every_span_covers_its_text() {
    use crate::ast::CommandKind;
    let text = "a=1\ntry 5 times # x\n  é <<E; b $c\nE\nend -> v\n";
    let script = parse_part(text).expect("a program");
    let at = |span: crate::Span| &text[span.start..span.end];
    let commands = &script.body.commands;
    assert_eq!(at(commands[0].span), "a=1");
    assert_eq!(at(commands[1].span), "try 5 times");
    assert_eq!(at(commands[1].redirects[0].span), "-> v");
    let CommandKind::Try(head) = &commands[1].kind else { panic!("not a try") };
    let body: Vec<_> = head.body.commands.iter().map(|command| at(command.span)).collect();
    assert_eq!(body, ["# x", "é <<E", "b $c"]);
}

#[test]
fn printing_keeps_joined_lines_apart() {
    for text in ["e\\\nnd a", "a\\\n=5 b", "echo $\\\n$x", "if a .a\\\ndd.\nend", "2\\\n> f"] {
        if let Ok(script) = parse_part(text) {
            let again = parse_part(&print(&script)).expect("a program");
            assert_eq!(shape(&again), shape(&script), "{text}");
        }
    }
}
