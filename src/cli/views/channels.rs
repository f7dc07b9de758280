//! `--channels`: state of the channels of a user, in columns.

use std::path::PathBuf;

use anyhow::{Result, anyhow};

use super::columns;
use crate::cli::messages::print_text;
use ftsh_machine::Outcome;
use ftsh_machine::outcome::Human;
use ftsh_process::{BreakerSnapshot, ChannelSnapshot, ListedChannel, list_channels};

const HEAD: [&str; 6] = ["CHANNEL", "PLACES", "WAITING", "TOKENS", "FAILURES", "BREAKER"];

/// Prints all channels in `directory`, or else in the user's own directory. An unreadable channel
/// makes the exit status 1.
pub(crate) fn show(directory: Option<PathBuf>) -> Result<Outcome> {
    let (directory, all) = list_channels(directory).map_err(|reason| anyhow!("{reason}"))?;
    if all.is_empty() {
        return Ok(print_text(&format!("no channels in {}\n", directory.display())));
    }
    let is_whole = all.iter().all(|channel| channel.state.is_ok());
    match print_text(&render(&all)) {
        Outcome::Succeeded if !is_whole => Ok(Outcome::Exited(1)),
        outcome => Ok(outcome),
    }
}

fn render(all: &[ListedChannel]) -> String {
    let head = HEAD.map(str::to_owned).to_vec();
    columns(&std::iter::once(head).chain(all.iter().map(row)).collect::<Vec<_>>())
}

/// Returns the cells of a channel; `-` for a rule that is not declared.
fn row(channel: &ListedChannel) -> Vec<String> {
    let name = channel.name.clone();
    let ChannelSnapshot { inside, places, waiting, tokens, failures, breaker } =
        match &channel.state {
            Ok(seen) => seen,
            Err(reason) => return vec![name, reason.clone()],
        };
    vec![
        name,
        places.map_or(format!("{inside}"), |places| format!("{inside}/{places}")),
        waiting.to_string(),
        tokens.map_or("-".into(), |tokens| format!("{tokens:.1}")),
        failures.to_string(),
        match breaker {
            None => "-".into(),
            Some(BreakerSnapshot::Closed) => "closed".into(),
            Some(BreakerSnapshot::Open(since)) => format!("open for {}", Human(*since)),
            Some(BreakerSnapshot::HalfOpen(since)) => format!("half open after {}", Human(*since)),
        },
    ]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn columns_stand_below_each_other() {
        let seen = |inside, places, tokens, breaker| {
            Ok(ChannelSnapshot { inside, places, waiting: 196, tokens, failures: 3, breaker })
        };
        let since = Duration::from_secs(12);
        let all = [
            ("a", seen(4, Some(4), Some(7.54), Some(BreakerSnapshot::Open(since)))),
            ("a_long_name", seen(1000, None, None, None)),
            ("b", Err("damaged: not JSON".into())),
            ("c", seen(0, Some(1), Some(10.0), Some(BreakerSnapshot::Closed))),
            ("d", seen(0, Some(1), Some(10.0), Some(BreakerSnapshot::HalfOpen(since)))),
        ];
        let all = all.map(|(name, state)| ListedChannel { name: name.into(), state });
        insta::assert_snapshot!(render(&all), @r"
        CHANNEL      PLACES  WAITING  TOKENS  FAILURES  BREAKER
        a            4/4     196      7.5     3         open for 12 s
        a_long_name  1000    196      -       3         -
        b            damaged: not JSON
        c            0/1     196      10.0    3         closed
        d            0/1     196      10.0    3         half open after 12 s
        ");
    }
}
