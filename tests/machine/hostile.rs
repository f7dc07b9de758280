//! Invalid events from a driver, which must not crash the machine.

use ftsh_machine::effect::{OperationId, ProcessId, ScopeId};
use ftsh_machine::event::{
    CommandStatus, FreeResources, RecordedDurations, Refusal, Reply, SpawnError, SpawnErrorKind,
    Suspension,
};
use ftsh_machine::{Config, Event, Machine, Output, Time};
use proptest::prelude::*;

use super::seconds;

fn reply() -> impl Strategy<Value = Result<Reply, Refusal>> {
    prop_oneof![
        any::<bool>().prop_map(|truth| Ok(Reply::Truth(truth))),
        ".{0,5}".prop_map(|text| Ok(Reply::Text(text.into()))),
        prop::collection::vec(".{0,3}", 0..3)
            .prop_map(|words| Ok(Reply::Words(words.into_iter().map(Into::into).collect()))),
        Just(Ok(Reply::Incomplete(Refusal::new("half")))),
        Just(Ok(Reply::Conflict("changed".into()))),
        Just(Ok(Reply::Resources(FreeResources { memory: None, load: Some(2.0) }))),
        Just(Ok(Reply::Durations(RecordedDurations::default()))),
        Just(Err(Refusal::new("no"))),
    ]
}

fn ids() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(0..60u64, 0..9)
}

fn event() -> impl Strategy<Value = Event> {
    let status = prop_oneof![
        (0..300i32).prop_map(CommandStatus::Exited),
        (1..70i32).prop_map(CommandStatus::Signaled)
    ];
    let kind = prop_oneof![
        Just(SpawnErrorKind::NotFound),
        Just(SpawnErrorKind::NotExecutable),
        Just(SpawnErrorKind::Redirect),
        Just(SpawnErrorKind::System),
        Just(SpawnErrorKind::Builtin),
    ];
    let id = 0..60u64;
    prop_oneof![
        8 => (id.clone(), status, prop::option::of("[a-z]{0,3}"), any::<bool>()).prop_map(
            |(process, status, line, reader_gone)| {
                let (process, line) = (ProcessId(process), line.map(Into::into));
                Event::Exited { process, status, line, reader_gone }
            }
        ),
        2 => (id.clone(), kind).prop_map(|(process, kind)| {
            let error = SpawnError::new(kind, "no".into());
            Event::SpawnFailed { process: ProcessId(process), error }
        }),
        8 => (id.clone(), reply()).prop_map(|(operation, result)| {
            Event::Done { operation: OperationId(operation), result }
        }),
        4 => id.clone().prop_map(|scope| Event::Emptied { scope: ScopeId(scope) }),
        2 => id.prop_map(|process| Event::Spawned { process: ProcessId(process), pid: 1 }),
        2 => (ids(), ids()).prop_map(|(lost, committed)| Event::Resumed {
            lost: lost.into_iter().map(ProcessId).collect(),
            committed: committed.into_iter().map(OperationId).collect(),
        }),
        1 => (1..32i32).prop_map(Event::Interrupted),
        1 => prop_oneof![
            (1..32i32).prop_map(Suspension::Signal),
            Just(Suspension::Deadline),
        ].prop_map(Event::Suspended),
    ]
}

const SCRIPT: &str = "n=0
try for 20 seconds or 5 times each 3 seconds
    forall i in 1 .to. 9 at most 3
        try 2 times backoff none while .succeeds. (probe)
            work $i | sort -> v; read x < f; cat <<< $v
            if .exists. f; cd sub; echo *.c > out; end
            y=g($i) .add. 1
        catch; giveup; end
    end -> log
    forany h in a b c; fetch $h; daemon; end
end
function g; source lib; sleep 1; return $1 .mul. 2; end";

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_event_brings_the_machine_down(events in prop::collection::vec((0..3u8, event()), 0..120)) {
        let script = ftsh_syntax::parse("script", SCRIPT).expect("valid");
        let mut machine = Machine::new(&script, vec!["s".into()], vec![], Config::default(), 1);
        let mut now = Time::START;
        for (later, event) in events {
            now = now + seconds(f64::from(later));
            let mut effects = 0;
            while let Output::Effect(_) = machine.poll_output() {
                effects += 1;
                prop_assert!(effects < 100_000);
            }
            machine.handle_event(now, event);
        }
    }
}
