//! Builtins of variables.

use bstr::{BString, ByteSlice};

use super::builtin::{Arguments, Builtin, Execution};
use crate::commands::CommandRunner;
use crate::eval::{branches_of, unset_variable, variable_name};
use crate::tasks::Task;
use crate::values::{Suspend, Value};
use crate::variables::Variable;
use ftsh_syntax::slug::Slug;

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin {
        name: "local",
        usage: &["local name", "local name=expression"],
        help: "sets a variable until the function ends",
        details: "Functions called inside see the variable.",
        examples: &[("n=1\nfunction f\nlocal n=2\necho $n\nend\nf\necho $n", "2\n1\n")],
        arguments: Arguments::Split,
        run: Execution::Shell(|_, _, _| {
            Err(Suspend::usage("local is written out, with one name: `local name=value`"))
        }),
    },
    Builtin {
        name: "export",
        usage: &["export name", "export name=value"],
        help: "puts variables into the environment of commands",
        details: "",
        examples: &[("n=1\nexport n m=2\necho $n $m", "1 2\n")],
        arguments: Arguments::Assignments,
        run: Execution::Shell(export),
    },
    Builtin {
        name: "unset",
        usage: &["unset name"],
        help: "removes variables",
        details: "",
        examples: &[("n=1\nunset n\necho ${n:-gone}", "gone\n")],
        arguments: Arguments::Split,
        run: Execution::Shell(unset),
    },
];

fn unset(
    commands: &mut CommandRunner<'_>,
    task: &mut Task,
    args: &[BString],
) -> Result<(), Suspend> {
    for name in args {
        let name = variable_name(name)?;
        unset_variable(commands.core, task, &name);
    }
    Ok(())
}

fn export(_: &mut CommandRunner<'_>, task: &mut Task, args: &[BString]) -> Result<(), Suspend> {
    if args.is_empty() {
        return Err(Suspend::usage("export needs a variable's name"));
    }
    for arg in args {
        let (name, value) = match arg.split_once_str("=") {
            Some((name, value)) => (name.into(), Some(Value::from(BString::from(value)))),
            None => (arg.clone(), None),
        };
        let name = variable_name(&name)?;
        let set = task.variables.get(&name);
        let is_list = match set {
            Some(variable) => matches!(variable.value, Value::List(_)),
            None => branches_of(task, &name).is_some(),
        };
        let value = match (value, set) {
            (Some(value), _) => value,
            _ if is_list => {
                return Err(Suspend::usage(format!(
                    "export: `{name}` is a list, and the environment holds text: `x=${name}` and \
                     `export x` pass the elements as lines"
                )));
            }
            (None, Some(variable)) => variable.value.clone(),
            (None, None) => {
                return Err(Suspend::builtin(
                    Slug::UnsetVariable,
                    format!("export: the variable `{name}` is not set"),
                ));
            }
        };
        let variable = Variable { value, exported: true, inherited: false };
        task.variables.put(&name, Some(variable));
    }
    Ok(())
}
