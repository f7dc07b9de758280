//! Renaming of a function in all files that share the function by `use`.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use lsp_types::{Position, Range, TextEdit, WorkspaceEdit};

use super::document::{self, Document};
use super::names::{NameKind, Names, Occurrence};
use super::position::LineIndex;
use super::rename::{check_places, check_spelling, replaced};
use super::rename_check::{Refusal, check_new};
use crate::DiskFiles;
use ftsh_syntax::uses::{UsedFile, UsedFiles, parse_with_files};
use ftsh_syntax::{MAX_SCRIPT_LENGTH, Script};

/// Suffix of files that are searched for a `use`.
const SUFFIX: &str = "ftsh";
/// Maximum number of entries of directories that are read in a search.
const MAX_ENTRIES: usize = 20_000;

/// Texts of files by their paths without symbolic links.
type Texts = BTreeMap<PathBuf, String>;

/// Files of a workspace.
pub(super) struct Workspace<'a> {
    /// Documents that the editor has open.
    pub open: &'a HashMap<String, Document>,
    /// Directory that is searched with the directories below.
    pub root: &'a Path,
}

/// Function that several files share.
pub(super) struct SharedFunction {
    /// Occurrence at the cursor.
    found: Occurrence,
    /// Text and tree of each file that defines the function or can call the function.
    files: BTreeMap<PathBuf, (String, Script)>,
    /// Texts of all documents that the editor has open.
    open: Texts,
}

impl SharedFunction {
    /// Returns the function at a position, if another file can call the function or defines the
    /// function.
    pub(super) fn at(
        document: &Document,
        place: Position,
        workspace: &Workspace<'_>,
    ) -> Result<Option<Self>, Refusal> {
        let Ok(script) = document.parsed() else { return Ok(None) };
        let names = Names::of(script);
        let found = names.at(document.offset(place)).cloned();
        let Some(found) = found.filter(|it| it.kind == NameKind::Function) else {
            return Ok(None);
        };
        let Some(path) = document.path().and_then(|path| fs::canonicalize(path).ok()) else {
            return Ok(None);
        };
        let defines =
            |file: &&Script| Names::of(file).definitions(found.kind, &found.name).next().is_some();
        let definition = match script.all_files().into_iter().find(defines) {
            Some(file) if std::ptr::eq(file, script) => path.clone(),
            Some(file) => match fs::canonicalize(&**file.source.name()) {
                Ok(path) => path,
                Err(_) => return Ok(None),
            },
            None => return Ok(None),
        };
        let open = workspace.open_texts();
        let mut files = BTreeMap::new();
        for candidate in workspace.candidates(&path, &definition, &open) {
            let Some(text) = text_of(&candidate, &open) else { continue };
            let Some(script) = parse_file(&candidate, &text, &open) else {
                if candidate == definition || text.contains(&found.name) && has_use(&text) {
                    return Err(format!("{} has errors", candidate.display()));
                }
                continue;
            };
            let shares = candidate == definition
                || script.all_files().into_iter().skip(1).any(|file| {
                    fs::canonicalize(&**file.source.name()).is_ok_and(|path| path == definition)
                });
            if shares {
                files.insert(candidate, (text, script));
            }
        }
        Ok((files.len() > 1).then_some(Self { found, files, open }))
    }

    /// Returns the range of the name in the document, and the name.
    ///
    /// # Errors
    ///
    /// Returns the reason if the name cannot be changed.
    pub(super) fn prepare(&self, document: &Document) -> Result<(Range, String), Refusal> {
        self.check()?;
        Ok((document.range(self.found.span), self.found.name.clone()))
    }

    /// Returns the changes of a renaming in all files.
    ///
    /// # Errors
    ///
    /// Returns the reason if the name cannot be changed, or not to this name.
    pub(super) fn rename(&self, new: &str) -> Result<WorkspaceEdit, Refusal> {
        self.check()?;
        if new == self.found.name {
            return Ok(WorkspaceEdit::default());
        }
        let mut texts = self.open.clone();
        #[expect(clippy::mutable_key_type, reason = "the protocol's own type")]
        let mut changes = HashMap::new();
        for (path, (text, script)) in &self.files {
            let names = Names::of(script);
            check_new(&names, self.found.kind, new, &|_| false)
                .map_err(|why| format!("{}: {why}", path.display()))?;
            let all: Vec<_> = names.same(self.found.kind, &self.found.name).collect();
            texts.insert(path.clone(), replaced(text, &all, new));
            let lines = LineIndex::of(text);
            let edit = |it: &&Occurrence| TextEdit::new(lines.range(text, it.span), new.to_owned());
            let Some(uri) = document::file_uri(path) else { continue };
            if !all.is_empty() {
                changes.insert(uri, all.iter().map(edit).collect());
            }
        }
        // The parser makes the final decision.
        for (path, (_, script)) in &self.files {
            let names = Names::of(script);
            let all: Vec<_> = names.same(self.found.kind, &self.found.name).collect();
            let renamed = parse_file(path, &texts[path], &texts);
            check_places(renamed.as_ref(), self.found.kind, &all, new)
                .map_err(|why| format!("{}: {why}", path.display()))?;
        }
        Ok(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() })
    }

    /// Checks that all places of the name are known.
    fn check(&self) -> Result<(), Refusal> {
        for (path, (text, script)) in &self.files {
            let names = Names::of(script);
            if names.sources {
                let path = path.display();
                return Err(format!("{path} sources other scripts with the same names"));
            }
            if names.computed_commands {
                return Err(format!(
                    "{}: a command's name is computed, and may be the name of the function",
                    path.display()
                ));
            }
            let all: Vec<_> = names.same(self.found.kind, &self.found.name).collect();
            check_spelling(text, &all)?;
        }
        Ok(())
    }
}

impl Workspace<'_> {
    fn open_texts(&self) -> Texts {
        let texts = self.open.values().filter_map(|document| {
            let path = fs::canonicalize(document.path()?).ok()?;
            Some((path, document.text().to_owned()))
        });
        texts.collect()
    }

    /// Returns the files that may define or call the function.
    fn candidates(&self, script: &Path, definition: &Path, open: &Texts) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> = open.keys().cloned().collect();
        found.extend([script, definition].map(ToOwned::to_owned));
        let mut left = MAX_ENTRIES;
        let own = [script, definition].into_iter().filter_map(Path::parent);
        own.for_each(|directory| search(directory, false, &mut left, &mut found));
        // A server that was started in `/` has no workspace.
        let root = fs::canonicalize(self.root).ok().filter(|root| root.parent().is_some());
        if root.is_some_and(|root| script.starts_with(root)) {
            search(self.root, true, &mut left, &mut found);
        }
        found.sort();
        found.dedup();
        found
    }
}

/// Adds the scripts of a directory, and of the directories below if wanted.
fn search(directory: &Path, is_deep: bool, left: &mut usize, found: &mut Vec<PathBuf>) {
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let Some(rest) = left.checked_sub(1) else { return };
            *left = rest;
            let (path, kind) = (entry.path(), entry.file_type());
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            if kind.is_ok_and(|kind| kind.is_dir()) {
                if is_deep && !is_hidden {
                    directories.push(path);
                }
            } else if path.extension().is_some_and(|end| end == SUFFIX) {
                found.extend(fs::canonicalize(path));
            }
        }
    }
}

fn text_of(path: &Path, open: &Texts) -> Option<String> {
    if let Some(text) = open.get(path) {
        return Some(text.clone());
    }
    let data = fs::metadata(path).ok()?;
    let is_readable = data.is_file() && data.len() <= MAX_SCRIPT_LENGTH as u64;
    if is_readable { fs::read_to_string(path).ok() } else { None }
}

/// Returns true if a line may be a `use`.
fn has_use(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with("use "))
}

/// Parses a file with the files that it uses, some of which have other texts than on the disk.
fn parse_file(path: &Path, text: &str, texts: &Texts) -> Option<Script> {
    let (name, directory) = (path.display().to_string(), path.parent()?.to_owned());
    let mut files = ChangedFiles { disk: DiskFiles::new(&name, directory), texts };
    parse_with_files(&name, text.as_bytes(), &mut files).ok()
}

/// Files on the disk, some of which have other texts.
struct ChangedFiles<'a> {
    disk: DiskFiles,
    texts: &'a Texts,
}

impl UsedFiles for ChangedFiles<'_> {
    fn read(&mut self, user: &str, path: &str) -> Result<UsedFile, String> {
        let mut file = self.disk.read(user, path)?;
        if let Some(text) = self.texts.get(&file.identity) {
            file.text = text.clone().into_bytes();
        }
        Ok(file)
    }
}
