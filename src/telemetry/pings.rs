//! Pings of a monitor, by the protocol of healthchecks: the start and the end of each run.

use std::time::{Duration, Instant};

use super::courier::{Courier, Request, RequestKind};
use super::http::Url;

/// Maximum size of the report in a ping, in bytes.
const MAX_REPORT: usize = 100_000;

/// Pings about one run.
#[derive(Debug)]
pub(crate) struct Pings {
    pub url: Url,
    pub courier: Courier,
}

impl Pings {
    /// Reports the start of the run. `will` is the report if SIGKILL ends the whole shell.
    pub(crate) fn start(&self, run: u64, will: &str) {
        let will = self.ping("/fail", run, will).encode();
        let request = Request { body: will, ..self.ping("/start", run, "") };
        self.courier.send(RequestKind::First, &request);
    }

    /// Reports the end of the run: a success with an empty path, `/fail`, or `/log` for no run. Waits
    /// up to the limit for all pings. Returns the reasons of those that failed.
    pub(crate) fn end(&self, path: &str, run: u64, report: &str, limit: Duration) -> Vec<String> {
        let start = report.len().saturating_sub(MAX_REPORT);
        let start =
            (start..=report.len()).find(|&it| report.is_char_boundary(it)).unwrap_or_default();
        let report = if path.is_empty() { "" } else { &report[start..] };
        self.courier.send(RequestKind::Last, &self.ping(path, run, report));
        self.courier.finish(Instant::now() + limit).1
    }

    fn ping(&self, path: &str, run: u64, body: &str) -> Request {
        let url = self.url.with(path, &format!("rid={}", uuid(run)));
        let kind = (!body.is_empty()).then(|| "Content-Type: text/plain; charset=utf-8".to_owned());
        Request { url, headers: kind.into_iter().collect(), body: body.into(), count: 1 }
    }
}

/// Returns a UUID made of the id of a run, which is random.
fn uuid(run: u64) -> String {
    let mixed = run.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32) ^ run;
    let (high, middle, low) = (run >> 32, run >> 16 & 0xffff, run & 0xfff);
    let (variant, node) = (mixed >> 48 & 0x3fff | 0x8000, mixed & 0xffff_ffff_ffff);
    format!("{high:08x}-{middle:04x}-4{low:03x}-{variant:04x}-{node:012x}")
}
