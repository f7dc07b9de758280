//! Tag in the environment of commands. The tag identifies the scope of a process that has lost its
//! parent.

use std::io;
use std::os::unix::ffi::OsStrExt;

use bstr::BString;
use nix::errno::Errno::ESRCH;

use ftsh_machine::effect::ScopeId;
use ftsh_sys as sys;

/// Creates and recognizes the tags of one run. The run's name is unique and cannot be guessed:
/// without a subreaper, every process whose tag contains the name is killed with the run.
#[derive(Clone, Debug)]
pub struct Tagger {
    name: String,
    /// Tag that this shell inherited, reduced to the shells that still live.
    around: BString,
}

/// Scope of a process, as found in its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScopeTag {
    /// Scope of this shell in which the process was started.
    pub scope: ScopeId,
    /// Number of nested shells between this shell and the process.
    pub depth: usize,
    /// Process id of the outermost of these nested shells.
    pub shell: Option<i32>,
}

impl Tagger {
    /// Creates a name for this process's run. Fails if the system has no random numbers.
    pub fn new() -> io::Result<Self> {
        let scope_tag = std::env::var_os(ScopeTag::VARIABLE).unwrap_or_default();
        // Entries of ended runs are dropped. Otherwise the list would grow without bound where each
        // shell leaves another one running.
        let around = entries(scope_tag.as_bytes()).filter(lives).map(|entry| entry.text);
        let around = around.collect::<Vec<_>>().join(",").into();
        let chance = [sys::random()?, sys::random()?];
        let name = format!("{}-{:016x}{:016x}", std::process::id(), chance[0], chance[1]);
        Ok(Self { name, around })
    }

    /// Returns the name of the run.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the tag of a command in a scope. Each note begins with a semicolon.
    pub fn value(&self, scope: ScopeId, notes: &str) -> BString {
        let comma = if self.around.is_empty() { "" } else { "," };
        format!("{}{comma}{}.{}{notes}", self.around, self.name, scope.0).into()
    }

    /// Parses a tag; none if the tag does not mention this run.
    pub fn find(&self, value: &[u8]) -> Option<ScopeTag> {
        ScopeTag::find(value, |run| run == self.name)
    }
}

impl ScopeTag {
    /// Environment variable of the tag. Its value is a list of `run.scope;note;note`, outermost shell
    /// first.
    pub(crate) const VARIABLE: &str = "FTSH_SCOPE";

    /// Parses a tag, relative to the first run accepted by `is_meant`.
    pub(crate) fn find(value: &[u8], is_meant: impl Fn(&str) -> bool) -> Option<ScopeTag> {
        let mut entries = entries(value);
        let scope = entries.find(|entry| is_meant(entry.run))?.scope;
        let shell = entries.next();
        let depth = shell.iter().len() + entries.count();
        Some(ScopeTag { scope, depth, shell: shell.and_then(|shell| shell.pid()) })
    }

    /// Parses a tag, relative to the innermost shell.
    pub(crate) fn innermost(value: &[u8]) -> Option<ScopeTag> {
        let scope = entries(value).last()?.scope;
        Some(ScopeTag { scope, depth: 0, shell: None })
    }
}

/// Entry of one shell in a tag.
pub(super) struct TagEntry<'a> {
    text: &'a str,
    /// Name of the shell's run.
    pub run: &'a str,
    /// Scope of the shell.
    scope: ScopeId,
    /// Notes of the shell, separated by semicolons.
    pub notes: &'a str,
}

impl<'a> TagEntry<'a> {
    fn parse(text: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let (place, notes) = text.split_once(';').unwrap_or((text, ""));
        let (run, scope) = place.split_once('.')?;
        Some(Self { text, run, scope: ScopeId(scope.parse().ok()?), notes })
    }

    /// Returns the process id of the shell.
    fn pid(&self) -> Option<i32> {
        self.run.split('-').next()?.parse().ok()
    }
}

/// True if a process has the shell's process id.
pub(super) fn lives(shell: &TagEntry) -> bool {
    shell.pid().is_some_and(|pid| sys::kill(pid, 0) != Err(ESRCH))
}

/// Parses the entries of a tag, outermost shell first.
pub(super) fn entries(scope_tag: &[u8]) -> impl Iterator<Item = TagEntry<'_>> {
    scope_tag.split(|&byte| byte == b',').filter_map(TagEntry::parse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_runs_are_unique() {
        let key = || Tagger::new().expect("random numbers").name;
        let (one, other) = (key(), key());
        let chance = one.strip_prefix(&format!("{}-", std::process::id())).expect("our number");
        assert_eq!(chance.len(), 32);
        assert!(!other.contains(&chance[..16]) && !other.contains(&chance[16..]));
    }

    #[test]
    fn nested_shells_add_to_the_list() {
        let outer = Tagger { name: "1-1".into(), around: "".into() };
        let inner = Tagger { name: "11-1".into(), around: outer.value(ScopeId(5), ";x=1") };
        let value = inner.value(ScopeId(7), "");
        assert_eq!(value, "1-1.5;x=1,11-1.7");
        assert_eq!(
            outer.find(&value),
            Some(ScopeTag { scope: ScopeId(5), depth: 1, shell: Some(11) })
        );
        assert_eq!(inner.find(&value), Some(ScopeTag { scope: ScopeId(7), depth: 0, shell: None }));
        assert_eq!(inner.find(b"1-1.5"), None);
        assert_eq!(outer.find(b"1-1.x"), None);
        assert_eq!(ScopeTag::innermost(&value).map(|scope_tag| scope_tag.scope), Some(ScopeId(7)));
    }
}
