//! Spans of a distributed trace: their ids, and the events that only spans need.

use serde::{Deserialize, Serialize};

use crate::effect::ProcessId;
use crate::outcome::FailureKind;
use crate::time::Time;

/// Variable in which programs pass on their place in a trace, by the W3C's Trace Context.
pub const TRACEPARENT: &str = "TRACEPARENT";

/// Maximum length of the base name of a program in a span.
const MAX_NAME: usize = 255;

/// Place of a run in a distributed trace.
///
/// The ids of spans are hashes of the run and of ids of the machine. A resumed run, and a reader of
/// its journal, make the same ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceContext {
    /// Id of the trace, never 0.
    pub trace: u128,
    /// Id of the span around the run, if any.
    pub parent: Option<u64>,
    /// Number that distinguishes the run from others of the trace.
    run: u64,
}

impl TraceContext {
    /// Returns the context of a run, whose caller passed `header` in [`TRACEPARENT`]. Without a valid
    /// header, the run begins a trace. Returns `None` if the caller's trace is not recorded.
    pub fn new(run: u64, header: Option<&[u8]>) -> Option<Self> {
        let Some((trace, parent, flags)) = header.and_then(parse) else {
            let trace = u128::from(mix(run)) << 64 | u128::from(mix(!run));
            return Some(Self { trace: trace.max(1), parent: None, run });
        };
        (flags & 1 == 1).then_some(Self { trace, parent: Some(parent), run })
    }

    /// Returns the id of the span of an object of the machine, or of a numbered part of the object.
    pub fn span(&self, id: u64, part: u64) -> u64 {
        mix(mix(self.run ^ mix(id)) ^ part).max(1)
    }

    /// Returns the value of [`TRACEPARENT`] for a program.
    pub fn header(&self, process: ProcessId) -> String {
        format!("00-{:032x}-{:016x}-01", self.trace, self.span(process.0, 0))
    }

    /// Returns the context of a branch on another machine, where ids of objects begin again. The
    /// span `around` is the branch.
    pub(crate) fn elsewhere(&self, dispatch: ProcessId, around: u64) -> Self {
        let run = self.span(dispatch.0, 0);
        Self { parent: Some(self.span(around, 0)), run, ..*self }
    }
}

/// Parses the value of [`TRACEPARENT`]: the ids of trace and span, and the flags. Later versions of
/// the format may add fields.
fn parse(header: &[u8]) -> Option<(u128, u64, u8)> {
    let header = str::from_utf8(header).ok()?;
    let (version, rest) = header.split_once('-')?;
    let is_hex = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
    };
    let mut fields = rest.split('-');
    let (trace, span, flags) = (fields.next()?, fields.next()?, fields.next()?);
    let is_valid = is_hex(version, 2) && is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2);
    if !is_valid || version == "ff" || version == "00" && fields.next().is_some() {
        return None;
    }
    let trace = u128::from_str_radix(trace, 16).ok().filter(|it| *it != 0)?;
    let span = u64::from_str_radix(span, 16).ok().filter(|it| *it != 0)?;
    Some((trace, span, u8::from_str_radix(flags, 16).ok()?))
}

/// Mixes bits by the finalizer of `SplitMix64`.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

/// Event that only spans need. Logs have no line for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpanEvent {
    /// A task begins: a branch, or a stage.
    TaskBegan {
        /// True for a branch of a loop and for the command of a `with`.
        is_branch: bool,
    },
    /// A task is over, with the kind of its failure.
    TaskEnded(Option<FailureKind>),
    /// An attempt of a `try` begins.
    Attempt {
        /// Id of the `try`.
        id: u64,
        /// Beginning of the `try`.
        started: Time,
        /// Number of the attempt, from 1.
        number: u64,
        /// Name of the policy of the delays.
        policy: &'static str,
    },
    /// An attempt has failed, and nothing of the attempt is left.
    AttemptFailed {
        /// Id of the `try`.
        id: u64,
        /// Kind of the failure.
        failure: FailureKind,
    },
    /// A `try` is over.
    TryEnded {
        /// Id of the `try`.
        id: u64,
        /// Kind of the failure; `Canceled` if a structure around the `try` ends it.
        failure: Option<FailureKind>,
    },
    /// A program is about to start.
    ProgramStarted {
        /// Id of the command.
        process: ProcessId,
        /// Base name of the program.
        name: String,
        /// True if the program is in the place of the shell, and its end is the end of the run.
        is_last: bool,
    },
    /// A program runs, with this process id.
    ProgramRunning(i32),
    /// The exit status of a program is the answer to a condition.
    Answered(i32),
    /// Finished spans of a branch on another machine.
    Elsewhere(RemoteSpans),
}

/// Spans of a branch on another machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteSpans {
    /// Finished spans, each as a JSON object.
    pub finished: Vec<String>,
    /// Number of spans that did not fit.
    pub dropped: u64,
}

impl RemoteSpans {
    /// Drops all spans.
    pub fn shorten(&mut self) {
        self.dropped += std::mem::take(&mut self.finished).len() as u64;
    }
}

impl SpanEvent {
    /// Creates the event of a program that is about to start.
    pub(crate) fn of_program(process: ProcessId, path: &[u8], is_last: bool) -> Self {
        let base = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let name = String::from_utf8_lossy(&base[..base.len().min(MAX_NAME)]).into_owned();
        Self::ProgramStarted { process, name, is_last }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn of(header: &str) -> Option<TraceContext> {
        TraceContext::new(7, Some(header.as_bytes()))
    }

    #[test]
    fn a_run_continues_the_trace_of_its_caller() {
        let context = of(CALLER).expect("a recorded trace");
        assert_eq!(context.trace, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!(context.parent, Some(0x00f0_67aa_0ba9_02b7));
        let header = context.header(ProcessId(3));
        let own = of(&header).expect("a valid header");
        assert_eq!((own.trace, own.parent), (context.trace, Some(context.span(3, 0))));
        assert_eq!(of(&CALLER.replace("-01", "-00")), None, "an unrecorded trace");
        assert_eq!(
            of("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what"),
            Some(context)
        );
    }

    #[test]
    fn an_invalid_header_counts_as_missing() {
        let own = TraceContext::new(7, None);
        assert!(own.is_some_and(|own| own.parent.is_none()));
        let wrong = [
            String::new(),
            "abc".into(),
            CALLER.to_uppercase(),
            CALLER.replace("00-4", "ff-4"),
            format!("{CALLER}-what"),
            CALLER.replace("00f067aa0ba902b7", "0000000000000000"),
            CALLER.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            CALLER.replace("4bf9", "4bf"),
        ];
        for header in wrong {
            assert_eq!(of(&header), own, "{header}");
        }
    }

    #[test]
    fn ids_differ_by_run_object_part_and_machine() {
        let context = TraceContext::new(7, None).expect("a context");
        let other = TraceContext::new(8, None).expect("a context");
        let there = context.elsewhere(ProcessId(5), 4);
        let ids = [context.span(1, 0), context.span(1, 1), context.span(2, 0), other.span(1, 0)];
        let ids = ids.into_iter().chain([there.span(1, 0), there.span(1, 1)]);
        assert_eq!(ids.collect::<std::collections::BTreeSet<_>>().len(), 6);
        assert_eq!((there.trace, there.parent), (context.trace, Some(context.span(4, 0))));
        assert_ne!(other.trace, context.trace);
    }
}
