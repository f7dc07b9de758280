//! Topics of `help` at the prompt about options and variables of the environment.

use clap::Arg;

use super::{WITHOUT_OPTION, flags, names, setting, value_name};
use ftsh_ide::help::ProgramTopic;

/// Variables that commands find in their environment.
pub const OF_COMMANDS: [(&str, &str); 4] = [
    ("FTSH_ATTEMPT", "the number of the current attempt, from 1"),
    (
        "FTSH_DEADLINE",
        "the deadline of the command, if there is one: seconds since 1970, `@` and a time since boot",
    ),
    ("FTSH_INSIDE", "the channels in which the attempt has a slot"),
    ("FTSH_SCOPE", "the tag by which the shell finds its processes"),
];

/// Returns topics of `help`: options, their variables, variables without an option, and variables
/// of commands.
pub fn all() -> Vec<ProgramTopic> {
    let command = flags::command();
    let meaning = |option: &Arg| option.get_help().map(ToString::to_string).unwrap_or_default();
    let value = |option: &Arg| value_name(option).map(|it| format!(" {it}")).unwrap_or_default();
    let options = command.get_arguments().flat_map(|option| {
        let (value, meaning) = (value(option), meaning(option));
        let text = move |name: &str| format!("`ftsh {name}{value}`: {meaning}.\n");
        names(option).into_iter().map(move |name| (name.clone(), text(&name)))
    });
    let of_options = command.get_arguments().filter_map(|option| {
        let setting = setting(names(option).first()?)?;
        let nested = if setting.is_private {
            "The variable does not apply to shells that a script starts."
        } else {
            "The variable also applies to shells that a script starts."
        };
        let (name, value, meaning) = (setting.option, value(option), meaning(option));
        let text = format!("As the option `{name}{value}`: {meaning}. {nested}\n");
        Some((setting.variable.to_owned(), text))
    });
    let others = WITHOUT_OPTION.into_iter().flat_map(|(names, meaning)| {
        names.split(", ").map(move |name| {
            let prefix = if name.starts_with('_') { "FTSH" } else { "" };
            (format!("{prefix}{name}"), format!("In the environment of the shell: {meaning}.\n"))
        })
    });
    let of_commands = OF_COMMANDS.into_iter().map(|(name, meaning)| {
        (name.to_owned(), format!("In the environment of commands: {meaning}.\n"))
    });
    let mut topics: Vec<ProgramTopic> = Vec::new();
    for (name, text) in options.chain(of_options).chain(others).chain(of_commands) {
        match topics.iter_mut().find(|topic| topic.name == name) {
            Some(topic) => topic.text += &format!("\n{text}"),
            None => topics.push(ProgramTopic { name, text }),
        }
    }
    topics
}
