//! Runs that are suspended.

use ftsh_machine::event::Suspension;
use ftsh_machine::record::LogEvent;

use super::resuming::{End, run};
use super::{seconds, world};

#[test]
fn suspended_runs_do_not_clean_up() {
    for script in [
        "try; hang; finally; echo no; end",
        "try; ok | try; hang; finally; echo no; end; finally; echo no; end",
        "forall x in 1 2; try; hang; finally; echo no; end; end",
        "try; fail; finally; hang; echo no; end",
        "try; try for 1 second; hang; finally; hang; echo no; end; finally; echo no; end",
        "sleep 9; echo no",
        "try atomic; echo no; hang; end",
    ] {
        for (reason, code) in [(Suspension::Signal(15), 143), (Suspension::Deadline, 124)] {
            let (ran, log) = run(world(), &[(2.0, End::Suspended(reason))], script);
            assert_eq!(ran.outcome.exit_code(), code, "{script}");
            assert_eq!((ran.elapsed, ran.world.stdout().as_str()), (seconds(2.0), ""), "{script}");
            assert!(ran.world.running().is_empty(), "{script}");
            let signal = match reason {
                Suspension::Signal(signal) => Some(signal),
                Suspension::Deadline => None,
            };
            assert_eq!(log.last(), Some(&LogEvent::Suspended(signal)), "{script}");
        }
    }
}

#[test]
fn a_second_signal_ends_a_suspension_at_once() {
    let signal = End::Suspended(Suspension::Signal(15));
    for (ends, code, takes) in [
        (vec![(2.0, signal)], 143, 32.0),
        (vec![(2.0, signal), (5.0, signal)], 143, 5.0),
        (vec![(2.0, End::Suspended(Suspension::Deadline)), (5.0, signal)], 143, 32.0),
        (vec![(2.0, signal), (5.0, End::Suspended(Suspension::Deadline))], 143, 32.0),
    ] {
        let (ran, _) = run(world(), &ends, "try; stubborn; finally; echo no; end");
        assert_eq!(ran.outcome.exit_code(), code);
        assert_eq!((ran.elapsed, ran.world.stdout().as_str()), (seconds(takes), ""));
    }
}
