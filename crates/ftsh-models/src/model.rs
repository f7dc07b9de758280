//! Models of commands, written as `wget fails 30% takes 2s to 20s`.

use std::fmt;
use std::time::Duration;

use bstr::{BString, ByteSlice};
use rand::{Rng, RngExt};

/// Model of a command.
#[derive(Clone, Debug)]
pub struct CommandModel {
    /// Text of the model.
    pub text: String,
    /// Name of the command, and words among its arguments.
    pub words: Vec<String>,
    /// Runs that fail by themselves.
    pub fails: Fails,
    /// Probability that a run never ends by itself.
    pub hangs: f64,
    /// Duration of a run.
    pub takes: Option<DurationRange>,
    /// Duration of a failing run, if different.
    pub failing: Option<DurationRange>,
    /// Exit status of a failing run, from 1 to 255.
    pub status: i32,
    /// Times in which all runs fail.
    pub down: Vec<Outage>,
    /// Output of a successful run.
    pub prints: Option<BString>,
    /// Maximum number of concurrent runs; further runs wait.
    pub places: Option<usize>,
    /// True if only SIGKILL ends a run.
    pub is_stubborn: bool,
}

/// Runs of a command that fail by themselves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fails {
    /// No run.
    Never,
    /// All runs.
    Always,
    /// Each run with this probability.
    Chance(f64),
    /// The first runs up to this number.
    First(u64),
}

/// A uniformly distributed length of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DurationRange {
    /// Minimum.
    pub least: Duration,
    /// Maximum.
    pub most: Duration,
}

impl DurationRange {
    /// Draws a length.
    pub fn draw(&self, random: &mut impl Rng) -> Duration {
        // Always drawn, so that runs of similar scripts share their random numbers.
        let part = random.random::<f64>();
        self.least + self.most.saturating_sub(self.least).mul_f64(part)
    }
}

/// A time in which all runs fail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outage {
    /// Time until the beginning.
    pub from: DurationRange,
    /// Duration.
    pub lasts: DurationRange,
}

impl CommandModel {
    /// True if the model applies to a command with the same name, with or without a directory, and
    /// the other words among its arguments in this order. `*` and `?` are wildcards within a word.
    pub fn applies_to(&self, command: &[BString]) -> bool {
        let Some((name, arguments)) = command.split_first() else { return false };
        let mut wanted = self.words.iter().skip(1);
        let mut arguments = arguments.iter();
        self.may_apply_to_name(name)
            && wanted.all(|wanted| arguments.any(|it| matches(wanted.as_bytes(), it)))
    }

    /// True if the model may apply to commands with this name.
    pub fn may_apply_to_name(&self, name: &[u8]) -> bool {
        self.words.first().is_some_and(|wanted| {
            matches(wanted.as_bytes(), name) || matches(wanted.as_bytes(), last_name(name))
        })
    }

    /// Returns the command of the model.
    pub fn name(&self) -> String {
        self.words.join(" ")
    }
}

impl fmt::Display for CommandModel {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Returns the last name of a path.
pub fn last_name(path: &[u8]) -> &[u8] {
    path.rsplit_str("/").next().unwrap_or(path)
}

/// True if a text matches a pattern with `*` for any text and `?` for any byte.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut place) = (0, 0);
    // State of the last star: the rest of the pattern, and the end of the text that the star
    // matches.
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
