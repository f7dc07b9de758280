//! The words of redirections, expanded.

use std::collections::VecDeque;

use bstr::{BString, ByteSlice};

use super::expand::Expander;
use crate::core::Core;
use crate::effect::{Access, FdSource};
use crate::invocation::{RedirectTarget, Redirects, Resolved};
use crate::outcome::FailureKind;
use crate::tasks::Task;
use crate::values::Suspend;
use ftsh_syntax::ast::{Mode, Name, Redirect, RedirectionTarget};
use ftsh_syntax::slug::Slug;

/// Expands the words of redirections, without changing anything.
pub(crate) fn resolve_redirects(
    core: &Core,
    task: &Task,
    redirects: &[Redirect],
) -> Result<Redirects, Suspend> {
    let expander = Expander::new(core, task);
    let mut pending = VecDeque::with_capacity(redirects.len());
    for redirect in redirects {
        let target = match &redirect.target {
            RedirectionTarget::File(word) => {
                let access = match redirect.mode {
                    Mode::Read => Access::Read,
                    Mode::Write => Access::Write,
                    Mode::Append => Access::Append,
                };
                let path = expander.file(word)?;
                RedirectTarget::FdSource(match named_descriptor(&path) {
                    Some(descriptor) => FdSource::Descriptor(descriptor),
                    None => FdSource::File { path, access },
                })
            }
            RedirectionTarget::Variable(word) => {
                let name = variable_name(&expander.joined(word)?)?;
                match redirect.mode {
                    Mode::Read if task.variables.get(&name).is_none() => {
                        return Err(Suspend::Failed(
                            FailureKind::Redirect,
                            Slug::UnsetVariable,
                            format!("the variable `{name}` is not set, so it can't be read"),
                        ));
                    }
                    Mode::Read => RedirectTarget::ReadVariable(name),
                    mode => RedirectTarget::WriteVariable(name, mode),
                }
            }
            RedirectionTarget::Descriptor(descriptor) => {
                RedirectTarget::FdSource(FdSource::Descriptor(*descriptor))
            }
            RedirectionTarget::HereDocument { body, .. } => {
                RedirectTarget::FdSource(FdSource::Bytes(expander.joined(body)?))
            }
            RedirectionTarget::HereString(word) => {
                let mut line = expander.joined(word)?;
                line.push(b'\n');
                RedirectTarget::FdSource(FdSource::Bytes(line))
            }
        };
        let (descriptor, with_errors) = (redirect.descriptor, redirect.with_errors);
        pending.push_back(Resolved { descriptor, with_errors, target });
    }
    Ok(Redirects { pending, ..Redirects::default() })
}

/// Returns the own descriptor that a special path names. Opening such a path again could truncate a
/// file while others write to it.
pub(crate) fn named_descriptor(path: &[u8]) -> Option<u8> {
    let number = match path {
        b"/dev/stdin" => b"0",
        b"/dev/stdout" => b"1",
        b"/dev/stderr" => b"2",
        _ => [&b"/dev/fd/"[..], b"/proc/self/fd/"].iter().find_map(|it| path.strip_prefix(*it))?,
    };
    match number {
        [digit @ b'0'..=b'9'] => Some(digit - b'0'),
        _ => None,
    }
}

/// Checks that a word is a valid name of a variable.
pub(crate) fn variable_name(word: &BString) -> Result<Name, Suspend> {
    let valid = word.first().is_some_and(|first| first.is_ascii_alphabetic() || *first == b'_')
        && word.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    match word.to_str() {
        Ok(name) if valid => Ok(name.into()),
        _ => {
            Err(Suspend::expression(Slug::NotAName, format!("`{word}` can't be a variable's name")))
        }
    }
}
