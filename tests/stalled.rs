//! Blocked standard error, as that of `ftsh script |& less`: the script continues.

use std::fs;
use std::io::{PipeReader, Read, Write};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::signal::Signal;

use crate::support::Ftsh;
use crate::support::run::Running;

/// Time after which a run that does not end is killed.
const LIMIT: Duration = Duration::from_secs(8);

/// Read end of standard error, not read yet.
struct Reader {
    pipe: PipeReader,
    filled: usize,
}

impl Reader {
    /// Reads to the end and returns the output of the run.
    fn reads(mut self) -> String {
        let mut bytes = Vec::new();
        self.pipe.read_to_end(&mut bytes).expect("a pipe");
        String::from_utf8(bytes.split_off(self.filled)).expect("text")
    }
}

/// Returns a full pipe.
fn full() -> (OwnedFd, Reader) {
    let (pipe, mut writer) = std::io::pipe().expect("a pipe");
    let filled = fcntl(&writer, FcntlArg::F_GETPIPE_SZ).expect("its size") as usize;
    writer.write_all(&vec![b'.'; filled]).expect("as much as it holds");
    (writer.into(), Reader { pipe, filled })
}

fn start(run: Ftsh) -> (Running, Reader) {
    let (end, reader) = full();
    (run.limit(LIMIT).errors_to(end).start(), reader)
}

fn until_file(run: &Running, name: &str) {
    run.until(name, |run| run.directory().join(name).exists());
}

/// Waits until the run has a thread of this name.
fn until_thread(run: &Running, thread: &str) {
    let has = |pid| {
        let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let names = threads.map(|thread| fs::read_to_string(thread.path().join("comm")));
        names.flatten().any(|name| name.trim_end() == thread)
    };
    run.until(thread, |run| run.processes().iter().any(|it| has(it.pid)));
}

/// Waits until only the writing of output is left to do.
fn until_over(run: &Running) {
    until_thread(run, "background");
}

const LIMITED: &str =
    "try for 300 ms or 1 time; /bin/sleep 8321; catch; success; end; /bin/touch done";

#[test]
fn a_deadline_is_kept() {
    let json = ["-l", "40", "--log-format", "json"];
    for options in [&[][..], &["-l", "40"], &json, &["-f", "/dev/stderr"], &["--summary"]] {
        let (run, reader) = start(Ftsh::command(LIMITED).options(options));
        until_file(&run, "done");
        let text = reader.reads();
        let finished = run.wait();
        finished.nothing_left().expect_code(0);
        // In the form for people and in the form for programs.
        let count = text.matches(" try gave up after ").count()
            + text.matches("\"event\":\"try_failed\"").count();
        assert_eq!(count, 1, "{options:?}: {text}");
    }
}

#[test]
fn a_signal_ends_the_run() {
    let wait = "sh -c 'trap \"\" TERM; echo r > ready; exec /bin/sleep 8322'";
    let text = format!("try 3 times every 1 ms; failure; catch; end; {wait}");
    let (run, _reader) = start(Ftsh::command(&text).options(["-t", "1", "-l", "30"]));
    run.until_lines("ready", 1);
    let signalled = Instant::now();
    run.signal(Signal::SIGTERM);
    let finished = run.wait();
    finished.killed_by(Signal::SIGTERM).nothing_left();
    assert!(signalled.elapsed() < Duration::from_secs(3), "{}", finished.story());
}

#[test]
fn output_arrives_complete_and_in_order() {
    let text = "for i in 1 .to. 3000; x=$i; end; echo over > done; false";
    let (run, reader) = start(Ftsh::command(text).options(["-l", "30"]));
    until_file(&run, "done");
    until_over(&run);
    let text = reader.reads();
    run.wait().expect_code(1);
    let values: Vec<u32> = text
        .lines()
        .filter_map(|line| line.split_once(" for: i="))
        .map(|(_, value)| value.parse().expect("a number"))
        .collect();
    assert_eq!(values, (1..=3000).collect::<Vec<_>>());
    // The report comes last.
    assert!(text.ends_with('\n') && text.lines().last().is_some_and(|it| it.contains("false")));
}

#[test]
fn the_end_waits_for_the_reader_or_a_signal() {
    // With and without a supervisor.
    for (text, report) in [("/bin/false", "`/bin/false` exited with 1"), ("failure", "-c:1: ")] {
        let (run, reader) = start(Ftsh::command(text));
        until_over(&run);
        assert!(reader.reads().contains(report), "{text}");
        run.wait().expect_code(1);

        let (run, _reader) = start(Ftsh::command(text));
        until_over(&run);
        let signalled = Instant::now();
        run.signal(Signal::SIGTERM);
        run.wait().killed_by(Signal::SIGTERM).nothing_left();
        assert!(signalled.elapsed() < Duration::from_secs(2), "{text}");
    }
}

#[test]
fn a_status_page_is_printed_later() {
    let wait = "sh -c 'echo r > ready; until test -e go; do sleep 0.01; done'";
    let (run, reader) = start(Ftsh::command(&format!("{wait}; /bin/touch done")));
    run.until_lines("ready", 1);
    run.signal(Signal::SIGUSR1);
    // The event loop waits only after the page was queued.
    until_thread(&run, "writer");
    fs::write(run.directory().join("go"), "").expect("a file");
    until_file(&run, "done");
    let text = reader.reads();
    run.wait().expect_code(0);
    assert!(text.contains("until test -e go"), "{text}");
}

#[test]
fn a_program_that_replaces_the_shell_prints_after_it() {
    let text = "try 1 time; failure; catch; end; exec sh -c 'echo last >&2'";
    let (run, reader) = start(Ftsh::command(text).options(["-l", "30"]));
    until_thread(&run, "writer");
    let text = reader.reads();
    run.wait().expect_code(0);
    assert!(text.contains("gave up") && text.ends_with("\nlast\n"), "{text}");
}

#[test]
fn errors_of_a_script_wait_too() {
    let (run, reader) = start(Ftsh::command("end"));
    until_thread(&run, "writer");
    let text = reader.reads();
    run.wait().expect_code(2);
    assert!(text.starts_with("error[") && text.contains("-c:1:1"), "{text}");
}

#[test]
fn captured_output_does_not_block_a_signaled_shell() {
    let run = Ftsh::command("echo r > ready; echo kept; /bin/sleep 8323");
    let (run, _reader) = start(run.options(["--cron"]));
    run.until_lines("ready", 1);
    let signalled = Instant::now();
    run.signal(Signal::SIGTERM);
    let finished = run.wait();
    finished.killed_by(Signal::SIGTERM).nothing_left();
    assert!(signalled.elapsed() < Duration::from_secs(4), "{}", finished.story());
}
