//! The mark that commands carry in their environment, so that a process that lost its parent can
//! be told whose it was.

use std::io;
use std::os::unix::ffi::OsStrExt;

use bstr::BString;
use nix::errno::Errno::ESRCH;

use ftsh_machine::effect::ScopeId;
use ftsh_sys as sys;

/// The variable. Its value is a list of `run.scope;note;note`, from the outermost nested shell inwards.
pub const VARIABLE: &str = "FTSH_SCOPE";

/// Names a run of a shell, unlike any other, and so that nobody can guess it: where orphans don't come
/// to the shell, who carries its name is killed with it.
#[derive(Clone, Debug)]
pub struct Marker {
    name: String,
    /// The list of the shell that started this one.
    around: BString,
}

/// Where a process belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The scope of this shell that it was started in.
    pub scope: ScopeId,
    /// How many shells inside this one had a part in that.
    pub depth: usize,
    /// The process id of the first of them.
    pub shell: Option<i32>,
}

impl Marker {
    /// A key for this process. Fails if the system has no random numbers.
    pub fn new() -> io::Result<Self> {
        let mark = std::env::var_os(VARIABLE).unwrap_or_default();
        // Of runs that are over nobody asks any more, and the list would grow for ever where each shell
        // leaves another one behind.
        let around = entries(mark.as_bytes()).filter(lives).map(|entry| entry.text);
        let around = around.collect::<Vec<_>>().join(",").into();
        let chance = [sys::random()?, sys::random()?];
        let name = format!("{}-{:016x}{:016x}", std::process::id(), chance[0], chance[1]);
        Ok(Self { name, around })
    }

    /// What it is in marks.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The variable's value for a command of a scope, with notes that each begin with a semicolon.
    pub fn value(&self, scope: ScopeId, notes: &str) -> BString {
        let comma = if self.around.is_empty() { "" } else { "," };
        format!("{}{comma}{}.{}{notes}", self.around, self.name, scope.0).into()
    }

    /// Where a process with this value belongs, if it is one of ours.
    pub fn find(&self, value: &[u8]) -> Option<Mark> {
        find(value, |run| run == self.name)
    }
}

/// Where a process with this value belongs, if any of these runs had a part in that.
pub fn find(value: &[u8], is_meant: impl Fn(&str) -> bool) -> Option<Mark> {
    let mut entries = entries(value);
    let scope = entries.find(|entry| is_meant(entry.run))?.scope;
    let shell = entries.next();
    let depth = shell.iter().len() + entries.count();
    Some(Mark { scope, depth, shell: shell.and_then(|shell| shell.pid()) })
}

/// Where a process with this value belongs, to the shell that started it itself.
pub fn innermost(value: &[u8]) -> Option<Mark> {
    let scope = entries(value).last()?.scope;
    Some(Mark { scope, depth: 0, shell: None })
}

/// What one of the nested shells says.
pub struct Entry<'a> {
    text: &'a str,
    /// The name of its run.
    pub run: &'a str,
    /// Its scope.
    scope: ScopeId,
    /// What else there is to say, separated by semicolons.
    pub notes: &'a str,
}

impl<'a> Entry<'a> {
    fn parse(text: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let (place, notes) = text.split_once(';').unwrap_or((text, ""));
        let (run, scope) = place.split_once('.')?;
        Some(Self { text, run, scope: ScopeId(scope.parse().ok()?), notes })
    }

    /// The process id of the shell.
    fn pid(&self) -> Option<i32> {
        self.run.split('-').next()?.parse().ok()
    }
}

/// Whether a shell is not over yet, or another process has its number.
pub fn lives(shell: &Entry) -> bool {
    shell.pid().is_some_and(|pid| sys::kill(pid, 0) != Err(ESRCH))
}

/// What nested shells say in a mark, from the outermost inwards.
pub fn entries(mark: &[u8]) -> impl Iterator<Item = Entry<'_>> {
    mark.split(|&byte| byte == b',').filter_map(Entry::parse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_keys_are_alike() {
        let key = || Marker::new().expect("random numbers").name;
        let (one, other) = (key(), key());
        let chance = one.strip_prefix(&format!("{}-", std::process::id())).expect("our number");
        assert_eq!(chance.len(), 32);
        assert!(!other.contains(&chance[..16]) && !other.contains(&chance[16..]));
    }

    #[test]
    fn nested_shells_add_to_the_list() {
        let outer = Marker { name: "1-1".into(), around: "".into() };
        let inner = Marker { name: "11-1".into(), around: outer.value(ScopeId(5), ";x=1") };
        let value = inner.value(ScopeId(7), "");
        assert_eq!(value, "1-1.5;x=1,11-1.7");
        assert_eq!(outer.find(&value), Some(Mark { scope: ScopeId(5), depth: 1, shell: Some(11) }));
        assert_eq!(inner.find(&value), Some(Mark { scope: ScopeId(7), depth: 0, shell: None }));
        assert_eq!(inner.find(b"1-1.5"), None);
        assert_eq!(outer.find(b"1-1.x"), None);
        assert_eq!(innermost(&value).map(|mark| mark.scope), Some(ScopeId(7)));
    }
}
