//! Packing of branches: captures a branch of a `forall` at the moment of its beginning.

use std::num::NonZeroU32;
use std::sync::Arc;

use bstr::BString;

use crate::attempts::{TryFrame, TryPhase};
use crate::core::Core;
use crate::effect::{Query, TaskId, Watch};
use crate::elsewhere::RemoteRoot;
use crate::endings::{Retry, TaskEnding};
use crate::event::Reply;
use crate::outcome::{BranchResults, Failure, FailureKind, Outcome, UnknownWords};
use crate::packed::{
    BranchEnd, CodePlace, EndedBranch, PackedBranch, PackedBranchResults, PackedContext,
    PackedFailure, PackedRetry, PackedSettings, PackedStep, PackedTrace, PackedTrySummary,
    PackedValue, PackedVariable, Text, Unpackable,
};
use crate::program::{Address, Definitions, Program};
use crate::random::Random;
use crate::size::MAX_VALUE_LEN;
use crate::tasks::Task;
use crate::time::Time;
use crate::trace::{StepKind, Trace};
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
    ) -> Result<(PackedBranch, Vec<Arc<Source>>), Unpackable> {
        if task.is_atomic() {
            return Err(Unpackable::Atomic);
        }
        let directory = task.absolute_directory().ok().flatten().ok_or(Unpackable::NoDirectory)?;
        let mut texts = Texts::default();
        let place = texts.place(&task.program, task.at);
        let functions = self
            .definitions
            .functions()
            .map(|(name, (program, at))| (name.to_string(), texts.place(program, *at)))
            .collect();
        let rules = |rules: &Option<Arc<_>>| rules.as_deref().cloned();
        let channels =
            self.definitions.channels().map(|(name, it)| (name.to_string(), rules(it))).collect();
        let variables = task.variables.iter().map(|(name, variable)| {
            Ok(PackedVariable {
                name: name.to_string(),
                value: packed(task, name, &variable.value)?,
                exported: variable.exported,
                inherited: variable.inherited,
            })
        });
        let variables = variables.collect::<Result<_, _>>()?;
        let unset =
            self.core.remote().inherited_names().filter(|name| task.variables.get(name).is_none());
        let around = self.around(task, &mut texts);
        let (sources, texts) = texts.0.into_iter().unzip();
        let packed = PackedBranch {
            place,
            word: packed(task, "", word)?,
            functions,
            channels,
            variables,
            unset: unset.map(ToString::to_string).collect(),
            arguments: task.args.to_vec(),
            directory,
            umask: task.umask.unwrap_or(self.core.config().umask),
            around,
            at: self.core.now().elapsed(),
            seed: self.random.seed_of_branch(branch.0),
            settings: self.settings(),
            slot,
            texts,
        };
        Ok((packed, sources))
    }

    fn around(&self, task: &Task, texts: &mut Texts) -> PackedContext {
        let around = self.core.child_context(task);
        PackedContext {
            deadline: around.deadline.moment().map(Time::elapsed),
            attempt: around.attempt.map(|it| {
                (it.number, it.started.elapsed(), it.deadline.moment().map(Time::elapsed))
            }),
            caught: around.failure.map(|failure| texts.failure(&failure)).unwrap_or_default(),
            succeeded: around.succeeded,
            depth: around.depth,
            is_guarded: around.is_guarded,
            inside: self.channels_around(task),
            is_retried: self.is_in_retry(task),
            signal: self.core.scopes().signal(task.scope),
            conditions: self.conditions_around(task),
        }
    }

    fn settings(&self) -> PackedSettings {
        let config = &self.core.config();
        let (redacted, given, secret) = config.secrets.parts();
        PackedSettings {
            pid: config.pid,
            backoff: config.backoff.clone(),
            kill_timeout: config.kill_timeout,
            kill_strong: config.kill_strong,
            unset_is_empty: config.unset_is_empty,
            redacted,
            given,
            secret,
        }
    }
}

impl RemoteRoot {
    /// Packs the end of the branch for which the machine was created, given the outcome of the run.
    pub(crate) fn ended_with(&self, outcome: &Outcome) -> EndedBranch {
        let mut texts = Texts(self.texts.iter().map(|it| (Arc::clone(it), text(it))).collect());
        let known = texts.0.len();
        let end = match (outcome, &self.ending) {
            (Outcome::Interrupted(signal), _) => BranchEnd::Canceled(*signal),
            (Outcome::Failed(failure), None) if failure.kind == FailureKind::Timeout => {
                BranchEnd::OutOfTime(texts.failure(failure))
            }
            (_, Some(TaskEnding::Failed(thrown))) => {
                let failure = texts.failure(&thrown.failure);
                let again = match thrown.retry {
                    Retry::Deferred(by) => PackedRetry::Deferred(by),
                    Retry::Never => PackedRetry::Never,
                    Retry::AsUsual | Retry::BrokenPipe => PackedRetry::AsUsual,
                };
                let trace = packed_trace(&thrown.failure.trace);
                if trace.steps.is_empty() {
                    BranchEnd::Failed { failure, again }
                } else {
                    BranchEnd::FailedInside { failure, again, trace }
                }
            }
            (Outcome::Failed(failure), _) => {
                BranchEnd::Failed { failure: texts.failure(failure), again: PackedRetry::AsUsual }
            }
            (Outcome::Exited(code), _) => BranchEnd::Exited(*code),
            (Outcome::Succeeded, _) => BranchEnd::Succeeded,
        };
        let texts = texts.0.into_iter().skip(known).map(|(_, text)| text).collect();
        EndedBranch { end, attempts: self.attempts, texts }
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

/// Returns the words of branches that succeeded, or of all others; `None` if they are too long for
/// a value.
fn sendable(branches: &BranchResults, succeeded: bool) -> Option<Vec<BString>> {
    collected(|add| branches.words.each(succeeded, add))
}

/// Collects the texts that a function visits; `None` if they are too long for a value.
fn collected(
    each: impl FnOnce(&mut dyn FnMut(&[u8])) -> Result<(), UnknownWords>,
) -> Option<Vec<BString>> {
    let (mut words, mut length) = (Vec::new(), 0);
    let mut add = |word: &[u8]| {
        length += word.len() + 1;
        if length <= MAX_VALUE_LEN {
            words.push(BString::from(word));
        }
    };
    each(&mut add).ok()?;
    (length <= MAX_VALUE_LEN).then_some(words)
}

/// Packs a trace.
fn packed_trace(trace: &Trace) -> PackedTrace {
    let steps = trace.steps().iter().map(|step| {
        let (name, word) = match &step.kind {
            StepKind::Function(name) => (Some(name), None),
            StepKind::Source => (None, None),
            StepKind::Branch { name, word } => (Some(name), Some(word)),
        };
        PackedStep {
            name: name.map(ToString::to_string),
            word: word.cloned(),
            file: step.file.to_string(),
            line: step.line,
            tries: step.tries,
        }
    });
    PackedTrace { steps: steps.collect(), left_out: trace.left_out() }
}

fn text(source: &Source) -> Text {
    let (name, text) = (source.name().to_string(), source.text().into());
    Text { name, text, length: None, calls_read: false }
}

/// Texts referred to by places.
#[derive(Default)]
struct Texts(Vec<(Arc<Source>, Text)>);

impl Texts {
    fn index(&mut self, source: &Arc<Source>) -> usize {
        let known =
            self.0.iter().position(|(known, _)| Arc::ptr_eq(known, source) || known == source);
        known.unwrap_or_else(|| {
            self.0.push((Arc::clone(source), text(source)));
            self.0.len() - 1
        })
    }

    fn place(&mut self, program: &Program, at: Address) -> CodePlace {
        let index = self.index(&program.source);
        let text = &mut self.0[index].1;
        text.length = Some(program.code.len());
        text.calls_read = program.calls_read;
        CodePlace { text: index, at }
    }

    /// Packs a failure with its chain of explanations.
    fn failure(&mut self, failure: &Failure) -> Vec<PackedFailure> {
        let chain = std::iter::successors(Some(failure), |failure| failure.earlier.as_deref());
        chain.take(MAX_CAUSES).map(|failure| self.one(failure)).collect()
    }

    fn one(&mut self, failure: &Failure) -> PackedFailure {
        let tries = failure.tries.iter().map(|tried| PackedTrySummary {
            file: tried.file.to_string(),
            line: tried.line,
            attempts: tried.attempts,
            elapsed: tried.elapsed,
        });
        let branches = failure.branches.as_ref().map(|branches| PackedBranchResults {
            reported: branches.reported.clone(),
            failed: branches.failed,
            succeeded: sendable(branches, true),
            others: sendable(branches, false),
            errors: collected(|add| branches.words.each_error(add)),
        });
        PackedFailure {
            kind: failure.kind,
            code: failure.code,
            message: failure.message.clone(),
            command: failure.command.clone(),
            elapsed: failure.elapsed,
            text: self.index(&failure.source),
            line: failure.line,
            tries: tries.collect(),
            branches,
            output: Some(failure.all_output().into()).filter(|output: &BString| !output.is_empty()),
            slug: failure.slug.name().to_owned(),
            errno: failure.errno.clone(),
        }
    }
}

impl Packer<'_> {
    /// Returns the channels occupied by attempts around the branches of a task.
    pub(crate) fn channels_around(&self, task: &Task) -> Vec<String> {
        let mut inside =
            self.core.remote().root().map(|root| root.inside.clone()).unwrap_or_default();
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
