//! Fewer bars, where they are too many to be told apart.

use std::time::Duration;

use super::{Bar, End, Kind};

/// Puts those together that follow each other in less time than `room`, and gives the others as they are.
/// They are in order.
pub fn thin(bars: Vec<Bar>, room: Duration) -> Vec<Bar> {
    let mut thinned: Vec<(Bar, u64, u64)> = Vec::new();
    for bar in bars {
        let failed = u64::from(bar.end == End::Failed);
        match thinned.last_mut() {
            Some((last, count, failures))
                if last.kind == bar.kind && bar.to.saturating_sub(last.from) < room =>
            {
                last.to = last.to.max(bar.to);
                last.end = last.end.max(bar.end);
                *count += 1;
                *failures += failed;
            }
            _ => thinned.push((bar, 1, failed)),
        }
    }
    let told = |(mut bar, count, failures): (Bar, u64, u64)| {
        if count > 1 {
            let what = match bar.kind {
                Kind::Attempt => "attempts",
                Kind::Delay => "delays",
                Kind::Task | Kind::Call | Kind::Command => "commands",
            };
            bar.text = match failures {
                0 => format!("{count} {what}"),
                _ => format!("{count} {what}, {failures} failed"),
            };
        }
        bar
    };
    thinned.into_iter().map(told).collect()
}
