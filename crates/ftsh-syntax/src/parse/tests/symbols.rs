//! Symbols as operators, and as words where they are no operators.

use insta::assert_snapshot;

use super::{parse_part, rendered_errors, tidied};
use crate::ast::{CommandKind, Expr, ExprKind, Script, UnaryOperator};
use crate::parse::literal;

/// Returns an expression with parentheses around each operation.
fn show(expr: &Expr) -> String {
    match &expr.kind {
        ExprKind::Unary { operator, is_symbol, operand } => {
            assert!(!is_symbol || *operator == UnaryOperator::Not);
            let shown = if *is_symbol { "!" } else { operator.spelling() };
            format!("({shown} {})", show(operand))
        }
        ExprKind::Binary { operator, is_symbol, left, right } => {
            let shown = operator.symbol().filter(|_| *is_symbol).unwrap_or(operator.spelling());
            format!("({} {shown} {})", show(left), show(right))
        }
        ExprKind::Group(inner) => format!("[{}]", show(inner)),
        ExprKind::Call { name, args } => {
            format!("{name}({})", args.iter().map(show).collect::<Vec<_>>().join(", "))
        }
        ExprKind::Range { from, to, .. } => format!("({} to {})", show(from), show(to)),
        _ => literal::expr(expr).map_or("x".to_owned(), |text| format!("<{text}>")),
    }
}

/// Returns the expressions of the first command of a script.
fn first(script: &Script) -> Vec<String> {
    let expressions = match &script.body.commands[0].kind {
        CommandKind::Assign { value, .. } | CommandKind::Return(value) => value.iter().collect(),
        CommandKind::If { arms, .. } => arms.iter().map(|(condition, _)| condition).collect(),
        CommandKind::For(details) => details.list.iter().collect::<Vec<_>>(),
        CommandKind::Try(details) => details.condition.iter().collect(),
        kind => panic!("{kind:?}"),
    };
    expressions.into_iter().map(show).collect()
}

fn condition(text: &str) -> String {
    first(&parse_part(&format!("if {text}\nend")).expect("a program")).join("")
}

#[test]
fn symbols_bind_like_their_operators() {
    assert_snapshot!(condition("$a + $b * $c - $d"), @"((x + (x * x)) - x)");
    assert_snapshot!(condition("1 / 2 % 3 .pow. 2"), @"((<1> / <2>) % (<3> .pow. <2>))");
    assert_snapshot!(condition("$a || $b && $c == $d + 1"), @"(x || (x && (x == (x + <1>))))");
    assert_snapshot!(condition("$a .or. $b && $c .eq. 2 * -1"), @"(x .or. (x && (x .eq. (<2> * <-1>))))");
    assert_snapshot!(condition("! $a == $b && ! ! $c"), @"((! (x == x)) && (! (! x)))");
    assert_snapshot!(condition("!($a) == $b || .not. $a != $b"), @"((! ([x] == x)) || ((.not. x) != x))");
    assert_snapshot!(condition("f(1 <= 2, ! $x, -) >= (3 \\\n > 2)"), @"(f((<1> <= <2>), (! x), <->) >= [(<3> > <2>)])");
    assert_snapshot!(condition("! .exists. $f && $x < .5"), @"((! (.exists. x)) && (x < <.5>))");
}

#[test]
fn symbols_in_the_place_of_a_value_are_values() {
    assert_snapshot!(condition("$op .eq. + || - == $op"), @"((x .eq. <+>) || (<-> == x))");
    assert_snapshot!(condition("! .eq. $op && * != /"), @"((<!> .eq. x) && (<*> != </>))");
    assert_snapshot!(condition("$x .eq. !"), @"(x .eq. <!>)");
    assert_snapshot!(condition("f(/, -)"), @"f(</>, <->)");
    let list = |text: &str| first(&parse_part(text).expect("a program")).join(" ");
    assert_snapshot!(list("for x in a - * / + % ! == b (1 - 2) f(- * -) ! c\nend"),
        @"<a> <-> <*> </> <+> <%> <!> <==> b((<1> - <2>)) f((<-> * <->)) <!> <c>");
    assert_snapshot!(list("try while $op .eq. ! for 5 minutes backoff normal jitter 10 %\nend"), @"(x .eq. <!>)");
    assert_snapshot!(list("x=/"), @"</>");
}

#[test]
fn the_printer_keeps_symbols() {
    assert_snapshot!(tidied(r#"
x=1   +  2 .add. 3
local=($a==$b)
y=($a   == $b  &&  !($c < 1))
function f
local z=$1 * 2
return $1
return $1 > 1
end
while ! $a  !=  b
end
try $n * 2 times every $n + 1 s while $a || $b
end
try backoff normal jitter 10 - 5 % by 3 / 2
end
forall x in a - b at most $n % 3
end
echo "${f(1)   - 1}"
"#), @r#"
x=1 + 2 .add. 3
local=($a==$b)
y=($a == $b && !($c < 1))
function f
    local z=$1 * 2
    return $1
    return $1 > 1
end
while ! $a != b
end
try $n * 2 times every $n + 1 seconds while $a || $b
end
try backoff normal by 3 / 2 jitter 10 - 5 %
end
forall x in a - b at most $n % 3
end
echo "${f(1) - 1}"
"#);
}

#[test]
fn functions_of_the_script_keep_their_names() {
    let calls = "function +\nend\nx=1 + 2\nA=a + b > f\n";
    let script = parse_part(calls).expect("a program");
    let commands = &script.body.commands[1..];
    assert!(commands.iter().all(|it| matches!(it.kind, CommandKind::Pipeline(_))), "{commands:?}");
    let script = parse_part("if !(1)\nend\nfunction !\nend").expect("a program");
    assert_eq!(first(&script), ["!(<1>)"]);
    // A program may be called like a symbol.
    for command in ["x=1 +", "x=1 + # comment", "x=1 + > f", "x=1 '+' 2", "- 1", "* b"] {
        let script = parse_part(command).expect("a program");
        assert!(matches!(script.body.commands[0].kind, CommandKind::Pipeline(_)), "{command}");
    }
}

#[test]
fn misplaced_symbols_are_explained() {
    let errors = [
        "x=$a == $b",
        "x=$a && $b",
        "x=$a < $b",
        "x=$a + $b $c",
        "if $a <$b\nend",
        "if $a< $b\nend",
        "if (1)+ 2\nend",
        "if $a = $b\nend",
        "if $a ==\nend",
        "if 1 < $x < 3\nend",
        "for x in 1 + (2 +)\nend",
    ];
    assert_snapshot!(errors.map(rendered_errors).join("\n"), @r"
error[misplaced-symbol]: an assignment takes `==` only in parentheses
 --> t:1:6
  |
1 | x=$a == $b
  |      ^^
  = hint: a comparison in an assignment has parentheses: `x=($a == $b)`

error[misplaced-symbol]: unexpected `&&`
 --> t:1:6
  |
1 | x=$a && $b
  |      ^^ expected the end of the command
  = hint: a comparison in an assignment has parentheses: `x=($a && $b)`

error[missing-command]: expected a command
 --> t:1:10
  |
1 | x=$a < $b
  |          ^ the command ends here
  = hint: a comparison in an assignment has parentheses: `x=($a < $b)`

error[misplaced-symbol]: something follows the value after `+`
 --> t:1:6
  |
1 | x=$a + $b $c
  |      ^
  = hint: an assignment ends with its value: `x=$a + $b`

error[command-as-condition]: a value before a redirection could be a command or an operand
 --> t:1:4
  |
1 | if $a <$b
  |    ^^^^^^
  = hint: a comparison has spaces around its symbol: `$a < $b`; a command in a variable has parentheses: `.succeeds. ($a <$b)`

error[command-as-condition]: a value before a redirection could be a command or an operand
 --> t:1:4
  |
1 | if $a< $b
  |    ^^^^^^
  = hint: a comparison has spaces around its symbol: `$a < $b`; a command in a variable has parentheses: `.succeeds. ($a< $b)`

error[misplaced-symbol]: unexpected `+`
 --> t:1:7
  |
1 | if (1)+ 2
  |       ^ expected `)`
  = hint: a symbol is written between two values, with spaces around it: `$a + $b`

error[unknown-operator]: `=` is not an operator here
 --> t:1:4
  |
1 | if $a = $b
  |    ^^^^^^^
  = hint: write `$a == $b`

error[unexpected]: expected a value
 --> t:1:9
  |
1 | if $a ==
  |         ^ the command ends here

error[chained-comparison]: comparisons don't chain
 --> t:1:11
  |
1 | if 1 < $x < 3
  |           ^ needs parentheses
  |      - the other one is here
  = hint: use parentheses, or join two comparisons with `&&`: `1 < $x && $x < 9`

error[unexpected]: unexpected `+`
 --> t:1:17
  |
1 | for x in 1 + (2 +)
  |                 ^ expected `)`
");
}

/// Operands, some of which are written as symbols.
const OPERANDS: [&str; 16] =
    ["-", "*", "/", "+", "%", "!", "==", "!=", "x", "$x", "-1", "a-b", "'<'", "\"&&\"", "a*", "-x"];
const OPERATORS: [&str; 8] =
    [".eq.", ".add.", ".sub.", ".and.", ".or.", ".lt.", ".mul.", ".contains."];

/// Random numbers by a linear congruential generator.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % end
    }

    /// Returns an expression of 2003 with all operands that are symbols plain, and in quotes.
    fn expression(&mut self, depth: usize) -> (String, String) {
        match self.below(if depth == 0 { 1 } else { 4 }) {
            1 => {
                let (plain, quoted) = self.expression(depth - 1);
                (format!("({plain})"), format!("({quoted})"))
            }
            2 => {
                let ((a, b), (c, d)) = (self.expression(depth - 1), self.expression(depth - 1));
                (format!("f({a}, {c})"), format!("f({b}, {d})"))
            }
            3 => {
                let ((a, b), (c, d)) = (self.expression(depth - 1), self.expression(depth - 1));
                let operator = OPERATORS[self.below(OPERATORS.len())];
                (format!("({a}) {operator} {c}"), format!("({b}) {operator} {d}"))
            }
            _ => {
                let operand = OPERANDS[self.below(OPERANDS.len())];
                let is_symbol =
                    !operand.contains(|c: char| c.is_ascii_alphanumeric() || c == '\'' || c == '"');
                (
                    operand.to_owned(),
                    if is_symbol { format!("'{operand}'") } else { operand.to_owned() },
                )
            }
        }
    }
}

#[test]
fn random_programs_of_2003_keep_their_meaning() {
    let mut dice = Dice(2003);
    for _ in 0..3000 {
        // `- (x)` is a call.
        let words: Vec<_> = (0..=dice.below(4)).map(|_| dice.expression(2)).collect();
        let (plain, quoted): (Vec<_>, Vec<_>) = words.iter().cloned().unzip();
        let (value, same_value) = dice.expression(3);
        for (text, same) in [
            (
                format!("for x in {}\nend", plain.join(" x ")),
                format!("for x in {}\nend", quoted.join(" x ")),
            ),
            (format!("if {value}\nend"), format!("if {same_value}\nend")),
            (
                format!("try while {value} for 5 minutes\nend"),
                format!("try while {same_value} for 5 minutes\nend"),
            ),
            (format!("return {value}"), format!("return {same_value}")),
        ] {
            let [text, same] = [text, same].map(|it| format!("{it}\nfunction f\nend\n"));
            let shown = |text: &str| match parse_part(text) {
                Ok(script) => first(&script),
                Err(errors) => vec![format!("{} errors", errors.errors.len())],
            };
            assert_eq!(shown(&text), shown(&same), "{text}");
        }
    }
}
