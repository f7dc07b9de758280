//! Lint: warnings about valid code that is rarely meant.
//!
//! The lint is pure and runs on request only; the execution of a script never depends on the lint.
//! Values known only at run time, such as a limit in a variable, are not guessed.

mod arguments;
mod atomic;
mod branches;
mod calls;
mod channels;
mod code;
mod constants;
mod engines;
mod escapes;
mod filters;
mod flow;
mod functions;
mod glued;
mod habits;
mod indexes;
mod inputs;
mod lists;
mod loops;
mod numbers;
mod outside;
mod patterns;
mod pauses;
mod programs;
mod retried;
mod returns;
mod schedule;
mod separators;
mod tries;
mod unset;

#[cfg(test)]
mod tests;

pub use engines::{engines, missing_carrier};
pub use programs::{Programs, UnknownPrograms};
pub use schedule::{Schedule, schedules};

use ftsh_syntax::Script;
use ftsh_syntax::backoff::Policy;
use ftsh_syntax::error::SyntaxError;
use ftsh_syntax::walk;

/// Warning, represented like an error; the script can still run.
pub type Warning = SyntaxError;

/// Checks a script, and returns the warnings in the order of the text.
///
/// Tries without a policy use `policy`, and the script would find `programs`.
pub fn lint(script: &Script, policy: &Policy, programs: &dyn Programs) -> Vec<Warning> {
    let mut warnings = tries::check(script, policy);
    warnings.extend(arguments::check(script));
    warnings.extend(constants::check(script));
    warnings.extend(escapes::check(script));
    warnings.extend(patterns::check(script));
    warnings.extend(loops::check(script));
    warnings.extend(flow::check(script));
    warnings.extend(functions::check(script));
    warnings.extend(glued::check(script));
    warnings.extend(habits::check(script));
    warnings.extend(unset::check(script));
    warnings.extend(atomic::check(script));
    warnings.extend(calls::check(script));
    warnings.extend(retried::check(script));
    warnings.extend(returns::check(script));
    warnings.extend(branches::check(script));
    warnings.extend(channels::check(script));
    warnings.extend(code::check(script));
    warnings.extend(filters::check(script));
    warnings.extend(indexes::check(script));
    warnings.extend(outside::check(script));
    warnings.extend(numbers::check(script));
    warnings.extend(pauses::check(script));
    warnings.extend(lists::check(script));
    warnings.extend(inputs::check(script));
    warnings.extend(separators::check(script));
    warnings.extend(programs::check(script, programs));
    warnings.extend(engines::check(script, programs));
    warnings.sort_by_key(|warning| warning.span.start);
    warnings
}
