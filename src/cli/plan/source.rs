//! Source of a script: a file, text, standard input or the prompt.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use anyhow::{Error, Result};

use crate::cli::messages::{BlockingIo, NOTHING_WAS_RUN, report, usage};
use crate::cli::options::flags::HEADS;
use crate::cli::prefix::Prefix;
use crate::repl;
use ftsh_ide::DiskFiles;
use ftsh_machine::Outcome;
use ftsh_process as process;
use ftsh_process::ScriptIdentity;
use ftsh_syntax::diagnostic;
use ftsh_syntax::nearest::nearest;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::uses::parse_with_files;
use ftsh_syntax::vocabulary::{ALONE, FORMS, KEYWORDS, synonym};
use ftsh_syntax::{MAX_SCRIPT_LENGTH, SCRIPT_TOO_LONG, Script, SyntaxErrors, parse_bytes};
use ftsh_sys::os_error::plain;

/// Source of a script.
#[derive(Debug)]
pub(crate) enum ScriptSource {
    /// A file, which may be a FIFO or a device.
    File(PathBuf),
    /// Text after `-c`.
    Text {
        /// The script.
        text: OsString,
        /// Name of the script, if the command line has one.
        named: Option<OsString>,
    },
    /// Standard input, read to its end.
    StandardInput,
    /// Heads before a command.
    Prefix(Prefix),
    /// A person at a terminal, statement by statement.
    Prompt,
}

impl ScriptSource {
    /// Returns the name of the script in messages and logs.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Text { named: Some(name), .. } => name.to_string_lossy().into_owned(),
            Self::Text { named: None, .. } => "-c".into(),
            Self::StandardInput => "stdin".into(),
            Self::Prefix(prefix) => prefix.head.into(),
            Self::Prompt => repl::NAME.into(),
        }
    }

    /// Returns the identity under which durations are recorded; `None` for a prompt.
    pub(crate) fn identity(&self, script: Option<&Script>) -> Option<ScriptIdentity> {
        match self {
            Self::File(path) => Some(ScriptIdentity::File(path.clone())),
            Self::Prompt => None,
            Self::Text { .. } | Self::StandardInput | Self::Prefix(_) => {
                Some(ScriptIdentity::Text(script?.source.text().into()))
            }
        }
    }

    /// Reads and parses the script, with the files that it uses.
    pub(crate) fn script(&self) -> Result<Script, UnusableScript> {
        let (name, bytes) = (self.name(), self.read().map_err(UnusableScript::Unreadable)?);
        let directory = match self {
            Self::File(path) => path.parent().map(ToOwned::to_owned).unwrap_or_default(),
            _ => PathBuf::new(),
        };
        let mut files = DiskFiles::new(&name, directory);
        parse_with_files(&name, &bytes, &mut files).map_err(UnusableScript::Invalid)
    }

    /// Reads and parses the script alone.
    pub(crate) fn script_alone(&self) -> Result<Script, UnusableScript> {
        let bytes = self.read().map_err(UnusableScript::Unreadable)?;
        parse_bytes(&self.name(), &bytes).map_err(UnusableScript::Invalid)
    }

    /// Reads the bytes of the script, without a byte order mark.
    pub(crate) fn read(&self) -> Result<Vec<u8>> {
        let name = self.name();
        let bytes = match self {
            Self::File(path) => File::open(path).and_then(limited),
            Self::Text { text, .. } => Ok(text.as_bytes().to_vec()),
            Self::Prefix(prefix) => Ok(prefix.text.clone().into_bytes()),
            Self::Prompt => Ok(Vec::new()),
            Self::StandardInput => limited(BlockingIo(io::stdin())),
        };
        let mut bytes = bytes.map_err(|error| {
            let hint = match error.kind() {
                io::ErrorKind::NotFound => command_advice(&name),
                _ => String::new(),
            };
            usage(
                Slug::ScriptFile,
                format_args!("can't read the script `{name}`: {}{hint}", plain(&error)),
            )
        })?;
        if bytes.starts_with("\u{feff}".as_bytes()) {
            bytes.drain(.."\u{feff}".len());
        }
        Ok(bytes)
    }
}

/// Returns advice for a word that is no file, and was probably meant as a head or a command.
fn command_advice(word: &str) -> String {
    let script = match word {
        "for" => {
            return "; `for` is a word of scripts: `ftsh -c 'for x in a b -- COMMAND'`, or \
                    `ftsh forall x in a b at most 1 -- COMMAND`"
                .to_owned();
        }
        "in" => "in DIR -- COMMAND",
        "if" | "while" | "with" => &format!("{word} COMMAND; COMMAND; end"),
        _ if KEYWORDS.contains(&word) || FORMS.contains(&word) || ALONE.contains(&word) => "SCRIPT",
        _ => "",
    };
    if !script.is_empty() {
        return format!("; `{word}` is a word of scripts: `ftsh -c '{script}'`");
    }
    let head = match word {
        _ if word.contains(['/', '.']) => return String::new(),
        "timeout" => Some("limit"),
        "xargs" => Some("forall"),
        _ => nearest(word, HEADS).or_else(|| synonym(word).filter(|head| HEADS.contains(head))),
    };
    let command = if head.is_some() { "COMMAND" } else { word };
    let head = match head.unwrap_or_default() {
        "limit" => "limit 5 minutes",
        "forany" => "forany in a b",
        "forall" => "forall in a b",
        "on" => "on slurm",
        _ => "try 5 times",
    };
    format!("; write a command after a head: `ftsh {head} -- {command}`")
}

/// Reason why a script cannot be run.
pub(crate) enum UnusableScript {
    /// The script cannot be read.
    Unreadable(Error),
    /// The script has syntax errors.
    Invalid(SyntaxErrors),
}

impl UnusableScript {
    /// Reports syntax errors. Returns the error of an unreadable script, which takes one line.
    pub(crate) fn report(self) -> Result<Outcome> {
        match self {
            Self::Unreadable(error) => Err(error),
            Self::Invalid(errors) => {
                report(&diagnostic::render_all_within(&errors, process::columns()));
                Ok(Outcome::Exited(NOTHING_WAS_RUN))
            }
        }
    }
}

/// Reads all bytes of a script up to the maximum length. Endless input would fill the memory.
fn limited(script: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    script.take(MAX_SCRIPT_LENGTH as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_SCRIPT_LENGTH { Err(io::Error::other(SCRIPT_TOO_LONG)) } else { Ok(bytes) }
}
