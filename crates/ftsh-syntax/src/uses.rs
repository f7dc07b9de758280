//! Scripts with the files that they use.
//!
//! The parser itself reads no files. [`UsedFiles`] reads them for [`parse_with_files`], which parses
//! a script together with its files: first the files, then the script with their names.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::result::Result;
use std::sync::Arc;

use crate::ast::{Block, CommandKind, Name, Script};
use crate::error::{SyntaxError, SyntaxErrors};
use crate::parse::{KnownNames, parse_bytes, parse_bytes_with};
use crate::slug::Slug;
use crate::span::Span;

/// Maximum number of files that use each other.
const MAX_DEPTH: usize = 100;

/// File that a script uses.
#[derive(Clone, Debug)]
pub struct UsedFile {
    /// Name in messages.
    pub name: String,
    /// Path that is the same for all names of the file.
    pub identity: PathBuf,
    /// Content.
    pub text: Vec<u8>,
}

/// Access to the files that scripts use.
pub trait UsedFiles {
    /// Reads the file `path`, relative to the directory of the file called `user`.
    ///
    /// # Errors
    ///
    /// The reason, without the path.
    fn read(&mut self, user: &str, path: &str) -> Result<UsedFile, String>;
}

/// Returns the name of a file that another file names by a path.
///
/// `directory` is the directory of the other file, empty for the current directory.
pub fn joined(directory: &Path, path: &str) -> PathBuf {
    let path = Path::new(path);
    directory.join(path.strip_prefix(".").unwrap_or(path))
}

/// Parses a script that may not be UTF-8, and the files that it uses.
///
/// # Errors
///
/// Returns the errors of the first file with errors.
pub fn parse_with_files(
    name: &str,
    bytes: &[u8],
    files: &mut dyn UsedFiles,
) -> Result<Script, SyntaxErrors> {
    let mut loader = Loader {
        files,
        open: Vec::new(),
        done: HashSet::new(),
        functions: BTreeMap::new(),
        channels: BTreeMap::new(),
    };
    loader.file(name, bytes)
}

struct Loader<'f> {
    files: &'f mut dyn UsedFiles,
    /// Files around the current one, without the script itself.
    open: Vec<(PathBuf, String)>,
    /// Files read completely.
    done: HashSet<PathBuf>,
    /// Functions and channels of these files, with their places.
    functions: BTreeMap<Name, String>,
    channels: BTreeMap<Name, String>,
}

impl Loader<'_> {
    fn file(&mut self, name: &str, bytes: &[u8]) -> Result<Script, SyntaxErrors> {
        let script = parse_bytes(name, bytes)?;
        if !self.open.is_empty() {
            definitions_only(&script)?;
        }
        if script.uses().next().is_none() {
            self.define(&script)?;
            return Ok(script);
        }
        let mut used = Vec::new();
        for (span, it) in script.uses() {
            let fail = |error: SyntaxError| errors_of(&script, vec![error]);
            used.push(self.used(name, span, &it.path).map_err(|error| match error {
                UseError::Here(error) => fail(*error),
                UseError::Inside(errors) => errors,
            })?);
        }
        let functions: Vec<&str> = self.functions.keys().map(|name| &**name).collect();
        let channels: Vec<&str> = self.channels.keys().map(|name| &**name).collect();
        let known = KnownNames {
            functions: &functions,
            channels: &channels,
            has_used: true,
            ..KnownNames::default()
        };
        let script = Script { used, ..parse_bytes_with(name, bytes, known)? };
        self.define(&script)?;
        Ok(script)
    }

    /// Reads the file of a `use`. Returns `None` if the file was read before.
    fn used(
        &mut self,
        user: &str,
        span: Span,
        path: &str,
    ) -> Result<Option<Arc<Script>>, UseError> {
        let error = |message: String| SyntaxError::new(Slug::UsedFile, span, message);
        let file = self.files.read(user, path).map_err(|why| {
            UseError::here(
                error(format!("can't read `{path}`: {why}"))
                    .label("the path counts from the directory of this file"),
            )
        })?;
        if self.done.contains(&file.identity) {
            return Ok(None);
        }
        if let Some(at) = self.open.iter().position(|(identity, _)| *identity == file.identity) {
            let chain = self.open[at..].iter().map(|(_, name)| name.as_str());
            let chain: Vec<&str> = chain.chain([file.name.as_str()]).collect();
            let message = format!("the files use each other: {}", chain.join(" → "));
            return Err(UseError::here(
                error(message).label("a third file, which both use, can have what both need"),
            ));
        }
        if self.open.len() == MAX_DEPTH {
            return Err(UseError::here(error(format!("files use each other {MAX_DEPTH} deep"))));
        }
        self.open.push((file.identity.clone(), file.name.clone()));
        let script = self.file(&file.name, &file.text).map_err(UseError::Inside)?;
        self.open.pop();
        self.done.insert(file.identity);
        Ok(Some(Arc::new(script)))
    }

    /// Adds the names that a file defines.
    fn define(&mut self, script: &Script) -> Result<(), SyntaxErrors> {
        let mut errors = Vec::new();
        let mut define = |kind: &str, known: &mut BTreeMap<Name, String>, names: &[_]| {
            for (name, span) in names {
                if let Some(place) = known.get(name) {
                    let message = format!("the {kind} `{name}` is defined twice");
                    let error = SyntaxError::new(Slug::DuplicateFunction, *span, message);
                    errors.push(error.label(format!("first defined in {place}")));
                }
            }
            for (name, span) in names {
                let place =
                    format!("{}, line {}", script.source.name(), script.source.line(span.start));
                known.entry(Name::clone(name)).or_insert(place);
            }
        };
        let names = Defined::of(&script.body);
        define("function", &mut self.functions, &names.functions);
        define("channel", &mut self.channels, &names.channels);
        if errors.is_empty() { Ok(()) } else { Err(errors_of(script, errors)) }
    }
}

/// Error of a `use`.
enum UseError {
    /// Error of the `use` itself.
    Here(Box<SyntaxError>),
    /// Errors in the file that it uses.
    Inside(SyntaxErrors),
}

impl UseError {
    fn here(error: SyntaxError) -> Self {
        Self::Here(Box::new(error))
    }
}

fn errors_of(script: &Script, errors: Vec<SyntaxError>) -> SyntaxErrors {
    SyntaxErrors { source: Arc::clone(&script.source), errors }
}

/// Refuses a used file with other statements than definitions.
fn definitions_only(script: &Script) -> Result<(), SyntaxErrors> {
    let errors = script.body.commands.iter().filter_map(|command| {
        let (message, label) = match &command.kind {
            CommandKind::Comment { .. }
            | CommandKind::Function { .. }
            | CommandKind::Channel(_)
            | CommandKind::Use(_) => return None,
            CommandKind::Args(_) => (
                "a file that a script uses has no arguments",
                "declare the arguments by `args` in the script itself",
            ),
            _ => (
                "a file that a script uses contains functions and channels only",
                "move the command to a function, or run the file by `source`",
            ),
        };
        Some(SyntaxError::new(Slug::UsedFile, command.span, message).label(label))
    });
    let errors: Vec<_> = errors.collect();
    if errors.is_empty() { Ok(()) } else { Err(errors_of(script, errors)) }
}

/// Names that a file defines, with the spans of the names.
#[derive(Default)]
struct Defined {
    functions: Vec<(Name, Span)>,
    channels: Vec<(Name, Span)>,
}

impl Defined {
    fn of(block: &Block) -> Self {
        let mut defined = Self::default();
        defined.block(block);
        defined
    }

    fn block(&mut self, block: &Block) {
        for command in &block.commands {
            match &command.kind {
                CommandKind::Function { name, name_span, .. } => {
                    self.functions.push((Name::clone(name), *name_span));
                }
                CommandKind::Channel(channel) => {
                    self.channels.push((Name::clone(&channel.name), command.span));
                }
                _ => {}
            }
            command.blocks().into_iter().for_each(|inner| self.block(inner));
        }
    }
}
