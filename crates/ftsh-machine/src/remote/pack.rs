//! Packing of branches: captures a branch of a `forall` at the moment of its beginning.

use std::num::NonZeroU32;
use std::sync::Arc;

use crate::attempts::{TryFrame, TryPhase};
use crate::config::Config;
use crate::core::Core;
use crate::effect::{Query, TaskId, Watch};
use crate::elsewhere::RemoteRoot;
use crate::endings::{Retry, TaskEnding};
use crate::event::Reply;
use crate::outcome::{Failure, FailureKind, Outcome};
use crate::packed::{
    BranchEnd, BranchFiles, CodePlace, EndedBranch, PackedBranch, PackedContext, PackedFailure,
    PackedValue, PackedVariable, Text, Unpackable,
};
use crate::program::{Address, Definitions, Program};
use crate::random::Random;
use crate::record::Level;
use crate::record::spans::RemoteSpans;
use crate::tasks::Task;
use crate::trace::Trace;
use crate::values::{Suspend, Value};
use ftsh_syntax::Source;

/// Maximum length of a chain of failures that explain each other.
const MAX_CAUSES: usize = 16;

/// Queries the information for packing branches that only the driver has.
pub(crate) fn query_for_packing(task: &Task) -> Result<(), Suspend> {
    if task.directory.path.is_none() {
        task.absolute_directory()?;
    }
    for (_, variable) in task.variables.iter() {
        if let Value::Buffer(buffer) = &variable.value {
            let query = Query::Buffer(buffer.id());
            if task.answer(&query).is_none() {
                return Err(Suspend::Pending(query));
            }
        }
    }
    Ok(())
}

/// Packs branches, without changing the machine.
pub(crate) struct Packer<'a> {
    pub core: &'a Core,
    /// Functions and channels sent along with branches.
    pub definitions: &'a Definitions,
    /// Source of the seeds of branches.
    pub random: &'a Random,
}

impl Packer<'_> {
    /// Packs a branch of the innermost `forall`. Returns the branch as plain data, with the texts
    /// it refers to. Call [`query_for_packing`] first.
    pub(crate) fn pack(
        &self,
        task: &Task,
        word: &Value,
        (branch, slot): (TaskId, Option<NonZeroU32>),
    ) -> Result<PackedBranch, Unpackable> {
        if task.is_atomic() {
            return Err(Unpackable::Atomic);
        }
        let directory = task.absolute_directory().ok().flatten().ok_or(Unpackable::NoDirectory)?;
        let mut texts = Texts::default();
        let place = texts.place(&task.program, task.at);
        let functions = self.definitions.functions();
        let functions =
            functions.map(|(name, (program, at))| (Arc::clone(name), texts.place(program, *at)));
        let functions = functions.collect();
        let channels = self.definitions.channels();
        let channels = channels.map(|(name, rules)| (Arc::clone(name), rules.clone()));
        let variables = task.variables.iter().map(|(name, variable)| {
            Ok(PackedVariable {
                name: Arc::clone(name),
                value: packed(task, name, &variable.value)?,
                exported: variable.exported,
                inherited: variable.inherited,
            })
        });
        let unset =
            self.core.remote().inherited_names().filter(|name| task.variables.get(name).is_none());
        let context = self.core.child_context(task);
        let config = Config {
            umask: task.umask.unwrap_or(self.core.config().umask),
            deadline: context.deadline,
            passing_input: false,
            on: None,
            trace: None,
            log_level: Level::NOTHING,
            ..self.core.config().clone()
        };
        let around = PackedContext {
            attempt: context.attempt,
            caught: context.failure.map(|failure| texts.failure(&failure)).unwrap_or_default(),
            succeeded: context.succeeded,
            depth: context.depth,
            is_guarded: context.is_guarded,
            inside: self.channels_around(task),
            is_retried: self.is_in_retry(task),
            signal: self.core.scopes().signal(task.scope),
            conditions: self.conditions_around(task),
        };
        Ok(PackedBranch {
            place,
            word: packed(task, "", word)?,
            functions,
            channels: channels.collect(),
            variables: variables.collect::<Result<_, _>>()?,
            unset: unset.cloned().collect(),
            arguments: task.args.to_vec(),
            directory,
            config,
            around,
            at: self.core.now(),
            seed: self.random.seed_of_branch(branch.0),
            slot,
            files: BranchFiles::default(),
            texts: texts.0,
        })
    }
}

impl RemoteRoot {
    /// Packs the end of the branch for which the machine was created, given the outcome of the run.
    pub(crate) fn ended_with(&self, outcome: &Outcome) -> EndedBranch {
        let mut texts = Texts(self.texts.iter().map(text).collect());
        let end = match (outcome, &self.ending) {
            (Outcome::Interrupted(signal), _) => BranchEnd::Canceled(*signal),
            (Outcome::Failed(failure), None) if failure.kind == FailureKind::Timeout => {
                BranchEnd::OutOfTime(texts.failure(failure))
            }
            (_, Some(TaskEnding::Failed(thrown))) => {
                let mut failure = texts.failure(&thrown.failure);
                if let Some(packed) = failure.first_mut() {
                    packed.failure.trace.clone_from(&thrown.failure.trace);
                }
                let again = match thrown.retry {
                    Retry::BrokenPipe => Retry::AsUsual,
                    retry => retry,
                };
                BranchEnd::Failed { failure, again }
            }
            (Outcome::Failed(failure), _) => {
                BranchEnd::Failed { failure: texts.failure(failure), again: Retry::AsUsual }
            }
            (Outcome::Exited(code), _) => BranchEnd::Exited(*code),
            (Outcome::Succeeded, _) => BranchEnd::Succeeded,
        };
        let texts = texts.0.into_iter().skip(self.texts.len()).map(|it| it.source).collect();
        EndedBranch { end, attempts: self.attempts, texts, spans: RemoteSpans::default() }
    }
}

/// Packs a value of a variable.
fn packed(task: &Task, name: &str, value: &Value) -> Result<PackedValue, Unpackable> {
    let cannot = |why: String| Unpackable::Variable { name: name.into(), why };
    Ok(match value {
        Value::Text(text) => PackedValue::Text(text.to_vec().into()),
        Value::Integer(integer) => PackedValue::Integer(*integer),
        Value::Boolean(boolean) => PackedValue::Boolean(*boolean),
        Value::Range(range) => {
            let (first, last, step) = range.ends();
            PackedValue::Range(first, last, step)
        }
        Value::Buffer(buffer) => match task.answer(&Query::Buffer(buffer.id())) {
            Some(Reply::Text(content)) => PackedValue::Written(content.clone()),
            _ => return Err(cannot("its content is unknown".into())),
        },
        Value::List(list) => PackedValue::List(list.iter().map(ToOwned::to_owned).collect()),
        Value::Words(_) | Value::Split(_) | Value::Decimal(_) => match value.text() {
            Some(text) => PackedValue::Text(text.into_owned()),
            None => return Err(cannot("its value is not one word".into())),
        },
    })
}

fn text(source: &Arc<Source>) -> Text {
    Text { source: Arc::clone(source), length: None, calls_read: false }
}

/// Texts referred to by places.
#[derive(Default)]
struct Texts(Vec<Text>);

impl Texts {
    fn index(&mut self, source: &Arc<Source>) -> usize {
        // Nearly always the same memory, which is compared first.
        let known = self.0.iter().position(|text| text.source == *source);
        known.unwrap_or_else(|| {
            self.0.push(text(source));
            self.0.len() - 1
        })
    }

    fn place(&mut self, program: &Program, at: Address) -> CodePlace {
        let index = self.index(&program.source);
        let text = &mut self.0[index];
        text.length = Some(program.code.len());
        text.calls_read = program.calls_read;
        CodePlace { text: index, at }
    }

    /// Packs a failure with its chain of explanations.
    fn failure(&mut self, failure: &Failure) -> Vec<PackedFailure> {
        let chain = std::iter::successors(Some(failure), |failure| failure.earlier.as_deref());
        let packed = chain.take(MAX_CAUSES).map(|failure| PackedFailure {
            text: self.index(&failure.source),
            failure: Failure {
                source: Arc::default(),
                trace: Trace::default(),
                earlier: None,
                printed: None,
                output: Some(Failure { errors: None, ..failure.clone() }.all_output())
                    .filter(|output| !output.is_empty())
                    .map(|output| Arc::new(output.into())),
                ..failure.clone()
            },
        });
        packed.collect()
    }
}

impl Packer<'_> {
    /// Returns the channels occupied by attempts around the branches of a task.
    pub(crate) fn channels_around(&self, task: &Task) -> Vec<String> {
        let mut inside =
            self.core.remote().root().map(|root| root.around.inside.clone()).unwrap_or_default();
        let around = |frame: &TryFrame| self.core.scopes().pass(frame.scope);
        for task in self.core.tasks().and_around(task) {
            inside.extend(task.tries().filter_map(around).map(|pass| pass.channel.to_string()));
        }
        inside
    }

    /// Returns the conditions of all attempts around the branches of a task.
    fn conditions_around(&self, task: &Task) -> Watch {
        let tries = self.core.tasks().and_around(task).flat_map(Task::tries);
        let attempts = tries.filter(|frame| frame.phase == TryPhase::Attempt);
        attempts.fold(Watch::default(), |all, frame| all.and(frame.conditions()))
    }

    /// Returns true if an attempt around the branches of a task is a retry.
    pub(crate) fn is_in_retry(&self, task: &Task) -> bool {
        let is = |frame: &TryFrame| frame.phase == TryPhase::Attempt && frame.attempt > 1;
        self.core.remote().is_retried()
            || self.core.tasks().and_around(task).any(|task| task.tries().any(is))
    }
}
