//! Builtins for the current directory and the umask.

use std::sync::Arc;

use bstr::{BString, ByteSlice};

use super::builtin::{Arguments, Builtin, Execution};
use crate::commands::CommandRunner;
use crate::commands::calls::CommandStart;
use crate::core::Core;
use crate::effect::{Action, Query};
use crate::eval::Expander;
use crate::event::Reply;
use crate::frames::FrameKind;
use crate::tasks::Task;
use crate::values::{Suspend, Value};
use crate::variables::Variable;
use ftsh_syntax::slug::Slug;

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin {
        name: "cd",
        usage: &["cd [dir]", "cd -"],
        help: "changes the directory to `dir` or to `$HOME`; with `-`, back to the one before",
        details: "",
        examples: &[("cd /tmp\ncd /\ncd -\npwd", "/tmp\n")],
        arguments: Arguments::Whole,
        run: Execution::Shell(cd),
    },
    Builtin {
        name: "pwd",
        usage: &["pwd [-P]"],
        help: "prints the directory; with `-P`, its path without symbolic links",
        details: "",
        examples: &[("cd /\npwd", "/\n")],
        arguments: Arguments::Split,
        run: Execution::Driver(pwd),
    },
    Builtin {
        name: "umask",
        usage: &["umask [mode]"],
        help: "prints or sets the permissions that new files do not get",
        details: "With `umask 077`, only the owner can read new files. A mode applies to later commands, \
                  like the directory of `cd`; in a branch of `forall`, to that branch.",
        examples: &[("umask 027\numask", "0027\n")],
        arguments: Arguments::Whole,
        run: Execution::Setting { print: print_umask, change: umask },
    },
];

fn cd(commands: &mut CommandRunner<'_>, task: &mut Task, args: &[BString]) -> Result<(), Suspend> {
    let variable = |name: &str| match task.variables.get(name) {
        Some(variable) => {
            Ok(Expander::new(commands.core, task).text(&variable.value)?.into_owned())
        }
        None => Err(Suspend::builtin(
            Slug::UnsetVariable,
            format!("cd: the variable `{name}` is not set"),
        )),
    };
    let target = match args {
        [] => variable("HOME")?,
        [back] if *back == "-" => variable("OLDPWD")?,
        [target] => target.clone(),
        _ => return Err(Suspend::usage("cd takes one directory")),
    };
    enter(task, target)
}

/// Begins an `in`. The directory stays on the stack until the driver has answered.
pub(crate) fn begin_in(core: &Core, task: &mut Task) -> Result<(), Suspend> {
    let value = task.stack.last().ok_or(Suspend::Broken("an `in` has no directory"))?;
    let directory = Expander::new(core, task).text(value)?.into_owned();
    let before = Box::new(task.working_directory());
    enter(task, directory)?;
    task.stack.pop();
    task.enter(FrameKind::In(before));
    Ok(())
}

/// Changes the directory of a task.
fn enter(task: &mut Task, target: BString) -> Result<(), Suspend> {
    let before = task.absolute_directory()?;
    let query = Query::Directory(target);
    let Some(Reply::Text(directory)) = task.answer(&query) else {
        return Err(Suspend::Pending(query));
    };
    let directory = directory.clone();
    for (name, value) in [("OLDPWD", before), ("PWD", Some(directory.clone()))] {
        let exported = |value| Variable { value, exported: true, inherited: false };
        task.variables.put(&name.into(), value.map(Value::from).map(exported));
    }
    task.directory.path = Some(Arc::new(directory));
    Ok(())
}

fn pwd(task: &Task, args: &[BString]) -> Result<CommandStart, Suspend> {
    let directory = match args {
        [physical] if *physical == "-P" => physical_directory(task)?,
        [] => task.absolute_directory()?,
        [logical] if *logical == "-L" => task.absolute_directory()?,
        _ => return Err(Suspend::usage("pwd takes only `-P`")),
    };
    let mut directory = directory.ok_or_else(|| {
        Suspend::builtin(Slug::LostDirectory, "the current directory is gone: `cd` to another one")
    })?;
    directory.push(b'\n');
    Ok(CommandStart::new(Action::Print(directory)))
}

/// Returns the task's directory without symbolic links.
fn physical_directory(task: &Task) -> Result<Option<BString>, Suspend> {
    match task.answer(&Query::PhysicalDirectory) {
        Some(Reply::Text(directory)) => Ok(Some(directory.clone())),
        Some(_) => Ok(None),
        None => Err(Suspend::Pending(Query::PhysicalDirectory)),
    }
}

fn print_umask(commands: &CommandRunner<'_>, task: &Task) -> BString {
    format!("{:04o}\n", task.umask.unwrap_or(commands.core.config().umask)).into()
}

fn umask(_: &mut CommandRunner<'_>, task: &mut Task, args: &[BString]) -> Result<(), Suspend> {
    task.umask = Some(mode(args)?);
    Ok(())
}

/// Parses the octal digits of a umask.
fn mode(args: &[BString]) -> Result<u16, Suspend> {
    let [mode] = args else { return Err(Suspend::usage("umask takes one mode, like `022`")) };
    let is_octal = mode.iter().all(|digit| (b'0'..=b'7').contains(digit));
    let number = mode.to_str().ok().filter(|_| is_octal);
    let number = number.and_then(|digits| u16::from_str_radix(digits, 8).ok());
    number.filter(|umask| *umask <= 0o777).ok_or_else(|| {
        let takes = "umask takes octal digits from 0 to 777, for the permissions removed";
        Suspend::usage(format!("{takes} from owner, group and others: `umask 027`, not `{mode}`"))
    })
}
