//! Functions and channels defined by the scripts run up to now.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::code::{Address, Instruction, Program};
use crate::channels::Rules;
use crate::values::Suspend;
use ftsh_syntax::ast::{Name, Redirect, RedirectionTarget, Word, WordPart};
use ftsh_syntax::nearest::nearest;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::vocabulary::FUNCTIONS;
use ftsh_syntax::{KnownNames, Script, SyntaxErrors};

/// Functions and channels by name.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    functions: BTreeMap<Name, (Arc<Program>, Address)>,
    /// Channels declared by a program, with their rules once the declaration was executed.
    channels: BTreeMap<Name, Option<Arc<Rules>>>,
}

impl Definitions {
    /// Adds the functions of a program and of the files that it uses, and the channels that they
    /// declare.
    pub(crate) fn add(&mut self, program: &Arc<Program>) {
        program.used().for_each(|used| self.add(used));
        for (name, address) in &program.functions {
            self.add_function(Arc::clone(name), (Arc::clone(program), *address));
        }
        for name in &program.channels {
            self.channels.entry(Arc::clone(name)).or_default();
        }
    }

    /// Defines a function.
    pub(crate) fn add_function(&mut self, name: Name, at: (Arc<Program>, Address)) {
        self.functions.insert(name, at);
    }

    /// Adds a channel, with its rules if the declaration was executed.
    pub(crate) fn add_channel(&mut self, name: Name, rules: Option<Arc<Rules>>) {
        self.channels.insert(name, rules);
    }

    /// Returns the function of a name, with the name as stored in the program.
    pub(crate) fn function(&self, name: &str) -> Option<(&Name, &(Arc<Program>, Address))> {
        self.functions.get_key_value(name)
    }

    /// Returns true if there is no function.
    pub(crate) fn has_no_functions(&self) -> bool {
        self.functions.is_empty()
    }

    /// Iterates over the functions.
    pub(crate) fn functions(&self) -> impl Iterator<Item = (&Name, &(Arc<Program>, Address))> {
        self.functions.iter()
    }

    /// Iterates over the channels.
    pub(crate) fn channels(&self) -> impl Iterator<Item = (&Name, &Option<Arc<Rules>>)> {
        self.channels.iter()
    }

    /// Returns the rules of a channel, once its declaration was executed.
    pub(crate) fn rules(&self, channel: &Name) -> Result<&Arc<Rules>, Suspend> {
        let rules = self.channels.get(channel).and_then(Option::as_ref);
        rules.ok_or_else(|| {
            Suspend::expression(
                Slug::ChannelOrder,
                format!("the channel `{channel}` is used before it is declared"),
            )
        })
    }

    /// Returns the failure of a call of an undefined function.
    pub(crate) fn undefined(&self, name: &str) -> Suspend {
        let known = self.functions.keys().map(|name| &**name);
        let meant = nearest(name, known.chain(FUNCTIONS.iter().map(|function| function.name)));
        let meant = meant.map(|meant| format!(", did you mean `{meant}`?")).unwrap_or_default();
        Suspend::expression(
            Slug::UnknownFunction,
            format!("the function `{name}` is not defined{meant}"),
        )
    }

    /// Parses a file that may use these functions and channels.
    pub(crate) fn parse(&self, name: &str, text: &[u8]) -> Result<Script, SyntaxErrors> {
        let channels: Vec<&str> = self.channels.keys().map(|name| &**name).collect();
        let functions: Vec<&str> = self.functions.keys().map(|name| &**name).collect();
        let known = KnownNames {
            functions: &functions,
            channels: &channels,
            is_open: true,
            is_part: true,
            has_used: false,
        };
        ftsh_syntax::parse_bytes_with(name, text, known)
    }

    /// Returns true if a program may run other programs, or use files whose file systems may hang.
    /// `runs` decides for names that are not functions.
    pub(crate) fn needs_supervisor(&self, program: &Program, runs: &dyn Fn(&str) -> bool) -> bool {
        program.code.iter().any(|instruction| match instruction {
            Instruction::Use(Some(used)) => self.needs_supervisor(used, runs),
            Instruction::Test(_) | Instruction::In | Instruction::With { .. } => true,
            Instruction::Redirect(redirects) | Instruction::Targets(redirects) => {
                opens_files(redirects)
            }
            Instruction::Command(command) if opens_files(&command.redirects) => true,
            Instruction::Command(command) => match &command.words[0].parts[..] {
                [WordPart::Bare(name)] => !self.functions.contains_key(name.as_str()) && runs(name),
                _ => true,
            },
            _ => false,
        })
    }
}

/// Returns true if a redirection opens another file than `/dev/null`, which never hangs.
fn opens_files(redirects: &[Redirect]) -> bool {
    let is_null =
        |word: &Word| matches!(&word.parts[..], [WordPart::Bare(it)] if it == "/dev/null");
    redirects.iter().any(|it| matches!(&it.target, RedirectionTarget::File(word) if !is_null(word)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::lower;

    fn definitions(text: &str) -> (Definitions, Arc<Program>) {
        let script = ftsh_syntax::parse("script", text).expect("a script");
        let program = Arc::new(lower(&script));
        let mut definitions = Definitions::default();
        definitions.add(&program);
        (definitions, program)
    }

    #[test]
    fn a_channel_has_rules_once_it_is_declared() {
        let (mut definitions, _) = definitions("channel disk at most 2\n");
        let disk = Name::from("disk");
        assert!(definitions.rules(&disk).is_err());
        definitions.add_channel(Name::clone(&disk), Some(Arc::default()));
        assert!(definitions.rules(&disk).is_ok());
        assert!(definitions.channels().map(|(name, _)| name).eq([&disk]));
    }

    #[test]
    fn only_a_script_without_programs_and_files_needs_no_supervisor() {
        for (text, needs) in [
            ("function greet\n echo hi\nend\ngreet\n", false),
            ("ls\n", true),
            ("$command\n", true),
            ("echo hi -> v\n", false),
            ("echo hi > /dev/null\n", false),
            ("echo hi > file\n", true),
            ("if .exists. file\n echo hi\nend\n", true),
            ("try\n echo hi\nend > file\n", true),
        ] {
            let (definitions, program) = definitions(text);
            assert_eq!(
                definitions.needs_supervisor(&program, &|name| name != "echo"),
                needs,
                "{text}"
            );
        }
    }

    #[test]
    fn a_function_that_is_not_defined_may_be_misspelled() {
        let (definitions, _) = definitions("function greet\n echo hi\nend\n");
        assert!(definitions.function("greet").is_some());
        let Suspend::Failed(.., message) = definitions.undefined("gret") else {
            panic!("no failure")
        };
        assert!(message.contains("`greet`"), "{message}");
    }
}
