//! Merge of bars that are too close to be distinguished.

use std::time::Duration;

use super::{Bar, BarKind, SpanEnd};

/// Merges consecutive bars that together take less than `room`. The bars are in order.
pub(super) fn thin(bars: Vec<Bar>, room: Duration) -> Vec<Bar> {
    let mut thinned: Vec<(Bar, u64, u64)> = Vec::new();
    for bar in bars {
        let failed = u64::from(bar.end == SpanEnd::Failed);
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
    let merged = |(mut bar, count, failures): (Bar, u64, u64)| {
        if count > 1 {
            let what = match bar.kind {
                BarKind::Attempt => "attempts",
                BarKind::Delay => "delays",
                BarKind::Task | BarKind::Call | BarKind::Command => "commands",
            };
            bar.text = match failures {
                0 => format!("{count} {what}"),
                _ => format!("{count} {what}, {failures} failed"),
            };
        }
        bar
    };
    thinned.into_iter().map(merged).collect()
}
