//! Builtins that print and read.

use bstr::BString;

use super::builtin::{Arguments, Builtin, Execution};
use crate::commands::calls::CommandStart;
use crate::effect::Action;
use crate::eval::variable_name;
use crate::size;
use crate::tasks::Task;
use crate::values::Suspend;

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin {
        name: "echo",
        usage: &["echo [-n] words"],
        help: "prints its words with spaces between; with `-n`, without a newline",
        details: "",
        examples: &[("echo -n one\necho ' two'  three", "one two three\n")],
        arguments: Arguments::Split,
        run: Execution::Driver(|_, args| Ok(CommandStart::new(Action::Print(echo(args)?)))),
    },
    Builtin {
        name: "read",
        usage: &["read name", "read a b c"],
        help: "reads a line from standard input into variables",
        details: "With several names, each gets a word and the last the rest. Fails at the end of \
                  input.",
        examples: &[("read first rest <<< 'a b c'\necho \"$rest\"", "b c\n")],
        arguments: Arguments::Split,
        run: Execution::Driver(read),
    },
];

fn read(_: &Task, args: &[BString]) -> Result<CommandStart, Suspend> {
    if args.is_empty() {
        return Err(Suspend::usage("read needs a variable's name"));
    }
    let reads = args.iter().map(variable_name).collect::<Result<_, _>>()?;
    Ok(CommandStart { reads, ..CommandStart::new(Action::ReadLine) })
}

fn echo(args: &[BString]) -> Result<BString, Suspend> {
    match args.split_first() {
        Some((first, words)) if first == "-n" => size::join(words.iter(), b""),
        _ => size::join(args.iter(), b"\n"),
    }
}
