//! Random orders of events. In each, the right processes end and no others.

mod shell;
mod world;

use proptest::prelude::*;

use self::shell::{Shell, Step};
use self::world::Happening;

fn happening() -> impl Strategy<Value = Happening> {
    let one = 0..50usize;
    let fork = (one.clone(), any::<bool>(), 0..8u32, any::<bool>(), 0..3u32);
    prop_oneof![
        6 => one.clone().prop_map(Happening::Work),
        4 => fork.prop_map(|(which, leads, wipes, ends_on_sigterm, loading)| {
            Happening::Fork { which, leads, wipes: wipes == 0, ends_on_sigterm, loading }
        }),
        5 => (one, 0..99i32).prop_map(|(which, code)| Happening::End(which, code)),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let one = 0..50usize;
    prop_oneof![
        12 => happening().prop_map(Step::Happens),
        2 => one.clone().prop_map(Step::Open),
        2 => one.clone().prop_map(Step::HandOver),
        1 => one.clone().prop_map(Step::Interrupt),
        1 => one.clone().prop_map(Step::Terminate),
        1 => one.clone().prop_map(Step::Escalate),
        1 => one.clone().prop_map(Step::Kill),
        2 => one.clone().prop_map(Step::Start),
        3 => one.prop_map(Step::Submit),
        3 => Just(Step::Take),
        2 => proptest::collection::vec(happening(), 0..6).prop_map(Step::Look),
        2 => Just(Step::Reap),
        3 => (1..100u64).prop_map(Step::Settle),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    #[ignore = "slow: `.ci/run` includes it"]
    fn a_scope_ends_with_all_that_is_its_own_and_nothing_else(
        adopts: bool,
        steps in proptest::collection::vec(step(), 0..150),
    ) {
        let mut shell = Shell::new(adopts);
        for step in &steps {
            shell.step(step);
        }
        shell.finish();
    }
}

/// A worker's command ends before the event loop has taken its start, and another process reuses
/// its id.
#[test]
fn a_status_before_the_start_is_not_lost() {
    for adopts in [true, false] {
        let mut shell = Shell::new(adopts);
        let work = || Step::Happens(Happening::Work(0));
        let end = Step::Happens(Happening::End(0, 7));
        for step in [Step::Submit(0), work(), end, Step::Look(Vec::new()), work(), work()] {
            shell.step(&step);
        }
        // The worker has ended, so its ended command became a child of the first thread, like an
        // orphan.
        for step in [Step::Look(Vec::new()), Step::Start(0), Step::Take, Step::Reap] {
            shell.step(&step);
        }
        assert_eq!(shell.reported_codes(), [7]);
        shell.finish();
    }
}

/// A parent that does not end has a child in another group. Only the parent's list of children
/// shows the child.
#[test]
fn an_unreadable_list_of_children_is_read_again() {
    for looks in 0..5 {
        let mut shell = Shell::new(true);
        shell.count_looks(looks);
        let fork = |which, ends_on_sigterm| {
            Step::Happens(Happening::Fork {
                which,
                leads: true,
                wipes: false,
                ends_on_sigterm,
                loading: 0,
            })
        };
        for step in [Step::Start(0), fork(0, false), fork(1, true), Step::Terminate(0)] {
            shell.step(&step);
        }
        for _ in 0..5 {
            for step in [Step::Look(Vec::new()), Step::Reap, Step::Settle(100)] {
                shell.step(&step);
            }
        }
        assert_eq!(shell.living(), 1, "after {looks} looks, the child was not asked to end");
        shell.finish();
    }
}

/// The id of an ended process whose children could not be listed is reused in another scope.
#[test]
fn a_reused_id_is_not_signaled() {
    for (looks, adopts) in (0..5).flat_map(|looks| [(looks, false), (looks, true)]) {
        let mut shell = Shell::new(adopts);
        let fork = Happening::Fork {
            which: 0,
            leads: true,
            wipes: false,
            ends_on_sigterm: true,
            loading: 0,
        };
        for step in [Step::Open(0), Step::Interrupt(1), Step::Start(1), Step::Happens(fork)] {
            shell.step(&step);
        }
        shell.step(&Step::Terminate(1));
        shell.count_looks(looks);
        for step in [
            Step::Settle(10),
            Step::Happens(Happening::End(1, 0)),
            Step::Start(0),
            Step::Escalate(0),
            Step::Settle(10),
        ] {
            shell.step(&step);
        }
        shell.finish();
    }
}

/// While a program is being loaded, this process gets no processor time, or the machine stops.
#[test]
fn a_pause_is_not_taken_for_a_program_that_hangs() {
    let mut shell = Shell::new(true);
    let fork =
        Happening::Fork { which: 0, leads: true, wipes: false, ends_on_sigterm: true, loading: 2 };
    for step in [
        Step::Open(0),
        Step::Open(0),
        Step::Start(1),
        Step::Happens(fork),
        Step::Happens(Happening::End(0, 0)),
        Step::Reap,
        Step::Look(Vec::new()),
        Step::Terminate(1),
        Step::Settle(1500),
        Step::Settle(10),
    ] {
        shell.step(&step);
    }
    assert_eq!(shell.living(), 0, "the orphan belongs to the scope");
    shell.finish();
}

/// SIGTERM follows SIGINT in every process, also in orphans and in groups without a leader, and
/// never goes to a scope that received SIGTERM at once.
#[test]
fn sigterm_follows_another_signal() {
    for adopts in [true, false] {
        let mut shell = Shell::new(adopts);
        let fork = |which, leads| {
            let (wipes, ends_on_sigterm, loading) = (false, true, 0);
            Step::Happens(Happening::Fork { which, leads, wipes, ends_on_sigterm, loading })
        };
        let settle = |shell: &mut Shell| {
            for _ in 0..5 {
                for step in [Step::Look(Vec::new()), Step::Reap, Step::Settle(100)] {
                    shell.step(&step);
                }
            }
        };
        // A command of the script, and in an inner scope two commands, a process in the group of
        // the first and a process in a group of its own.
        for step in [Step::Start(0), Step::Open(0), Step::Interrupt(1)] {
            shell.step(&step);
        }
        for step in [Step::Start(1), fork(1, false), fork(1, true), Step::Start(1)] {
            shell.step(&step);
        }
        shell.step(&Step::Terminate(0));
        settle(&mut shell);
        assert_eq!(shell.living(), 4, "SIGTERM ends only the command of the script");
        shell.step(&Step::Happens(Happening::End(0, 1)));
        settle(&mut shell);
        assert_eq!(shell.living(), 3, "the leader of a group is gone");
        shell.step(&Step::Escalate(0));
        settle(&mut shell);
        assert_eq!(shell.living(), 0, "SIGTERM ends the rest");
        shell.finish();
    }
}

/// An orphan of a command belongs to the command's scope, even if the scope is emptied while a
/// worker is starting another command of it.
#[test]
fn a_starting_command_is_no_orphan() {
    for adopts in [true, false] {
        let mut shell = Shell::new(adopts);
        let work = || Step::Happens(Happening::Work(0));
        let fork = Happening::Fork {
            which: 0,
            leads: true,
            wipes: false,
            ends_on_sigterm: false,
            loading: 2,
        };
        shell.step(&Step::Open(0));
        for step in [
            Step::Start(1),
            Step::Happens(fork),
            Step::Happens(Happening::End(0, 0)),
            Step::Submit(1),
            work(),
            Step::Terminate(0),
            Step::Settle(1),
            Step::Reap,
            Step::Settle(60),
            work(),
            Step::Look(vec![Happening::Work(0)]),
            Step::Take,
            Step::Kill(0),
        ] {
            shell.step(&step);
        }
        shell.finish();
    }
}
