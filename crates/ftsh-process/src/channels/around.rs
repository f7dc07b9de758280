//! What the shells around this one are inside of, as they tell it: who goes through a channel inside an
//! attempt that went through it takes no second place, which it might wait for as long as the first is
//! taken.

use std::os::fd::AsFd;

use super::file::{ChannelFile, is_name};
use super::locks;

/// The variable: `name:number` of each place, with commas between. It is believed as long as somebody
/// has that place.
pub const VARIABLE: &str = "FTSH_INSIDE";

/// Places of shells around this one.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Around(Vec<(String, u64)>);

impl Around {
    /// What this shell was told.
    pub fn told() -> Self {
        std::env::var(VARIABLE).map(|text| Self::read(&text)).unwrap_or_default()
    }

    fn read(text: &str) -> Self {
        let place = |text: &str| {
            let (name, number) = text.split_once(':')?;
            let number =
                number.parse().ok().filter(|number| *number < ftsh_machine::channels::NUMBERS)?;
            is_name(name).then(|| (name.to_owned(), number))
        };
        Self(text.split(',').filter_map(place).collect())
    }

    /// Whether one of them is inside a channel now, of which this is the file.
    pub fn is_inside(&self, name: &str, file: &ChannelFile) -> bool {
        let mut places = self.0.iter().filter(|(other, _)| other == name);
        let is_taken = |number| locks::find(file.as_fd(), locks::attempt(number));
        places.any(|(_, number)| matches!(is_taken(*number), Ok(Some(_))))
    }

    /// What to tell a command that is inside these as well. Of a place that this shell has itself, no
    /// other one counts.
    pub fn tell(&self, own: &[(&str, u64)]) -> String {
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
    fn what_is_told_is_read_again() {
        let around = Around::read("a:1,b:2");
        assert_eq!(around.tell(&[]), "a:1,b:2");
        assert_eq!(around.tell(&[("b", 4), ("c", 3)]), "a:1,b:4,c:3");
        for nonsense in ["", ",", "a", "a:", ":1", "a:-1", "../a:1", "a:1152921504606846976"] {
            assert_eq!(Around::read(nonsense), Around::default(), "{nonsense}");
        }
    }
}
