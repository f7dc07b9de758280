//! Text of programs.

use super::program::{CHANNEL, DIRECTORY, FILE};
use super::tree::{
    Block, Command, Expr, ForAll, Form, Hold, Input, Pace, Pattern, Piece, Try, Word,
};

/// Formats commands, one per line.
pub(super) fn block(commands: &[Command]) -> String {
    commands.iter().map(|one| command(one) + "\n").collect::<Vec<_>>().concat()
}

pub(super) fn command(one: &Command) -> String {
    match one {
        Command::Args([first, second, rest], default) => {
            format!("args \"Summary.\" {first} -v {second}={default} {rest}...")
        }
        Command::Echo(words) => format!("echo{}", list(words)),
        Command::Pipe(words) => format!("echo{} | cat", list(words)),
        Command::Status(code) => format!("sh -c \"exit {code}\""),
        Command::Missing => "no_such_program".into(),
        Command::Accept(status, inside) => {
            format!("accept {status} {}\necho status $status", command(inside))
        }
        Command::Keep(inside) => format!("keep {}", command(inside)),
        Command::Show(name) => format!("cat -< {name}"),
        Command::Print(_) => unreachable!("nobody writes this"),
        Command::Assign(name, value) => format!("{name}={}", expr(value)),
        Command::Export(name, value) => format!("export {name}={}", expr(value)),
        Command::Local(name, None) => format!("local {name}"),
        Command::Local(name, Some(value)) => format!("local {name}={}", expr(value)),
        Command::Read(names, input) => format!("read {}{}", names.join(" "), self::input(input)),
        Command::List(name, words, true) => format!("list {name} in{}", list(words)),
        Command::List(name, words, false) => format!("list add {name}{}", list(words)),
        Command::Unset(name) => format!("{name}="),
        Command::If(condition, yes, no) => {
            format!("if {}\n{}else\n{}end", decision(condition), block(yes), block(no))
        }
        Command::Case(value, arms, otherwise) => {
            let patterns = |patterns: &[Pattern]| {
                let texts: Vec<_> = patterns.iter().map(pattern).collect();
                format!(" {}", texts.join(" "))
            };
            let arms =
                arms.iter().map(|(all, body)| format!("when{}\n{}", patterns(all), block(body)));
            let otherwise = otherwise.as_ref().map(|it| format!("else\n{}", block(it)));
            let rest = arms.chain(otherwise).collect::<String>();
            format!("case {}\n{rest}end", expr(value))
        }
        Command::Count(name, end, body) => format!(
            "{name}=0\nwhile ${name} .lt. {end}\n{name}=${name} .add. 1\n{}end",
            block(body)
        ),
        Command::For(name, words, body) => {
            format!("for {name} in{}\n{}end", list(words), block(body))
        }
        Command::Incoming(name, by, from, body) => {
            let by = by.map(|by| format!(" by \"{by}\"")).unwrap_or_default();
            format!("for {name} from input{by}\n{}end{}", block(body), input(from))
        }
        Command::Lines(name, value, body) => {
            format!("for {name} in lines({})\n{}end", expr(value), block(body))
        }
        Command::Values(name, value, body) => {
            format!("for {name} in json({}, .)\n{}end", expr(value), block(body))
        }
        Command::Split(name, value, separator, body) => {
            format!("for {name} in split({}, \"{separator}\")\n{}end", expr(value), block(body))
        }
        Command::Range(name, [from, to], step, body) => {
            let step = step.map(|step| format!(" .step. {step}")).unwrap_or_default();
            // The ends may be calculations.
            let ends = match (from + to) % 2 {
                0 => format!("{from} .to. {to}"),
                _ => format!("{from} + 1 - 1 .to. {to} * 1"),
            };
            format!("for {name} in {ends}{step}\n{}end", block(body))
        }
        Command::Reading(names, from, body) => {
            let names = names.join(" ");
            format!("while .succeeds. (read {names})\n{}end -< {from}", block(body))
        }
        Command::Write(text) => format!("sh -c \"echo {text} >> $top/{FILE}\""),
        Command::Written => format!("cat $top/{FILE}"),
        Command::ForAny(name, words, is_atomic, body) => {
            let atomic =
                if *is_atomic { format!(" atomic in $top/{DIRECTORY}") } else { String::new() };
            format!("forany {name} in{} in order{atomic}\n{}end", list(words), block(body))
        }
        Command::Hedge(name, words, at_most, body) => format!(
            "forany {name} in{} in order{} hedge after 1 minute\n{}end",
            list(words),
            number("at most", at_most.as_ref()),
            block(body)
        ),
        Command::ForAll(all) => for_all(all),
        Command::Piped(inside) => format!("if true\n{}end | cat", block(inside)),
        Command::Fed(words, names, body) => {
            let (words, names) = (list(words), names.join(" "));
            format!("echo{words} | while .succeeds. (read {names})\n{}end", block(body))
        }
        Command::Try(it) => try_(it),
        Command::Limit(body, catch) => {
            let catch = catch.as_ref().map(|catch| format!("catch\n{}", block(catch)));
            let watch = if catch.is_some() {
                " stalled 1 hour memory 1 TB signal INT no leftovers"
            } else {
                ""
            };
            format!("limit 1 hour{watch}\n{}{}end", block(body), catch.unwrap_or_default())
        }
        Command::Handled(inside, catch, finally) => {
            let text = command(inside);
            let (text, redirects) = text.rsplit_once("end").expect("a structure");
            format!(
                "{text}{}{}end{redirects}",
                part("catch", catch.as_ref()),
                part("finally", finally.as_ref())
            )
        }
        Command::In(body) => format!("in $top/{DIRECTORY}\n{}end", block(body)),
        Command::With(body) => format!("with sleep 1000\n{}end", block(body)),
        Command::Line(name, words, printed) => {
            format!("limit 1 hour -- for {name} in{} -- echo{}", list(words), list(printed))
        }
        Command::Where => format!("echo ${{ends($PWD, \"/{DIRECTORY}\")}}"),
        Command::Capture(inside, name, append) => {
            let arrow = if *append { "->>" } else { "->" };
            format!("{} {arrow} {name}", command(inside))
        }
        Command::Call(function, words) => format!("f{function}{}", list(words)),
        Command::Parameters(required, optional, rest) => {
            let required = required.iter().map(|it| format!(" {it}"));
            let optional = optional.map(|it| format!(" {it}='d w'"));
            let rest = rest.map(|it| format!(" {it}..."));
            required.chain(optional).chain(rest).collect::<Vec<_>>().concat()
        }
        Command::Return(None) => "return".into(),
        Command::Return(Some(value)) => format!("return {}", expr(value)),
        Command::Jump(true) => "break".into(),
        Command::Jump(false) => "continue".into(),
        Command::Shift => "shift".into(),
        Command::Failure(words) => format!("failure{}", list(words)),
        Command::Giveup => "giveup".into(),
        Command::Exit(code) => format!("exit {code}"),
    }
}

/// Formats a part of a structure.
fn part(name: &str, part: Option<&Block>) -> String {
    part.map(|it| format!("{name}\n{}", block(it))).unwrap_or_default()
}

fn try_(it: &Try) -> String {
    let Try { times, pace, condition, hold, body, catch, finally } = it;
    // A signal to canceled attempts changes no result.
    let signal = if *times == 2 { " signal INT" } else { "" };
    // Attempts take no time, so that a learned limit never passes.
    let each = if times % 2 == 0 { " each usual or 1 hour" } else { "" };
    // Conditions that no program of these scripts meets change nothing.
    let watch = if *times == 2 { " stalled 1 hour memory 1 TB" } else { "" };
    let pace = match pace {
        Pace::None => " backoff none".to_owned(),
        Pace::Every => " every 1 ms".into(),
        Pace::Full => " backoff full from 1 ms to 2 ms".into(),
        Pace::Normal => " backoff normal from 1 ms to 2 ms by 1.5 jitter 50%".into(),
        Pace::Through => format!(" backoff none through {CHANNEL}"),
    };
    let condition = condition.map(|(is_equal, kind)| {
        format!(" while $error_kind {} {kind}", if is_equal { ".eq." } else { ".ne." })
    });
    let condition = condition.unwrap_or_default();
    let hold = match hold {
        None => String::new(),
        Some(Hold::Input) => " same input".into(),
        Some(Hold::Output) => " atomic".into(),
        Some(Hold::Files) => format!(" atomic in $top/{DIRECTORY}"),
    };
    // No program of these scripts leaves a process.
    let leftovers = if *times == 1 { " no leftovers" } else { "" };
    let limit = if *times == 3 { "for 1 hour or 3 times".into() } else { format!("{times} times") };
    let (catch, finally) = (part("catch", catch.as_ref()), part("finally", finally.as_ref()));
    let body = block(body);
    format!(
        "try {limit}{each}{watch}{pace}{signal}{leftovers}{condition}{hold}\n{body}{catch}{finally}end"
    )
}

fn for_all(all: &ForAll) -> String {
    let form = match all.form {
        None => "",
        Some(Form::Grouped) => " output grouped",
        Some(Form::InOrder) => " output grouped in order",
        Some(Form::Tagged) => " output tagged",
    };
    let words = match all.input {
        Some(_) => "from input".into(),
        None => format!("in{}", list(&all.words)),
    };
    format!(
        "forall {} {words}{}{}{}{form}{}{}{}{}{}\n{}end{}",
        all.name,
        number("at most", all.at_most.as_ref()),
        if all.keep_going { " keep going" } else { "" },
        if all.finish_running { " finish running" } else { "" },
        number("at least", all.at_least.as_ref()),
        // Resources that are there change nothing.
        if all.keep_going { " retry lost 2 times while free 1 kB while load 100000" } else { "" },
        all.once.map(|file| format!(" once in $top/{file}.done")).unwrap_or_default(),
        if all.is_atomic { format!(" atomic in $top/{DIRECTORY}") } else { String::new() },
        all.takes
            .map(|file| format!(" takes missing/{file} gives \"{file}.${{{}}}\"", all.name))
            .unwrap_or_default(),
        block(&all.body),
        all.input.as_ref().map(input).unwrap_or_default(),
    )
}

/// Formats a clause with a number.
fn number(clause: &str, value: Option<&Word>) -> String {
    value.map(|value| format!(" {clause} {}", word(value))).unwrap_or_default()
}

fn input(input: &Input) -> String {
    match input {
        Input::Inherited => String::new(),
        Input::Variable(name) => format!(" -< {name}"),
        Input::Line(line) => format!(" <<< {}", word(line)),
    }
}

fn list(words: &[Word]) -> String {
    words.iter().map(|word| format!(" {}", self::word(word))).collect::<Vec<_>>().concat()
}

fn word(pieces: &Word) -> String {
    let piece = |piece: &Piece| match piece {
        Piece::Text(text) => (*text).to_owned(),
        Piece::Variable(name) => format!("${{{name}}}"),
        Piece::Arguments => "\"$@\"".into(),
        Piece::Elements(name) => format!("${{{name}[@]}}"),
        Piece::Slice(name, from, to) => {
            let end = |end: Option<i64>| end.map(|end| end.to_string()).unwrap_or_default();
            format!("${{{name}[{}..{}]}}", end(*from), end(*to))
        }
        Piece::Element(name, at) => format!("${{{name}[{at}]}}"),
        Piece::Quoted(pieces) => format!("\"{}\"", word(pieces)),
        Piece::Of(function, argument) => format!("${{{function}({})}}", word(argument)),
    };
    pieces.iter().map(piece).collect::<Vec<_>>().concat()
}

fn pattern(pattern: &Pattern) -> String {
    match pattern {
        Pattern::Word(pieces) => word(pieces),
        Pattern::Begins(name) => format!("${{{name}}}*"),
        Pattern::Ends(text) => format!("*{text}"),
        Pattern::Digit => "[0-9]?".into(),
    }
}

/// Writes a condition, in which a command stands as it is.
fn decision(condition: &Expr) -> String {
    match condition {
        Expr::Succeeds(inside) => command(inside),
        Expr::Not(operand) if matches!(**operand, Expr::Succeeds(_)) => {
            format!("! {}", decision(operand))
        }
        // Without quotes, a word could be a command.
        Expr::Word(pieces) if !matches!(pieces[..], [Piece::Quoted(_)]) => {
            let is_plain = |piece: &Piece| matches!(piece, Piece::Text(_) | Piece::Variable(_));
            if pieces.iter().all(is_plain) { format!("\"{}\"", word(pieces)) } else { word(pieces) }
        }
        Expr::Not(operand) => format!("!({})", decision(operand)),
        Expr::Binary(operator @ (".and." | ".or."), left, right) => {
            format!("({}) {operator} ({})", decision(left), decision(right))
        }
        condition => expr(condition),
    }
}

fn expr(value: &Expr) -> String {
    match value {
        Expr::Word(pieces) => word(pieces),
        Expr::Not(operand) => format!(".not. ({})", expr(operand)),
        Expr::Binary(operator, left, right) => {
            let text = format!("({}) {operator} ({})", expr(left), expr(right));
            // A symbol means nothing outside of parentheses in some places.
            if operator.starts_with('.') { text } else { format!("({text})") }
        }
        Expr::Of(function, value) => format!("{function}({})", expr(value)),
        Expr::Replace(value, this, with) => format!("replace({}, {this}, {with})", expr(value)),
        Expr::Newer(value, other) => format!("newer({}, {})", expr(value), expr(other)),
        Expr::Digits(value) => format!("match({}, '[0-9]+')", expr(value)),
        Expr::Json(value, filter) => format!("json({}, '{filter}')", expr(value)),
        Expr::Succeeds(inside) => format!(".succeeds. ({})", command(inside)),
        Expr::Call(function, arguments) => {
            let arguments: Vec<_> = arguments.iter().map(expr).collect();
            format!("f{function}({})", arguments.join(", "))
        }
    }
}
