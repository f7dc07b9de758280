//! Properties of every program, with any behavior of its commands.

use ftsh_machine::Outcome;
use proptest::prelude::*;

use super::{seconds, world};

/// Generates random programs, whose commands end or are cut short.
fn program() -> impl Strategy<Value = String> {
    let command = prop_oneof![
        Just("ok"),
        Just("fail 3"),
        Just("work 1"),
        Just("slowfail 2"),
        Just("hang"),
        Just("stubborn"),
        Just("daemon"),
        Just("nosuch"),
        Just("echo $attempt -> v"),
        Just("sleep 1"),
        Just("failure on purpose"),
        Just("giveup"),
        Just("success"),
        Just("f"),
        Just("x=g(3)"),
        Just("x=$unset"),
        Just("exit 4"),
        Just("ok | fail | ok"),
        Just("echo a | cat | hang"),
        Just("n=$n .add. 1"),
        Just("cd /tmp"),
    ]
    .prop_map(str::to_owned);
    let block = command.prop_recursive(4, 40, 4, |inner| {
        let body = prop::collection::vec(inner, 1..4).prop_map(|lines| lines.join("\n"));
        let head = prop_oneof![
            Just("try"),
            Just("try 3 times"),
            Just("try for 5 seconds"),
            Just("try for 9 seconds or 4 times every 2 seconds"),
            Just("try 3 times each 2 seconds backoff none"),
            Just("try for 4 seconds while $error_kind .ne. \"timeout\""),
            Just("try 4 times while .succeeds. (ok)"),
            Just("for i in 1 .to. 3"),
            Just("forany i in a b c"),
            Just("forall i in a b c"),
            Just("forall i in 1 .to. 9 at most 2"),
            Just("if .succeeds. (fail)"),
            Just("if true"),
        ];
        (head, body.clone(), prop::option::of(body), any::<bool>()).prop_map(
            |(head, body, catch, redirect)| {
                let catch = match catch {
                    Some(catch) if head.starts_with("try") => format!("catch\n{catch}\n"),
                    _ => String::new(),
                };
                let redirect = if redirect { " -> out" } else { "" };
                format!("{head}\n{body}\n{catch}end{redirect}")
            },
        )
    });
    prop::collection::vec(block, 1..5).prop_map(|blocks| blocks.join("\n"))
}

const FUNCTIONS: &str = "function f\ntry 2 times\nwork 1\nfail\nend\nend\n\
                         function g\nwork 1\nreturn $1 .mul. 2\nend\n";

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_program_ends_in_time_and_leaves_nothing(body in program(), signal in prop::option::of(0..40u32)) {
        let script = format!("n=0\ntry for 60 seconds\n{body}\nend\n{FUNCTIONS}");
        let ran = world()
            .config(|config| config.kill_timeout = seconds(7.0))
            .model(|simulated| match signal {
                Some(at) => simulated.signal_at(seconds(at.into()), 15),
                None => simulated,
            })
            .run(&script);
        let trace = ran.world.trace();
        // The deadline, the kill timeout of the canceled work, and of a failed script.
        prop_assert!(ran.elapsed <= seconds(60.0 + 7.0 + 7.0), "{script}\n{trace}");
        if ran.outcome == Outcome::Succeeded {
            prop_assert!(ran.world.running().iter().all(|name| *name == "daemon"), "{script}\n{trace}");
        } else {
            prop_assert!(ran.world.running().is_empty(), "{script}\n{trace}");
        }
        for start in ran.world.starts() {
            prop_assert!(start.elapsed() < seconds(60.0), "{script}\n{trace}");
        }
    }

    #[test]
    fn the_same_seed_and_events_give_the_same_run(body in program()) {
        let script = format!("n=0\ntry for 60 seconds\n{body}\nend\n{FUNCTIONS}");
        let first = world().run(&script);
        let second = world().run(&script);
        prop_assert_eq!(first.outcome, second.outcome);
        prop_assert_eq!(first.world.trace(), second.world.trace());
    }
}
