//! The mark that commands carry in their environment, so that a process that lost its parent can
//! be told whose it was.

use std::io;

use bstr::BString;

use super::sys;
use crate::machine::effect::ScopeId;

/// The variable. Its value is a list of `shell.scope`, from the outermost nested shell inwards.
pub const VARIABLE: &str = "FTSH_SCOPE";

/// Names a run of a shell, unlike any other, and so that nobody can guess it: where orphans don't come
/// to the shell, who carries its name is killed with it.
#[derive(Clone, Debug)]
pub struct Key {
    name: String,
    /// The list of the shell that started this one.
    around: BString,
}

/// Where a process belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The scope of this shell that it was started in.
    pub scope: ScopeId,
    /// How many shells inside this one had a part in that.
    pub depth: usize,
    /// The process id of the first of them.
    pub shell: Option<i32>,
}

impl Key {
    /// A key for this process. Fails if the system has no random numbers.
    pub fn new() -> io::Result<Self> {
        use std::os::unix::ffi::OsStringExt;
        let around = std::env::var_os(VARIABLE).unwrap_or_default().into_vec().into();
        let chance = [sys::random()?, sys::random()?];
        let name = format!("{}-{:016x}{:016x}", std::process::id(), chance[0], chance[1]);
        Ok(Self { name, around })
    }

    /// The variable's value for a command of a scope.
    pub fn value(&self, scope: ScopeId) -> BString {
        let comma = if self.around.is_empty() { "" } else { "," };
        format!("{}{comma}{}.{}", self.around, self.name, scope.0).into()
    }

    /// Where a process with this value belongs, if it is one of ours.
    pub fn place_in(&self, value: &[u8]) -> Option<Place> {
        let mut entries = value.split(|&byte| byte == b',');
        let scope = entries.find_map(|entry| {
            let number = entry.strip_prefix(self.name.as_bytes())?.strip_prefix(b".")?;
            Some(ScopeId(std::str::from_utf8(number).ok()?.parse().ok()?))
        })?;
        let nested: Vec<&[u8]> = entries.collect();
        let shell = nested.first().and_then(|entry| {
            let pid = entry.split(|&byte| byte == b'-').next()?;
            std::str::from_utf8(pid).ok()?.parse().ok()
        });
        Some(Place { scope, depth: nested.len(), shell })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_keys_are_alike() {
        let key = || Key::new().expect("random numbers").name;
        let (one, other) = (key(), key());
        let chance = one.strip_prefix(&format!("{}-", std::process::id())).expect("our number");
        assert_eq!(chance.len(), 32);
        assert!(!other.contains(&chance[..16]) && !other.contains(&chance[16..]));
    }

    #[test]
    fn nested_shells_add_to_the_list() {
        let outer = Key { name: "1-1".into(), around: "".into() };
        let inner = Key { name: "11-1".into(), around: outer.value(ScopeId(5)) };
        let value = inner.value(ScopeId(7));
        assert_eq!(value, "1-1.5,11-1.7");
        assert_eq!(
            outer.place_in(&value),
            Some(Place { scope: ScopeId(5), depth: 1, shell: Some(11) })
        );
        assert_eq!(
            inner.place_in(&value),
            Some(Place { scope: ScopeId(7), depth: 0, shell: None })
        );
        assert_eq!(inner.place_in(b"1-1.5"), None);
        assert_eq!(outer.place_in(b"1-1.x"), None);
    }
}
