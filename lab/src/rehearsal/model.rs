//! What a command is taken to do, as people say it: `wget fails 30% takes 2s to 20s`.

use std::fmt;
use std::time::Duration;

use bstr::{BString, ByteSlice};
use rand::RngExt;

use crate::common::Random;

/// A command's model.
#[derive(Clone, Debug)]
pub struct Model {
    /// As written.
    pub text: String,
    /// The command's name, and words among its arguments.
    pub words: Vec<String>,
    /// Which runs fail by themselves.
    pub fails: Fails,
    /// The chance that a run never ends by itself.
    pub hangs: f64,
    /// How long a run takes.
    pub takes: Option<Length>,
    /// How long a run takes that fails, if that differs.
    pub failing: Option<Length>,
    /// How a run that fails ends, from 1 to 255.
    pub status: i32,
    /// When every run fails.
    pub down: Vec<Outage>,
    /// What a run prints that succeeds.
    pub prints: Option<BString>,
    /// How many runs there can be at once, while others wait.
    pub places: Option<usize>,
    /// Whether it is only ended by SIGKILL.
    pub is_stubborn: bool,
}

/// Which runs of a command fail by themselves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fails {
    /// None.
    Never,
    /// All.
    Always,
    /// Each with this chance.
    Chance(f64),
    /// So many, and then none.
    First(u64),
}

/// A length of time, drawn evenly from the least to the most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Length {
    /// At least.
    pub least: Duration,
    /// At most.
    pub most: Duration,
}

impl Length {
    /// A length from `least` to `most`.
    pub fn draw(&self, random: &mut Random) -> Duration {
        // Always drawn, so that runs of scripts that differ a little have much in common.
        let part = random.random::<f64>();
        self.least + self.most.saturating_sub(self.least).mul_f64(part)
    }
}

/// A time in which all runs fail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outage {
    /// Until it begins.
    pub from: Length,
    /// Until it is over.
    pub lasts: Length,
}

impl Model {
    /// Whether it is about a command: that of its name, with or without a directory, with its other
    /// words among the arguments in this order. `*` and `?` stand for anything in a word.
    pub fn is_about(&self, command: &[BString]) -> bool {
        let Some((name, arguments)) = command.split_first() else { return false };
        let mut wanted = self.words.iter().skip(1);
        let mut arguments = arguments.iter();
        self.is_named(name)
            && wanted.all(|wanted| arguments.any(|it| matches(wanted.as_bytes(), it)))
    }

    /// Whether commands of a name may be what it is about.
    pub fn is_named(&self, name: &[u8]) -> bool {
        self.words.first().is_some_and(|wanted| {
            matches(wanted.as_bytes(), name) || matches(wanted.as_bytes(), last_name(name))
        })
    }

    /// The command it is about.
    pub fn name(&self) -> String {
        self.words.join(" ")
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A path's last name.
pub fn last_name(path: &[u8]) -> &[u8] {
    path.rsplit_str("/").next().unwrap_or(path)
}

/// Whether a text matches a pattern, in which `*` stands for any text and `?` for any byte.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut place) = (0, 0);
    // After the last star: where the pattern goes on, and how far the star reaches by now.
    let mut star: Option<(usize, usize)> = None;
    while place < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                at += 1;
                star = Some((at, place));
            }
            Some(wanted) if *wanted == b'?' || *wanted == text[place] => {
                at += 1;
                place += 1;
            }
            _ => {
                let Some((after, reach)) = &mut star else { return false };
                *reach += 1;
                (at, place) = (*after, *reach);
            }
        }
    }
    pattern[at..].iter().all(|rest| *rest == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything_in_a_word() {
        for (pattern, text) in [
            ("", ""),
            ("*", ""),
            ("*", "a/b"),
            ("*.de.*", "http://ftp.de.debian.org/x"),
            ("a?c*", "abcd"),
            ("*ab*ab", "xabyabab"),
            ("**", "x"),
        ] {
            assert!(matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
        for (pattern, text) in [("", "a"), ("?", ""), ("*a", "ab"), ("a*b*c", "acb"), ("ab", "a")] {
            assert!(!matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
        // However many stars there are.
        assert!(!matches("*a".repeat(50).as_bytes(), "a".repeat(49).as_bytes()));
    }
}
