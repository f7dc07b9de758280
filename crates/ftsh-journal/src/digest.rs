//! Checksum of the effects of a run, in order.

use std::fmt::Write;

use crc32fast::Hasher;

use ftsh_machine::effect::{Action, Dispatch, Effect, FdChange, FdSource, Run};

/// Checksum and count of effects. Log records do not count, because they depend on the level of the
/// log.
#[derive(Clone, Default)]
pub(crate) struct Digest {
    hasher: Hasher,
    count: u64,
    text: String,
}

impl Digest {
    /// Adds an effect.
    pub(crate) fn add(&mut self, effect: &Effect) {
        self.count += 1;
        match effect {
            Effect::Log(_) => self.count -= 1,
            Effect::Run(run) => self.run("run", run),
            Effect::Exec(run) => self.run("exec", run),
            Effect::Dispatch(branch) => {
                let Dispatch { process, task, scope, on, avoid, io, .. } = &**branch;
                self.shown(format_args!("dispatch {process:?} {task:?} {scope:?} {on:?}"));
                self.shown(format_args!("{avoid:?} {io:?}"));
            }
            Effect::Open { operation, io, base, directory, umask, redirects } => {
                self.shown(format_args!(
                    "open {operation:?} {io:?} {base:?} {directory:?} {umask:?}"
                ));
                self.changes(redirects);
            }
            other => self.shown(format_args!("{other:?}")),
        }
    }

    /// Returns the number of effects.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the checksum of the effects.
    pub(crate) fn value(&self) -> u32 {
        self.hasher.clone().finalize()
    }

    fn run(&mut self, what: &str, run: &Run) {
        let Run { process, task, scope, action, directory, umask, io, redirects, .. } = run;
        let Run { is_last, feeds, deadline, grace, line, .. } = run;
        self.shown(format_args!(
            "{what} {process:?} {task:?} {scope:?} {directory:?} {umask:?} {io:?}"
        ));
        let deadline = deadline.moment();
        self.shown(format_args!("{is_last} {feeds} {deadline:?} {grace:?} {line}"));
        self.changes(redirects);
        match action {
            Action::Program { words, environment, overrides } => {
                for word in words {
                    self.bytes(word);
                }
                for (name, value) in environment.iter().chain(overrides) {
                    self.bytes(name);
                    self.bytes(value);
                }
            }
            Action::Print(text) => self.bytes(text),
            other => self.shown(format_args!("{other:?}")),
        }
    }

    fn changes(&mut self, changes: &[FdChange]) {
        for FdChange { descriptor, source } in changes {
            match source {
                FdSource::Bytes(bytes) => {
                    self.shown(format_args!("{descriptor} bytes"));
                    self.bytes(bytes);
                }
                FdSource::BufferCreate(buffer, bytes) => {
                    self.shown(format_args!("{descriptor} {buffer:?}"));
                    self.bytes(bytes);
                }
                other => self.shown(format_args!("{descriptor} {other:?}")),
            }
        }
    }

    fn shown(&mut self, text: std::fmt::Arguments) {
        self.text.clear();
        // Writing to a string can't fail.
        let _ = self.text.write_fmt(text);
        self.hasher.update(&self.text.len().to_le_bytes());
        self.hasher.update(self.text.as_bytes());
    }

    /// Adds bytes without formatting, because contents may be large.
    fn bytes(&mut self, bytes: &[u8]) {
        self.hasher.update(&(bytes.len() as u64).to_le_bytes());
        self.hasher.update(bytes);
    }
}
