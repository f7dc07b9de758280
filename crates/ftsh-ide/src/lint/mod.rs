//! A static look at a script: what is allowed, but is rarely meant.
//!
//! Pure, and on request only: a script is never run differently for what is found here. What can
//! only be known at run time (a limit in a variable, a command named by one) is not guessed at.

mod branches;
mod channels;
mod constants;
mod flow;
mod functions;
mod inputs;
mod lists;
mod loops;
mod numbers;
mod pauses;
mod programs;
mod schedule;
mod separators;
mod tries;
pub(crate) mod walk;

#[cfg(test)]
mod tests;

pub use programs::{Programs, Unknown};
pub use schedule::{Schedule, schedules};

use ftsh_syntax::Script;
use ftsh_syntax::backoff::Policy;
use ftsh_syntax::error::SyntaxError;

/// What looks wrong, told like a mistake; but the script can run.
pub type Warning = SyntaxError;

/// Looks at a script whose tries use `policy` where they name none, and which would find `programs`.
/// The warnings are in the order of the text.
pub fn lint(script: &Script, policy: &Policy, programs: &dyn Programs) -> Vec<Warning> {
    let mut warnings = tries::look(script, policy);
    warnings.extend(constants::look(script));
    warnings.extend(loops::look(script));
    warnings.extend(flow::look(script));
    warnings.extend(functions::look(script));
    warnings.extend(branches::look(script));
    warnings.extend(channels::look(script));
    warnings.extend(numbers::look(script));
    warnings.extend(pauses::look(script));
    warnings.extend(lists::look(script));
    warnings.extend(inputs::look(script));
    warnings.extend(separators::look(script));
    warnings.extend(programs::look(script, programs));
    warnings.sort_by_key(|warning| warning.span.start);
    warnings
}
