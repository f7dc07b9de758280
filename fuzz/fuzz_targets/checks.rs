//! Properties of the parser for arbitrary bytes, shared by the fuzz target and the tests.

use std::time::Duration;

use ftsh_syntax::{Script, parse, parse_bytes, print, unfinished};
use nix::time::{ClockId, clock_gettime};

/// Size in bytes of texts that must be parsed within [`MAX_TIME`].
const SHORT_TEXT: usize = 10_000;
/// Maximum processor time for a short text in a release build.
const MAX_TIME: Duration = Duration::from_millis(50);

/// Checks that a script of these bytes is refused, or is parsed and survives printing.
pub(super) fn parse_and_print(bytes: &[u8]) {
    let start = processor_time();
    let parsed = parse_bytes("fuzz", bytes);
    let took = processor_time().saturating_sub(start);
    let slow = bytes.len() < SHORT_TEXT && took > MAX_TIME && !cfg!(debug_assertions);
    assert!(!slow, "{} bytes took {took:?}", bytes.len());

    let missing = str::from_utf8(bytes).ok().and_then(unfinished);
    match parsed {
        Ok(script) => {
            assert_eq!(missing, None, "a script lacks nothing");
            check_printing(&script);
        }
        Err(errors) => assert!(!ftsh_syntax::diagnostic::render_all(&errors).is_empty()),
    }
}

/// Checks that a printed script has the same meaning and prints as itself.
fn check_printing(script: &Script) {
    let printed = print(script);
    let again = parse("printed", &printed)
        .unwrap_or_else(|errors| panic!("printed:\n{printed}\n{errors:?}"));
    assert_eq!(shape(&again), shape(script), "printed:\n{printed}");
    assert_eq!(print(&again), printed);
}

/// Formats a tree without positions.
fn shape(script: &Script) -> String {
    let tree = format!("{:?}", script.body);
    let mut pieces = tree.split("Span { start: ");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |shape, piece| shape + piece.split_once('}').map_or("", |it| it.1))
}

/// Returns the processor time of the thread, which other processes do not affect.
fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("a clock of the thread").into()
}
