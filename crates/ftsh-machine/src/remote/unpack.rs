//! Execution of a branch of another machine's `forall`. The branch becomes the single branch of a
//! `forall` on this machine, so that `exit`, `exec`, `return` and failures have the meaning they
//! have in a branch.

use std::sync::Arc;

use bstr::BString;

use crate::core::Core;
use crate::effect::{BufferId, Directory, Effect};
use crate::elsewhere::RemoteRoot;
use crate::lower::lower_elsewhere;
use crate::outcome::Failure;
use crate::packed::{
    CodePlace, PackedBranch, PackedFailure, PackedValue, PackedVariable, Text, Unrunnable,
};
use crate::program::{Definitions, Instruction, Loop, Program};
use crate::tasks::{ParentContext, Task};
use crate::values::{List, Range, Value};
use crate::variables::{Variable, Variables};
use ftsh_syntax::{KnownNames, Script, Source, parse_with};

/// Texts of a packed branch, as programs.
pub(crate) struct Unpacked {
    /// Functions and channels available to the branch.
    pub definitions: Definitions,
    sources: Vec<Arc<Source>>,
    program: Arc<Program>,
    code: Arc<Loop>,
}

impl Unpacked {
    /// Parses the texts of a branch.
    pub(crate) fn new(packed: &PackedBranch) -> Result<Self, Unrunnable> {
        let programs = programs(packed)?;
        let program = |place: CodePlace| {
            let program = programs.get(place.text).and_then(Option::as_ref);
            let program = program.filter(|program| place.at < program.code.len());
            program.cloned().ok_or(Unrunnable::OtherProgram)
        };
        let main = program(packed.place)?;
        let Some(Instruction::ForAll { code, .. }) = main.code.get(packed.place.at) else {
            return Err(Unrunnable::OtherProgram);
        };
        let code = Arc::clone(code);
        let mut definitions = Definitions::default();
        for (name, place) in &packed.functions {
            definitions.add_function(Arc::clone(name), (program(*place)?, place.at));
        }
        for (name, rules) in &packed.channels {
            definitions.add_channel(Arc::clone(name), rules.clone());
        }
        let sources = packed.texts.iter().map(|text| Arc::clone(&text.source)).collect();
        Ok(Self { definitions, sources, program: main, code })
    }

    /// Positions the script's task of a machine at the `forall` of the branch. Returns the loop and
    /// the word.
    pub(crate) fn enter(
        self,
        packed: PackedBranch,
        task: &mut Task,
        core: &mut Core,
    ) -> Result<(Arc<Loop>, Value), Unrunnable> {
        let PackedBranch { variables, config, mut around, .. } = packed;
        let variables = variables.into_iter().map(|variable| {
            let PackedVariable { name, value, exported, inherited } = variable;
            Ok((name, Variable { value: unpacked(core, value)?, exported, inherited }))
        });
        let variables = variables.collect::<Result<_, _>>()?;
        let word = unpacked(core, packed.word)?;
        task.program = self.program;
        task.at = packed.place.at;
        task.variables = Variables::of(variables, config.secrets);
        task.directory = Directory::at(packed.directory);
        task.umask = Some(config.umask);
        task.slot = packed.slot;
        task.files = Some(Box::new(packed.files));
        task.inherited = Arc::new(ParentContext {
            deadline: config.deadline,
            attempt: around.attempt,
            failure: failure(std::mem::take(&mut around.caught), &self.sources),
            succeeded: around.succeeded,
            branches: None,
            depth: around.depth,
            is_guarded: around.is_guarded,
            scratch: None,
            view: None,
        });
        core.parts().scopes.set_root_signal(around.signal);
        let root = RemoteRoot { texts: self.sources, around, ending: None, attempts: 0 };
        core.parts().remote.set_root(root);
        Ok((self.code, word))
    }
}

/// Unpacks a value. The output of a command is stored with the driver again.
fn unpacked(core: &mut Core, packed: PackedValue) -> Result<Value, Unrunnable> {
    Ok(match packed {
        PackedValue::Text(text) => Value::from(text),
        PackedValue::Integer(integer) => Value::Integer(integer),
        PackedValue::Boolean(boolean) => Value::Boolean(boolean),
        PackedValue::Range(first, last, step) => {
            Value::Range(Range::new(first, last, step).map_err(|_| Unrunnable::OtherProgram)?)
        }
        PackedValue::List(elements) => {
            Value::List(Arc::new(list(&elements).ok_or(Unrunnable::OtherProgram)?))
        }
        PackedValue::Written(content) => {
            let buffer = core.new_handle(BufferId);
            core.request(Effect::Fill(buffer.id(), content));
            Value::Buffer(buffer)
        }
    })
}

/// Lowers those texts that are programs.
fn programs(packed: &PackedBranch) -> Result<Vec<Option<Arc<Program>>>, Unrunnable> {
    // A file may use channels declared elsewhere.
    let channels: Vec<&str> = packed.channels.iter().map(|(name, _)| &**name).collect();
    let functions: Vec<&str> = packed.functions.iter().map(|(name, _)| &**name).collect();
    let programs = packed.texts.iter().map(|Text { source, length, calls_read }| {
        let Some(length) = length else { return Ok(None) };
        let known = KnownNames {
            channels: &channels,
            functions: &functions,
            is_open: true,
            is_part: false,
            has_used: false,
        };
        let script = parse_with(source.name(), source.text(), known)
            .map_err(|_| Unrunnable::Text(source.name().to_string()))?;
        let script = Script { source: Arc::clone(source), ..script };
        let program = lower_elsewhere(&script, *calls_read);
        if program.code.len() != *length {
            return Err(Unrunnable::OtherProgram);
        }
        Ok(Some(Arc::new(program)))
    });
    programs.collect()
}

/// Unpacks a failure with its chain of explanations; `None` for an empty chain.
pub(crate) fn failure(chain: Vec<PackedFailure>, sources: &[Arc<Source>]) -> Option<Arc<Failure>> {
    chain.into_iter().rev().fold(None, |earlier, PackedFailure { failure, text }| {
        let source = sources.get(text).cloned().unwrap_or_default();
        Some(Arc::new(Failure { source, earlier, ..failure }))
    })
}

/// Unpacks a list; `None` if it is too long.
fn list(elements: &[BString]) -> Option<List> {
    let mut list = List::default();
    elements.iter().try_for_each(|element| list.push(element)).ok()?;
    Some(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::FailureKind;

    #[test]
    fn a_chain_of_failures_finds_its_texts() {
        let packed = |message: &str, text, line| PackedFailure {
            failure: Failure {
                line,
                ..Failure::new(FailureKind::Exit, 1, message.into(), String::new())
            },
            text,
        };
        let sources = [("script", "a"), ("lib", "a\nfail")];
        let sources = sources.map(|(name, text)| Arc::new(Source::new(name, text)));
        let chain = vec![packed("last", 1, 2), packed("first", 0, 1), packed("lost", 2, 1)];
        let failure = failure(chain, &sources).expect("a failure");
        assert_eq!(failure.to_string(), "lib:2: last");
        assert_eq!(failure.source.line_text(2), "fail");
        let earlier = failure.earlier.as_deref().expect("its explanation");
        assert_eq!(earlier.to_string(), "script:1: first");
        let earlier = earlier.earlier.as_deref().expect("its explanation");
        assert_eq!((earlier.to_string().as_str(), &earlier.earlier), (":1: lost", &None));
    }
}
