//! Passes held by shells around this one, as listed in the environment. An attempt inside an
//! attempt with a pass takes no second place in the same channel: it could wait forever for the
//! place of the outer attempt.

use std::os::fd::AsFd;

use super::file::{ChannelFile, is_name};
use super::locks::{attempt, find};

/// Environment variable with `name:number` for each pass, separated by commas. A pass is valid
/// while a process holds its lock.
pub(crate) const VARIABLE: &str = "FTSH_INSIDE";

/// Passes of shells around this one.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct OuterPasses(Vec<(String, u64)>);

impl OuterPasses {
    /// Reads the passes from the environment of this shell.
    pub(super) fn from_env() -> Self {
        std::env::var(VARIABLE).map(|text| Self::read(&text)).unwrap_or_default()
    }

    fn read(text: &str) -> Self {
        let place = |text: &str| {
            let (name, number) = text.split_once(':')?;
            let number = number
                .parse()
                .ok()
                .filter(|number| *number < ftsh_machine::channels::stored::MAX_NUMBER)?;
            is_name(name).then(|| (name.to_owned(), number))
        };
        Self(text.split(',').filter_map(place).collect())
    }

    /// True if one of the passes is valid now for the channel with this file.
    pub(super) fn is_inside(&self, name: &str, file: &ChannelFile) -> bool {
        let mut places = self.0.iter().filter(|(other, _)| other == name);
        let is_taken = |number| find(file.as_fd(), attempt(number));
        places.any(|(_, number)| matches!(is_taken(*number), Ok(Some(_))))
    }

    /// Formats the variable for a command that also holds `own` passes. Own passes replace outer
    /// ones of the same channel.
    pub(super) fn env_value(&self, own: &[(&str, u64)]) -> String {
        let is_old = |name: &str| own.iter().all(|(other, _)| *other != name);
        let around = self.0.iter().map(|(name, number)| (name.as_str(), *number));
        let all = around.filter(|(name, _)| is_old(name)).chain(own.iter().copied());
        all.map(|(name, number)| format!("{name}:{number}")).collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_parsed_as_it_was_formatted() {
        let around = OuterPasses::read("a:1,b:2");
        assert_eq!(around.env_value(&[]), "a:1,b:2");
        assert_eq!(around.env_value(&[("b", 4), ("c", 3)]), "a:1,b:4,c:3");
        for nonsense in ["", ",", "a", "a:", ":1", "a:-1", "../a:1", "a:1152921504606846976"] {
            assert_eq!(OuterPasses::read(nonsense), OuterPasses::default(), "{nonsense}");
        }
    }
}
