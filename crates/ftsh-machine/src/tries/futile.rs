//! Failures that time does not mend: the same attempt fails in the same way.

use std::sync::Arc;

use crate::outcome::{Failure, FailureKind};
use ftsh_syntax::slug::Slug;

/// Number of attempts in a row that may fail in the same way at one place.
const MAX_FUTILE: u32 = 3;

/// Addition to the message of a failure that ends a `try`.
const GIVEN_UP: &str = "; three attempts failed in this way, so no other follows";

/// Failures of the latest attempts of a `try` that time does not mend.
#[derive(Debug, Default)]
pub(crate) struct FutileFailures {
    /// Last failure, if time does not mend it.
    last: Option<Arc<Failure>>,
    /// Number of such failures in a row, at the place of the last one.
    count: u32,
}

impl FutileFailures {
    /// Records the failure of an attempt.
    pub(crate) fn record(&mut self, failure: &Arc<Failure>) {
        if !is_futile(failure) {
            *self = Self::default();
            return;
        }
        let is_same = self.last.as_ref().is_some_and(|last| is_same_place(last, failure));
        self.count = if is_same { self.count + 1 } else { 1 };
        self.last = Some(Arc::clone(failure));
    }

    /// Returns true if another attempt is not worth a delay.
    pub(crate) fn are_enough(&self) -> bool {
        self.count >= MAX_FUTILE
    }
}

/// Adds the reason for the end of a `try` to its failure. The enclosing tries add nothing.
pub(crate) fn give_up(failure: &mut Arc<Failure>) {
    if !failure.message.ends_with(GIVEN_UP) {
        Arc::make_mut(failure).message.push_str(GIVEN_UP);
    }
}

/// Returns true for an unset variable, an undefined function, a literal operand that is no number,
/// and a program name without `/` that no directory of `PATH` holds.
fn is_futile(failure: &Failure) -> bool {
    match failure.slug {
        Slug::UnsetVariable | Slug::UnknownFunction | Slug::TextOperand => true,
        Slug::NotFound => {
            let name = failure.command.split(' ').next().unwrap_or_default();
            failure.kind == FailureKind::NotFound && !name.contains('/')
        }
        _ => false,
    }
}

/// Returns true for failures of the same instruction: the message names the word that fails.
fn is_same_place(one: &Failure, other: &Failure) -> bool {
    (one.file(), one.line, &one.message) == (other.file(), other.line, &other.message)
}
