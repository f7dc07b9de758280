//! The way from a failure to the outermost level of the script: calls and branches, innermost
//! first.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use ftsh_syntax::ast::Name;
use ftsh_syntax::diagnostic::printable;

/// Maximum number of steps in a trace.
pub const MAX_STEPS: usize = 8;
/// Number of innermost steps in a shortened trace. The other steps are the outermost ones.
pub const INNER_STEPS: usize = 5;

/// Calls and branches around a failure, innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    steps: Vec<TraceStep>,
    /// Number of steps left out after the first [`INNER_STEPS`].
    left_out: u64,
}

/// A call or a branch around a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceStep {
    /// Kind of the step.
    pub kind: StepKind,
    /// Script with the call or the loop.
    pub file: Arc<str>,
    /// Line of the call or the loop, from 1.
    pub line: u32,
    /// Number of the failure's tries that are inside the step.
    pub tries: usize,
}

/// Kinds of steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepKind {
    /// Call of this function.
    Function(Name),
    /// `source` of a file.
    Source,
    /// Branch of a `forall` or a hedged `forany`.
    Branch {
        /// Variable of the loop.
        name: Name,
        /// Word of the branch, shortened.
        word: String,
    },
}

impl Trace {
    /// Appends a step further out.
    pub fn push(&mut self, step: TraceStep) {
        if self.steps.len() == MAX_STEPS {
            self.steps.remove(INNER_STEPS);
            self.left_out += 1;
        }
        self.steps.push(step);
    }

    /// Returns the steps, innermost first.
    pub fn steps(&self) -> &[TraceStep] {
        &self.steps
    }

    /// Returns the number of steps left out after the first [`INNER_STEPS`].
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns the innermost steps inside a branch, or all innermost steps if the trace does not
    /// contain the branch.
    pub fn inside_branch(&self, branch: &TraceStep) -> &[TraceStep] {
        let is_it = |step: &TraceStep| (&step.kind, step.line) == (&branch.kind, branch.line);
        let end = self.steps.iter().position(is_it).unwrap_or(self.steps.len());
        &self.steps[..end.min(INNER_STEPS)]
    }

    /// Iterates over the words of branches, which may contain secrets.
    pub fn words(&mut self) -> impl Iterator<Item = &mut String> {
        self.steps.iter_mut().filter_map(|step| match &mut step.kind {
            StepKind::Branch { word, .. } => Some(word),
            StepKind::Function(_) | StepKind::Source => None,
        })
    }
}

impl Extend<TraceStep> for Trace {
    fn extend<T: IntoIterator<Item = TraceStep>>(&mut self, steps: T) {
        for step in steps {
            self.push(step);
        }
    }
}

impl TraceStep {
    /// Returns a short description, such as `called at line 9` or `host=web3`.
    pub fn brief(&self, file: &str) -> String {
        let place = place(&self.file, self.line, file);
        match &self.kind {
            StepKind::Function(_) => format!("called at {place}"),
            StepKind::Source => format!("sourced at {place}"),
            StepKind::Branch { name, word } => format!("{name}={}", printable(word)),
        }
    }

    /// Returns the variable and the word of a branch.
    pub fn branch(&self) -> Option<(&Name, &str)> {
        match &self.kind {
            StepKind::Branch { name, word } => Some((name, word)),
            StepKind::Function(_) | StepKind::Source => None,
        }
    }

    /// Returns true for a call of a function or a file.
    pub fn is_call(&self) -> bool {
        match self.kind {
            StepKind::Function(_) | StepKind::Source => true,
            StepKind::Branch { .. } => false,
        }
    }
}

/// Returns a place as seen from a script: `line 3`, or `lib.ftsh:3` in another script.
pub fn place(file: &str, line: u32, seen_from: &str) -> String {
    if file == seen_from { format!("line {line}") } else { format!("{}:{line}", printable(file)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_trace_keeps_both_ends() {
        let step = |line| TraceStep { kind: StepKind::Source, file: "a".into(), line, tries: 0 };
        let mut trace = Trace::default();
        (1..=20).for_each(|line| trace.push(step(line)));
        let lines: Vec<_> = trace.steps().iter().map(|step| step.line).collect();
        assert_eq!(lines, [1, 2, 3, 4, 5, 18, 19, 20]);
        assert_eq!(trace.left_out(), 12);
    }
}
