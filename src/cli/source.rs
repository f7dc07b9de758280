//! Where the script comes from.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use anyhow::{Error, Result, anyhow};

use super::messages::report;
use super::patient::Patient;
use crate::repl;
use ftsh_machine::Outcome;
use ftsh_process as process;
use ftsh_syntax::diagnostic;
use ftsh_syntax::{LONGEST, Script, SyntaxErrors, TOO_LONG, parse_bytes};
use ftsh_sys::os_error::plain;

/// Where the script comes from.
#[derive(Debug)]
pub enum Program {
    /// A file, which may be a FIFO or a device.
    File(PathBuf),
    /// `-c`
    Text {
        /// The script.
        text: OsString,
        /// What it is called, if anything.
        named: Option<OsString>,
    },
    /// Standard input, to its end.
    StandardInput,
    /// The user of a terminal, one statement after the other.
    Prompt,
}

impl Program {
    /// What it is called in messages and logs.
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Text { named: Some(name), .. } => name.to_string_lossy().into_owned(),
            Self::Text { named: None, .. } => "-c".into(),
            Self::StandardInput => "stdin".into(),
            Self::Prompt => repl::NAME.into(),
        }
    }

    /// The script itself.
    pub fn script(&self) -> Result<Script, Unusable> {
        let bytes = self.read().map_err(Unusable::Unreadable)?;
        parse_bytes(&self.name(), &bytes).map_err(Unusable::Invalid)
    }

    /// Its bytes, without a byte order mark.
    pub fn read(&self) -> Result<Vec<u8>> {
        let name = self.name();
        let bytes = match self {
            Self::File(path) => File::open(path).and_then(limited),
            Self::Text { text, .. } => Ok(text.as_bytes().to_vec()),
            Self::Prompt => Ok(Vec::new()),
            Self::StandardInput => limited(Patient(io::stdin())),
        };
        let mut bytes =
            bytes.map_err(|error| anyhow!("can't read the script `{name}`: {}", plain(&error)))?;
        if bytes.starts_with("\u{feff}".as_bytes()) {
            bytes.drain(.."\u{feff}".len());
        }
        Ok(bytes)
    }
}

/// Why there is no script to be run.
pub enum Unusable {
    /// It can't be read.
    Unreadable(Error),
    /// It has these mistakes.
    Invalid(SyntaxErrors),
}

impl Unusable {
    /// Says so; an error if that is one line.
    pub fn tell(self) -> Result<Outcome> {
        match self {
            Self::Unreadable(error) => Err(error),
            Self::Invalid(errors) => {
                report(&diagnostic::render_all_within(&errors, process::columns()));
                Ok(Outcome::Exited(super::NOTHING_WAS_RUN))
            }
        }
    }
}

/// All bytes of a script, unless they are more than one can have: what never ends would fill the
/// memory.
fn limited(script: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    script.take(LONGEST as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > LONGEST { Err(io::Error::other(TOO_LONG)) } else { Ok(bytes) }
}
