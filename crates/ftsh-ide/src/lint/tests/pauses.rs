//! Arguments of `sleep` and `defer`.

use super::{assert_quiet, messages};

#[test]
fn invalid_lengths_of_time() {
    for text in [
        "sleep abc",
        "sleep",
        "sleep 5 minutse",
        "sleep infinity",
        "a | sleep -1",
        "x=.succeeds. (sleep x)",
        "try for 1 hour; defer; end",
        "try for 1 hour; defer soon; end",
        "try for 1 hour; defer soon $n; end",
        "try for 1 hour; a; catch; defer -1 $unit; end",
    ] {
        assert!(
            messages(text)
                .contains(&"this is not a length of time: the command always fails".to_owned()),
            "{text}: {:?}",
            messages(text)
        );
    }
    assert_quiet(&[
        "sleep 5",
        "sleep 1m 30s",
        "sleep '5 minutes'",
        "sleep $n",
        "sleep 5 $unit",
        "sleep *",
        "/bin/sleep infinity",
        "try for 1 hour; defer 30; end",
        "try for 1 hour; defer 0; end",
        "try for 1 hour; defer 2 minutes busy for 3 days; end",
        "try for 1 hour; defer $n; end",
        "try for 1 hour; defer 5 $unit; end",
        "function sleep; a; end; sleep abc",
    ]);
}
