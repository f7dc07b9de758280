//! Tests of records as written lines.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};

use super::*;
use ftsh_machine::effect::TaskId;
use ftsh_machine::outcome::TrySummary;
use ftsh_machine::record::{AvoidReason, LogEvent, Surroundings};
use ftsh_machine::{Failure, FailureKind, Time};
use ftsh_syntax::Source;
use ftsh_syntax::engine::EngineId;

fn style(format: Format, decimal: bool) -> LogStyle {
    LogStyle { format, decimal, pid: 42, run: "0123456789abcdef".into() }
}

fn record(event: LogEvent) -> LogRecord {
    LogRecord {
        task: Some(TaskId(0)),
        ..LogRecord::of_shell(Time::START, "backup.ftsh".into(), 3, event)
    }
}

fn failure() -> Failure {
    Failure {
        elapsed: Some(Duration::from_millis(250)),
        source: Arc::new(Source::new("backup.ftsh", "")),
        line: 3,
        tries: vec![TrySummary {
            file: "backup.ftsh".into(),
            line: 2,
            attempts: 5,
            elapsed: Duration::from_secs(90),
        }],
        ..Failure::new(FailureKind::Exit, 7, "`rsync a b` exited with 7".into(), "rsync a b".into())
    }
}

fn uncaught() -> LogRecord {
    LogRecord { uncaught: true, ..record(LogEvent::CommandFailed(Box::new(failure()))) }
}

fn written(style: &LogStyle, record: &LogRecord) -> String {
    let now = Timestamp::from_microsecond(1_800_000_000_123_456).expect("a time");
    let zone = TimeZone::fixed(Offset::constant(1));
    let mut out = String::new();
    match style.format {
        Format::Text => text::line(&mut out, now, &zone, style, record),
        Format::Json => json::line(&mut out, now, &zone, style, record),
    }
    out
}

fn ended(node: Option<&str>, failure: Option<(FailureKind, i32)>, attempts: u64) -> LogEvent {
    LogEvent::BranchEnded {
        name: "host".into(),
        word: "a\tb".into(),
        place: 4,
        node: node.map(ToOwned::to_owned),
        failure,
        attempts,
        elapsed: Duration::from_millis(1500),
    }
}

fn every_event() -> Vec<LogEvent> {
    let second = Duration::from_millis(1500);
    let command = || "sleep 3".to_owned();
    vec![
        LogEvent::CommandFailed(Box::new(failure())),
        LogEvent::Failed(Box::new(failure())),
        LogEvent::EndedBy(Box::new(failure())),
        LogEvent::TryFailed { failure: Box::new(failure()), attempts: 5, elapsed: second },
        LogEvent::CommandStarted(command()),
        LogEvent::CommandSucceeded { command: command(), elapsed: second, status: 0 },
        LogEvent::CommandSucceeded { command: command(), elapsed: second, status: 24 },
        LogEvent::Assigned { name: "x".into(), value: Some("1".into()) },
        LogEvent::Assigned { name: "x".into(), value: None },
        LogEvent::Attempt { number: 2, until: None, each: None },
        LogEvent::Delay { delay: second, attempt: 3, last: true },
        LogEvent::Deferred { delay: second, attempt: 3 },
        LogEvent::Queued { channel: "mirror".into(), attempt: 3, time: Some(second) },
        LogEvent::Queued { channel: "mirror".into(), attempt: 1, time: None },
        LogEvent::Entered { channel: "mirror".into(), attempt: 3, waited: second },
        LogEvent::ResourcesAwaited { missing: "a load of 9.5 instead of 8".into() },
        LogEvent::ResourcesAvailable { waited: second },
        LogEvent::Placed { node: "node3".into() },
        LogEvent::Avoided { node: "node3".into(), why: AvoidReason::Refused, time: second },
        LogEvent::Avoided { node: "node3".into(), why: AvoidReason::Lost, time: second },
        LogEvent::Avoided { node: "node3".into(), why: AvoidReason::Failed, time: second },
        LogEvent::NotSent {
            engine: EngineId::Slurm,
            node: Some("node3".into()),
            why: "it has no ftsh".into(),
            delay: None,
            idle: None,
        },
        LogEvent::NotSent {
            engine: EngineId::Ssh,
            node: None,
            why: "nobody answers".into(),
            delay: Some(second),
            idle: Some(61 * second),
        },
        LogEvent::InputEnded(2),
        LogEvent::TrySucceeded(3),
        LogEvent::Catch,
        LogEvent::Finally,
        LogEvent::FinallyCut { begun: true },
        LogEvent::FinallyCut { begun: false },
        LogEvent::FinallyContinues { time: second },
        LogEvent::Canceled,
        LogEvent::Condition(true),
        LogEvent::Iteration { kind: "forany", name: "x".into(), value: "a".into() },
        ended(None, None, 1),
        ended(Some("node3"), Some((FailureKind::Timeout, 124)), 3),
        LogEvent::BranchSkipped { name: "host".into(), word: "a\tb".into(), place: 4 },
        LogEvent::Returned("5".into()),
        LogEvent::Spawned { pid: 9, command: command() },
        LogEvent::Exited { pid: 9, status: "exit 3".into() },
        LogEvent::Signaled { pid: 9, signal: 15 },
        LogEvent::Emptying { scope: 4, kill: false },
        LogEvent::Emptying { scope: 4, kill: true },
        LogEvent::Emptied { scope: 4, processes: 1, elapsed: second },
        LogEvent::Adopted { pid: 9, command: command() },
        LogEvent::Survivor { pid: 9, command: command() },
        LogEvent::Hanging { call: "opening `m/a`".into() },
        LogEvent::Interrupted(2),
        LogEvent::Suspended(Some(15)),
        LogEvent::Suspended(None),
        LogEvent::Resumed { lost: 0 },
        LogEvent::Resumed { lost: 1 },
        LogEvent::Resumed { lost: 2 },
        LogEvent::Note("a note".into()),
    ]
}

#[test]
fn text_lines() {
    let head = "2027-01-15 09:00:00.123456 [42] backup.ftsh:3 ";
    let line = |event| written(&style(Format::Text, false), &record(event));
    let lines: Vec<_> = every_event().into_iter().map(line).collect();
    assert!(lines.iter().all(|line| line.starts_with(head)), "{lines:#?}");
    insta::assert_snapshot!(lines.join("\n").replace(head, ""), @r"
    failed: `rsync a b` exited with 7
    failed: `rsync a b` exited with 7
    ended by: `rsync a b` exited with 7
    try gave up after 5 attempts in 1.5 s: `rsync a b` exited with 7
    start: sleep 3
    exit 0 after 1.5 s: sleep 3
    exit 24 after 1.5 s, accepted: sleep 3
    set x=1
    unset x
    try: attempt 2
    try: 1.5 s until attempt 3, the last
    try: deferred, 1.5 s until attempt 3 is made again
    try: attempt 3 waits for channel mirror, for up to 1.5 s
    try: attempt 1 waits for channel mirror
    try: attempt 3 goes through channel mirror after 1.5 s
    forall: the next branch waits: a load of 9.5 instead of 8
    forall: the next branch begins after a wait of 1.5 s
    branch begins on node3
    node3 is avoided for 1.5 s: it refused a branch
    node3 is avoided for 1.5 s: a branch was lost there
    node3 is avoided for 1.5 s: a branch failed there
    slurm: node3 did not run the branch: it has no ftsh
    no machine has run a branch for 1 min 31 s; ssh did not run the branch: nobody answers; 1.5 s until it is asked again
    try: the standard input has ended since the first attempt, so that attempt 2 reads nothing; with `same input` each attempt reads all of it
    try: attempt 3 succeeded
    catch
    finally
    finally is cut short
    finally isn't run: there is no time left for it
    finally continues for up to 1.5 s: everything around it is canceled
    canceled
    condition: true
    forany: x=a
    forall: host=a\tb succeeded after 1.5 s
    forall: host=a\tb failed (timeout 124) on node3 after 1.5 s, 3 attempts
    forall: host=a\tb skipped
    return 5
    process 9 started: sleep 3
    process 9 ended: exit 3
    signal SIGTERM to process 9
    ending scope 4
    killing scope 4
    scope 4 is empty: 1 process in 1.5 s
    process 9 adopted: sleep 3
    process 9 can't be killed: sleep 3
    opening `m/a` hangs in the kernel, and is left behind
    ended by signal SIGINT
    suspended by signal SIGTERM: the next start resumes the run
    suspended, because the time for this start is over: the next start resumes the run
    resumed
    resumed: 1 command was running when the shell ended
    resumed: 2 commands were running when the shell ended
    a note
    ");
}

#[test]
fn json_lines() {
    let head = r#""time":"2027-01-15T09:00:00.123456+01:00","pid":42,"run":"0123456789abcdef","#
        .to_owned()
        + r#""task":0,"script":"backup.ftsh","line":3,"#;
    let line = |event| written(&style(Format::Json, false), &record(event));
    let lines: Vec<_> = every_event().into_iter().map(line).collect();
    for line in &lines {
        assert!(line.contains(&head), "{line}");
        assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{line}");
    }
    insta::assert_snapshot!(lines.join("\n").replace(&head, ""), @r#"
    {"event":"command_failed","error":"exit","code":7,"message":"`rsync a b` exited with 7","command":"rsync a b","duration":0.25}
    {"event":"failed","error":"exit","code":7,"message":"`rsync a b` exited with 7","command":"rsync a b","duration":0.25}
    {"event":"ended_by","error":"exit","code":7,"message":"`rsync a b` exited with 7","command":"rsync a b","duration":0.25}
    {"event":"try_failed","error":"exit","code":7,"message":"`rsync a b` exited with 7","command":"rsync a b","command_line":3,"attempts":5,"duration":1.5}
    {"event":"command_started","command":"sleep 3"}
    {"event":"command_succeeded","command":"sleep 3","code":0,"duration":1.5}
    {"event":"command_succeeded","command":"sleep 3","code":24,"duration":1.5}
    {"event":"assigned","name":"x","value":"1"}
    {"event":"assigned","name":"x","value":null}
    {"event":"attempt","attempt":2}
    {"event":"delay","delay":1.5,"attempt":3,"last":true}
    {"event":"deferred","delay":1.5,"attempt":3}
    {"event":"waiting","reason":"channel mirror","channel":"mirror","attempt":3,"delay":1.5}
    {"event":"waiting","reason":"channel mirror","channel":"mirror","attempt":1}
    {"event":"entered","channel":"mirror","attempt":3,"waited":1.5}
    {"event":"waiting","reason":"a load of 9.5 instead of 8"}
    {"event":"available","waited":1.5}
    {"event":"placed","node":"node3"}
    {"event":"avoided","node":"node3","reason":"refused","delay":1.5}
    {"event":"avoided","node":"node3","reason":"lost","delay":1.5}
    {"event":"avoided","node":"node3","reason":"failed","delay":1.5}
    {"event":"not_sent","engine":"slurm","reason":"it has no ftsh","node":"node3"}
    {"event":"not_sent","engine":"ssh","reason":"nobody answers","delay":1.5,"idle":91.5}
    {"event":"input_ended","attempt":2}
    {"event":"try_succeeded","attempt":3}
    {"event":"catch"}
    {"event":"finally"}
    {"event":"finally_cut","begun":true}
    {"event":"finally_cut","begun":false}
    {"event":"finally_continues","limit":1.5}
    {"event":"canceled"}
    {"event":"condition","value":true}
    {"event":"iteration","loop":"forany","name":"x","value":"a"}
    {"event":"branch_ended","name":"host","word":"a\tb","outcome":"succeeded","code":0,"attempts":1,"duration":1.5}
    {"event":"branch_ended","name":"host","word":"a\tb","outcome":"timeout","code":124,"attempts":3,"duration":1.5,"node":"node3"}
    {"event":"branch_skipped","name":"host","word":"a\tb"}
    {"event":"returned","value":"5"}
    {"event":"spawned","process":9,"command":"sleep 3"}
    {"event":"exited","process":9,"status":"exit 3"}
    {"event":"signaled","process":9,"signal":"SIGTERM"}
    {"event":"emptying","scope":4,"kill":false}
    {"event":"emptying","scope":4,"kill":true}
    {"event":"emptied","scope":4,"processes":1,"duration":1.5}
    {"event":"adopted","process":9,"command":"sleep 3"}
    {"event":"survivor","process":9,"command":"sleep 3"}
    {"event":"hanging","call":"opening `m/a`"}
    {"event":"interrupted","signal":"SIGINT"}
    {"event":"suspended","signal":"SIGTERM"}
    {"event":"suspended","signal":null}
    {"event":"resumed","lost":0}
    {"event":"resumed","lost":1}
    {"event":"resumed","lost":2}
    {"event":"note","message":"a note"}
    "#);
}

#[test]
fn decimal_times_count_from_1970() {
    let text = written(&style(Format::Text, true), &record(LogEvent::Catch));
    assert!(text.starts_with("1800000000.123456 [42] "), "{text}");
    let json = written(&style(Format::Json, true), &record(LogEvent::Catch));
    assert!(json.starts_with("{\"time\":1800000000.123456,"), "{json}");
}

#[test]
fn a_long_delay_comes_with_its_end() {
    let delay = |seconds| {
        record(LogEvent::Delay { delay: Duration::from_secs(seconds), attempt: 3, last: false })
    };
    let line = |decimal, seconds| written(&style(Format::Text, decimal), &delay(seconds));
    let told = |decimal, seconds| {
        let line = line(decimal, seconds);
        line.split(" backup.ftsh:3 ").nth(1).unwrap_or_default().to_owned()
    };
    let told = [(false, 60), (false, 61), (false, 15 * 3600), (true, 3600), (false, u64::MAX)]
        .map(|(decimal, seconds)| told(decimal, seconds));
    insta::assert_snapshot!(told.join("\n"), @r"
    try: 1 min until attempt 3
    try: 1 min 1 s until attempt 3, at 09:01:01
    try: 15 h until attempt 3, at 2027-01-16 00:00:00
    try: 1 h until attempt 3, at 1800003600
    try: 213503982334601 d 7 h until attempt 3
    ");
    let deferred = LogEvent::Deferred { delay: Duration::from_secs(90), attempt: 1 };
    let text = written(&style(Format::Text, false), &record(deferred));
    assert!(text.ends_with(" is made again, at 09:01:30"), "{text}");
}

#[test]
fn branches_and_places_are_told_if_there_are_any() {
    let style = style(Format::Text, true);
    let branch = LogRecord { task: Some(TaskId(5)), ..record(LogEvent::Catch) };
    assert!(written(&style, &branch).ends_with(" backup.ftsh:3 (task 5) catch"));
    let around = |is_stage| {
        let branch = Some("host=h2\n".into());
        Box::new(Surroundings { is_stage, branch, ..Surroundings::default() })
    };
    let branch = LogRecord { around: around(false), ..branch };
    assert!(written(&style, &branch).ends_with(r" backup.ftsh:3 (host=h2\n) catch"));
    let stage = LogRecord { around: around(true), ..branch };
    assert!(written(&style, &stage).ends_with(r" backup.ftsh:3 (host=h2\n, task 5) catch"));
    let nowhere = LogRecord { task: None, line: 0, ..record(LogEvent::Catch) };
    assert!(written(&style, &nowhere).ends_with(" backup.ftsh catch"));
}

#[test]
fn a_record_is_one_line_whatever_is_in_it() {
    let value = "a\nb\r\tc\u{1b}[31m\u{85}\u{2028}\u{7f}é";
    let event = LogEvent::Assigned { name: "x".into(), value: Some(value.into()) };
    let text = written(&style(Format::Text, true), &record(event.clone()));
    assert!(text.ends_with(r"set x=a\nb\r\tc\x1b[31m\u{85}\u{2028}\x7fé"), "{text}");
    let json = written(&style(Format::Json, true), &record(event));
    assert!(!json.contains(|c: char| c < ' '), "{json}");
    let read: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(read["value"], value);
}

#[test]
fn a_log_is_appended_to_and_keeps_its_level() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("log");
    for _ in 0..2 {
        let style = style(Format::Text, true);
        let mut log = LogWriter::open(Some(&path), Level::COMMANDS, style).expect("a log");
        log.write(&record(LogEvent::CommandStarted("true".into())));
        log.write(&record(LogEvent::Catch));
        log.write(&uncaught());
        assert_eq!(log.withheld(), None);
    }
    let text = std::fs::read_to_string(path).expect("the log");
    assert_eq!(text.lines().count(), 4, "{text}");
}

#[test]
fn what_a_line_may_show_is_held_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("log");
    let log = |path, level| {
        let mut log = LogWriter::open(path, level, style(Format::Text, true)).expect("a log");
        log.enable_status_line();
        log
    };
    let delay = LogEvent::Delay { delay: Duration::from_secs(90), attempt: 3, last: false };
    let told = LogRecord { level: Level::FAILURES, ..record(delay) };
    // A line shows nothing to who reads a file.
    log(Some(&path), Level::FAILURES).write(&told);
    assert_eq!(std::fs::read_to_string(&path).expect("the log").lines().count(), 1);
    for (level, held) in [(Level::ENDING, 0), (Level::FAILURES, 1), (Level::STRUCTURES, 0)] {
        let mut log = log(None, level);
        log.write(&told);
        assert_eq!(log.held_back.len(), held, "{level:?}");
        log.line_shows(true);
        assert!(log.held_back.is_empty());
    }
    let mut log = log(None, Level::FAILURES);
    log.write(&record(LogEvent::CommandFailed(Box::new(failure()))));
    assert!(log.held_back.is_empty(), "it is no delay");
}

#[test]
fn the_failure_that_ends_the_run_is_left_to_the_report() {
    let open = |level, format| LogWriter::open(None, level, style(format, true)).expect("a log");
    let mut log = open(Level::FAILURES, Format::Text);
    log.write(&uncaught());
    assert_eq!(log.withheld(), Some(&failure()));
    let mut log = open(Level::NOTHING, Format::Text);
    log.write(&uncaught());
    assert_eq!(log.withheld(), None, "at level 0 nothing is told");
}

#[test]
fn lines_that_nobody_reads_are_counted() {
    ftsh_process::non_blocking_writer::allow_threads();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("log");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a FIFO");
    // Opened for reading and writing, the FIFO does not wait for the log.
    let fifo = File::options().read(true).write(true).open(&path).expect("a FIFO");
    let mut log =
        LogWriter::open(Some(&path), Level::PROCESSES, style(Format::Json, true)).expect("a log");
    // Far more bytes than the queue of the writer holds.
    let value = "x".repeat(10_000);
    let count = 2000;
    for number in 0..count {
        let event = LogEvent::Assigned { name: number.to_string(), value: Some(value.clone()) };
        log.write(&record(event));
    }
    log.finish();
    for (seen, line) in BufReader::new(fifo).lines().enumerate() {
        let line: serde_json::Value =
            serde_json::from_str(&line.expect("a line")).expect("JSON, and all of it");
        if line["event"] == "note" {
            let missing = count - seen;
            assert!(missing > 0);
            let message = format!("{missing} lines are missing here: nobody read the log");
            assert_eq!(line["message"], message);
            return;
        }
        assert_eq!(line["name"], seen.to_string());
    }
}

#[test]
fn a_deferred_first_attempt_is_no_second_try() {
    let mut summary = Summary::default();
    let attempt = |number| LogEvent::Attempt { number, until: None, each: None };
    let deferred = LogEvent::Deferred { delay: Duration::from_secs(2), attempt: 1 };
    for event in [attempt(1), deferred, attempt(1), attempt(2), attempt(1)] {
        summary.add(&record(event));
    }
    let text = summary.render("backup.ftsh", &ftsh_machine::Outcome::Succeeded, Time::START);
    assert!(text.contains("attempts  4 in 2 tries\n"), "{text}");
}
