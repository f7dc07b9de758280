//! Carriers: programs along PATH that run branches elsewhere.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Maximum length of a name, in bytes, as of a label in a host name.
const MAX_NAME: usize = 63;

/// Word of the argument that lists hosts.
const HOSTS: &str = "hosts=";

/// Name of a carrier. The program is called `ftsh-carry-NAME`.
///
/// A name begins with a letter, and has letters, digits, `.`, `_` and `-`; at most 63 in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CarrierName(&'static str);

/// All names so far. They are never freed, since scripts name few carriers and events of all kinds
/// have room for a name.
static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

impl CarrierName {
    /// Creates a name; none if no carrier can have this name.
    pub fn new(name: &str) -> Option<Self> {
        let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let begins = name.starts_with(|c: char| c.is_ascii_alphabetic());
        if !begins || name.len() > MAX_NAME || !name.bytes().all(is_valid) {
            return None;
        }
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        let known = names.get(name).copied().unwrap_or_else(|| name.to_owned().leak());
        names.insert(known);
        Some(Self(known))
    }

    /// Returns the name.
    pub fn as_str(self) -> &'static str {
        self.0
    }

    /// Returns the name of the program.
    pub fn program(self) -> String {
        format!("ftsh-carry-{}", self.0)
    }
}

/// Returns the hosts of the word `hosts=host1,host2*4`, each with its places, if the words have one.
pub(super) fn hosts(words: &str) -> Result<Option<Vec<(String, u64)>>, String> {
    let mut lists = words.split_ascii_whitespace().filter_map(|word| word.strip_prefix(HOSTS));
    let Some(list) = lists.next() else { return Ok(None) };
    if lists.next().is_some() {
        return Err(format!("`{HOSTS}` is given twice"));
    }
    match super::hosts(&list.replace(',', " "))? {
        hosts if hosts.is_empty() => Err(format!("expected hosts, like `{HOSTS}host1,host2*4`")),
        hosts => Ok(Some(hosts)),
    }
}

/// Returns the words for the carrier: all but the list of hosts, which is for the shell.
pub fn words_for_carrier(words: &[u8]) -> impl Iterator<Item = &[u8]> {
    let words = words.split(u8::is_ascii_whitespace);
    words.filter(|word| !word.is_empty() && !word.starts_with(HOSTS.as_bytes()))
}

#[cfg(test)]
mod tests {
    use crate::engine::EngineId;

    #[test]
    fn names_of_carriers() {
        let long = "a".repeat(63);
        for name in ["a", "x.y_z-1", &long] {
            assert_eq!(EngineId::named(name).expect("a carrier").name(), name);
        }
        for name in ["", "-a", "1", ".", "a/b", "a b", "ä", &format!("{long}a")] {
            assert_eq!(EngineId::named(name), None, "{name}");
        }
    }

    #[test]
    fn a_word_lists_hosts() {
        let condor = EngineId::named("condor").expect("a carrier");
        assert_eq!(condor.hosts("request_memory=4G"), Ok(None));
        let hosts = vec![("a".to_owned(), 1), ("b".to_owned(), 4)];
        assert_eq!(condor.hosts("x hosts=a,b*4 y"), Ok(Some(hosts)));
        for words in ["hosts=", "hosts=a hosts=b", "hosts=a*0", "hosts=,"] {
            assert!(condor.argument_error(words).is_some(), "{words}");
        }
    }
}
