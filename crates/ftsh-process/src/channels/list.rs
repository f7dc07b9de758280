//! List of the user's channels, for people.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::clock::ChannelClock;
use super::file::{ChannelDirectory, ChannelFile, ChannelFileError, is_name};
use super::locks::{ATTEMPTS, count, waiters};
use crate::clock::BOOT_ID;
use ftsh_machine::channels::stored::{MAX_NUMBER, Stored};

/// Number of reads of a text, which may look damaged while another shell writes it.
const MAX_READS: usize = 3;

/// Entry of the list.
pub struct ListedChannel {
    /// Name of the channel.
    pub name: String,
    /// State of the channel, or the reason why it cannot be read.
    pub state: Result<ChannelSnapshot, String>,
}

/// Current state of a channel.
pub struct ChannelSnapshot {
    /// Number of attempts that hold a pass.
    pub inside: u64,
    /// Maximum number of passes, according to the last attempt's rules.
    pub places: Option<u64>,
    /// Number of waiters.
    pub waiting: u64,
    /// Number of retries in the budget, if there is one.
    pub tokens: Option<f64>,
    /// Number of failures in a row.
    pub failures: u64,
    /// Breaker, if there is one.
    pub breaker: Option<BreakerSnapshot>,
}

/// Current state of a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerSnapshot {
    /// Attempts are admitted.
    Closed,
    /// Attempts have been refused for this time.
    Open(Duration),
    /// Open for this time; the next attempt may be admitted as a probe.
    HalfOpen(Duration),
}

/// Returns the directory of channels, and its channels by name. Creates nothing.
pub fn list_channels(given: Option<PathBuf>) -> Result<(PathBuf, Vec<ListedChannel>), String> {
    let directory = ChannelDirectory::new(given);
    let path = directory.path().to_owned();
    if !path.exists() {
        return Ok((path, Vec::new()));
    }
    directory.make().map_err(|error| error.to_string())?;
    let error_here = |error| ChannelFileError::System { path: path.clone(), error }.to_string();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&path).map_err(error_here)? {
        let name = entry.map_err(error_here)?.file_name().to_string_lossy().into_owned();
        if is_name(&name) {
            names.push(name);
        }
    }
    names.sort();
    let clock = ChannelClock::new()
        .map_err(|error| ChannelFileError::System { path: BOOT_ID.into(), error }.to_string())?;
    let look = |name: String| ListedChannel { state: see(&path.join(&name), &clock), name };
    let listed = names.into_iter().map(look).collect();
    Ok((path, listed))
}

fn see(path: &Path, clock: &ChannelClock) -> Result<ChannelSnapshot, String> {
    let file = ChannelFile::open_to_look(path.to_owned()).map_err(|error| error.to_string())?;
    let system = |error| file.error_here(error).to_string();
    let mut look = 0;
    let (stored, now) = loop {
        let text = file.read().map_err(system)?;
        let now = clock.now();
        look += 1;
        match Stored::read(&text, &clock.name, now) {
            Ok(stored) => break (stored, now),
            Err(_) if look < MAX_READS => std::thread::sleep(Duration::from_millis(1)),
            Err(damaged) => return Err(format!("damaged: {damaged}")),
        }
    };
    let Stored { state, rules, .. } = stored;
    let breaker = match (rules.breaker, state.open_since()) {
        (None, None) => None,
        (Some(_), None) => Some(BreakerSnapshot::Closed),
        (breaker, Some(since)) => {
            let open = now.saturating_sub(since);
            let is_over = breaker.is_some_and(|breaker| open >= breaker.open);
            Some(if is_over {
                BreakerSnapshot::HalfOpen(open)
            } else {
                BreakerSnapshot::Open(open)
            })
        }
    };
    Ok(ChannelSnapshot {
        inside: count(file.as_fd(), ATTEMPTS).map_err(system)?,
        places: rules.places,
        waiting: count(file.as_fd(), waiters(0..MAX_NUMBER)).map_err(system)?,
        tokens: rules.budget.map(|_| state.tokens(now)),
        failures: state.failures(),
        breaker,
    })
}
