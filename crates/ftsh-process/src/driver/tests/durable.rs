//! Support for later starts of a run: positions of inputs, contents of buffers, and their
//! restoration.

#![allow(unsafe_code)]

use crate::descriptors::{Fd, FdTable};
use crate::procs::ProcDir;
use ftsh_machine::time::Deadline;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::*;
use ftsh_machine::Outcome;
use ftsh_machine::channels::Passed;
use ftsh_machine::driver::{BufferPart, Durable, Interactive};
use ftsh_machine::effect::{Access, PassId, PipeId, SpoolId, StagedFileId};
use ftsh_sys as sys;
use ftsh_sys::os_error::plain;

const TABLE: IoId = IoId(1);
const OUTER: IoId = IoId(2);
const INNER: IoId = IoId(3);

const LINES: &str = "1\n2\n3\n4\n5\n6\n";

fn change(descriptor: u8, source: FdSource) -> FdChange {
    FdChange { descriptor, source }
}

fn file(content: &str) -> std::fs::File {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(content.as_bytes()).expect("room");
    file.rewind().expect("a file");
    file
}

fn line(world: &mut World, io: IoId) -> String {
    let process = world.start_from(io, Action::ReadLine);
    world.end_of(process)
}

fn create(id: BufferId, content: &str) -> FdSource {
    FdSource::BufferCreate(id, content.into())
}

/// Returns the driver's report of a buffer from an offset on.
fn written(world: &mut World, id: BufferId, from: u64) -> Option<(u64, BString)> {
    let written = world.driver.written(id, from).expect("it can be read");
    written.map(|BufferPart { from, bytes }| (from, bytes))
}

each_alone! {
    fn inputs_are_known_by_how_far_they_were_read_and_go_on_there(world) {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("f");
        std::fs::write(&path, LINES).expect("room");
        let path = BString::from(path.to_str().expect("a name"));
        let kept = BufferId(world.id());
        world.driver.perform(Effect::Fill(kept, LINES.into()));
        let sources = [
            FdSource::File { path, access: Access::Read },
            FdSource::Bytes(LINES.into()),
            FdSource::BufferRead(kept),
        ];
        for source in sources {
            world.open(TABLE, IoId::INHERITED, vec![change(0, source.clone())]);
            assert_eq!(world.driver.position(TABLE, 0), Some(0));
            assert_eq!(line(world, TABLE), "exit 0: 1");
            let process = world.start_from(TABLE, program(&["sh", "-c", "read line"]));
            assert_eq!(world.end_of(process), "exit 0");
            let position = world.driver.position(TABLE, 0).expect("it can be sought");
            assert_eq!(line(world, TABLE), "exit 0: 3", "a look moves nothing");
            world.driver.perform(Effect::CloseIo(TABLE));
            assert_eq!(world.driver.position(TABLE, 0), None);
            let again = vec![change(0, source), change(0, FdSource::Position(position))];
            world.open(TABLE, IoId::INHERITED, again);
            assert_eq!(world.driver.position(TABLE, 0), Some(position));
            assert_eq!(line(world, TABLE), "exit 0: 3");
            world.driver.perform(Effect::CloseIo(TABLE));
        }
    }

    fn what_nobody_could_go_on_with_has_no_position(world) {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("f").to_str().expect("a name").to_owned();
        let (pipe, buffer) = (PipeId(1), BufferId(world.id()));
        world.open(TABLE, IoId::INHERITED, vec![
            change(0, FdSource::PipeReader(pipe)),
            change(1, FdSource::File { path: path.into(), access: Access::Write }),
            change(3, create(buffer, "x")),
            change(4, FdSource::Null),
            change(5, FdSource::Gone),
        ]);
        for descriptor in [0, 1, 3, 4, 5, 6, 77] {
            assert_eq!(world.driver.position(TABLE, descriptor), None, "{descriptor}");
        }
        // Setting the position has no effect.
        let places = [0, 1, 3, 4, 5, 6, 77].map(|it| change(it, FdSource::Position(1)));
        world.open(OUTER, TABLE, places.into());
        world.driver.perform(Effect::CloseIo(OUTER));
    }

    fn standard_input_goes_on_where_it_was_if_it_is_a_file(world) {
        assert_eq!(world.driver.position(IoId::INHERITED, 0), None, "nobody seeks in /dev/null");
        let files = [0, 3].map(|number| {
            let file = file(LINES);
            // SAFETY: no value of this process owns these numbers.
            unsafe { sys::Replaced::set([(file.as_fd(), number)]) }.expect("it is open");
            file
        });
        let table = FdTable::inherited();
        assert!(matches!(table.get(3), Some(Fd::Inherited(_))));
        world.driver.tables.io_mut().insert(IoId::INHERITED, table);
        assert_eq!(line(world, IoId::INHERITED), "exit 0: 1");
        assert_eq!(world.driver.position(IoId::INHERITED, 0), Some(2));
        assert_eq!(world.driver.position(IoId::INHERITED, 3), None, "that is the next start's own");
        let places = vec![change(0, FdSource::Position(8))];
        world.open(IoId::INHERITED, IoId::INHERITED, places);
        assert_eq!(line(world, IoId::INHERITED), "exit 0: 5");
        world.with(&[]);
        assert_eq!(world.output(program(&["cat"])).1, "6\n");
        drop(files);
    }

    fn what_a_lost_attempt_read_is_read_again(world) {
        let replay = |world: &mut World, id, io, base| {
            world.open(io, base, vec![change(0, FdSource::Spool(SpoolId(id)))]);
        };
        world.open(TABLE, IoId::INHERITED, vec![change(0, FdSource::Bytes(LINES.into()))]);
        line(world, TABLE);
        replay(world, 1, OUTER, TABLE);
        line(world, OUTER);
        replay(world, 2, INNER, OUTER);
        line(world, INNER);
        for io in [TABLE, OUTER, INNER] {
            assert_eq!(world.driver.position(io, 0), Some(2), "where the outer one began");
        }
        world.driver.perform(Effect::KeepInput(SpoolId(2)));
        world.driver.perform(Effect::DropSpool(SpoolId(2)));
        assert_eq!(world.driver.position(TABLE, 0), Some(2));
        world.driver.perform(Effect::KeepInput(SpoolId(1)));
        assert_eq!(world.driver.position(TABLE, 0), Some(6), "what is kept was read for good");
        world.driver.perform(Effect::DropSpool(SpoolId(1)));
        assert_eq!(world.driver.position(TABLE, 0), Some(6));
        // A replayed pipe is lost with the shell.
        let pipe = PipeId(1);
        world.with(&[(1, FdSource::PipeWriter(pipe))]);
        world.start(Action::Print("x\n".into()));
        world.open(TABLE, IoId::INHERITED, vec![change(0, FdSource::PipeReader(pipe))]);
        replay(world, 3, OUTER, TABLE);
        line(world, OUTER);
        assert_eq!(world.driver.position(OUTER, 0), None);
    }

    fn what_is_gone_is_an_error_and_no_end(world) {
        let errors = BufferId(world.id());
        let gone = |number| change(number, FdSource::Gone);
        world.open(TABLE, IoId::INHERITED, vec![gone(0), gone(1), change(2, create(errors, ""))]);
        let replay = vec![change(0, FdSource::Spool(SpoolId(1)))];
        world.open(OUTER, TABLE, replay);
        let reading = [
            program(&["cat"]), shell("cat <&0"), shell("exec 3<&0; cat <&3"),
            program(&["cat", "/dev/stdin"]), program(&["head", "-n", "1"]),
            shell("read line; test $? = 0"),
        ];
        let writing = [
            shell("echo x"), shell("echo x >&1 | true; echo x > /dev/stdout"),
            program(&["dd", "if=/dev/zero", "count=1"]),
        ];
        for action in reading.into_iter().chain(writing) {
            for io in [TABLE, OUTER] {
                let process = world.start_from(io, action.clone());
                let end = world.end_of(process);
                assert!(end.starts_with("exit") && end != "exit 0", "{end}: {action:?}");
            }
        }
        for action in [Action::ReadLine, Action::Copy, Action::Print("x".into())] {
            let process = world.start_from(OUTER, action);
            let end = world.end_of(process);
            let why = std::io::Error::from_raw_os_error(libc::ENOTCONN);
            assert_eq!(end, format!("Builtin: {}", plain(&why)));
        }
        assert_eq!(world.ask(Query::InputEnded(TABLE)), Ok(Reply::Truth(false)));
        assert!(!world.content(errors).is_empty());
    }

    fn what_commands_write_to_buffers_is_told_in_parts(world) {
        let (buffer, none) = (BufferId(world.id()), BufferId(world.id()));
        assert_eq!(written(world, buffer, 0), None);
        world.open(TABLE, IoId::INHERITED, vec![change(1, create(buffer, "one\n"))]);
        let process = world.start_from(TABLE, program(&["echo", "two"]));
        world.end_of(process);
        let parts = [(0, (0, "one\ntwo\n")), (4, (4, "two\n")), (8, (8, "")), (9, (0, "one\ntwo\n"))];
        for (from, (start, text)) in parts {
            assert_eq!(written(world, buffer, from), Some((start, text.into())), "{from}");
        }
        // A command can truncate earlier output.
        let process = world.start_from(TABLE, shell("echo new > /dev/stdout"));
        world.end_of(process);
        assert_eq!(written(world, buffer, 8), Some((0, "new\n".into())));
        // A command can also write as much again, or more.
        for (length, text) in [(4, "abc\n"), (4, "defghi\n"), (7, "defghi\nj\n")] {
            let script = format!("printf '{text}' > /dev/stdout");
            let process = world.start_from(TABLE, shell(&script));
            world.end_of(process);
            let expected = if length == 7 { (7, "j\n") } else { (0, text) };
            assert_eq!(written(world, buffer, length), Some((expected.0, expected.1.into())));
        }
        assert_eq!(written(world, none, 0), None);
        world.driver.perform(Effect::DropBuffer(buffer));
        assert_eq!(written(world, buffer, 0), None);
    }

    fn what_is_held_is_told_however_much_it_is(world) {
        let (small, large) = (BufferId(world.id()), BufferId(world.id()));
        // Descriptors of one file are held together.
        let two = [BufferId(world.id()), BufferId(world.id())];
        let base = vec![change(1, create(two[0], "")), change(2, create(two[1], ""))];
        world.open(INNER, IoId::INHERITED, base);
        world.open(TABLE, INNER, vec![
            change(1, FdSource::Hold(small)), change(2, FdSource::Hold(large)),
        ]);
        let process = world.start_from(TABLE, shell("echo x; seq 1 300000 >&2"));
        assert_eq!(world.end_of(process), "exit 0");
        assert_eq!(written(world, small, 0), Some((0, "x\n".into())));
        let numbers: Vec<String> = (1..=300_000).map(|it| it.to_string()).collect();
        let numbers = numbers.join("\n") + "\n";
        let (from, all) = written(world, large, 0).expect("it is there");
        assert!(from == 0 && all == numbers);
        let (from, rest) = written(world, large, 1_000).expect("it is there");
        assert!(from == 1_000 && rest == numbers[1_000..]);
        // After the end of the holding, the content is the same.
        world.open(OUTER, IoId::INHERITED, vec![change(0, FdSource::BufferRead(large))]);
        let (_, all) = written(world, large, 0).expect("it is there");
        assert!(all == numbers);
    }

    fn buffers_are_filled_whatever_they_are(world) {
        let (text, file, held) = (BufferId(world.id()), BufferId(world.id()), BufferId(world.id()));
        world.open(TABLE, IoId::INHERITED, vec![
            change(1, create(file, "a")), change(2, FdSource::Hold(held)),
        ]);
        for id in [text, file, held] {
            for part in ["b", "", "c\0"] {
                world.driver.perform(Effect::Fill(id, part.into()));
            }
        }
        for (id, expected) in [(text, "bc\0"), (file, "abc\0"), (held, "bc\0")] {
            assert_eq!(written(world, id, 0), Some((0, expected.into())));
            assert_eq!(world.content(id), expected);
        }
        let process = world.start_from(TABLE, shell("echo d; echo e >&2"));
        world.end_of(process);
        world.with(&[(1, FdSource::BufferAppend(text))]);
        let process = world.start(program(&["echo", "f"]));
        world.end_of(process);
        for (id, expected) in [(text, "bc\0f\n"), (file, "abc\0d\n"), (held, "bc\0e\n")] {
            assert_eq!(world.content(id), expected);
            world.with(&[(0, FdSource::BufferRead(id))]);
            assert_eq!(world.output(program(&["cat"])).1, expected);
        }
    }

    fn more_than_a_value_can_be_is_a_file_all_the_same(world) {
        let buffer = BufferId(world.id());
        let most = ftsh_machine::size::MAX_VALUE_LEN;
        for _ in 0..2 {
            world.driver.perform(Effect::Fill(buffer, vec![b'x'; most].into()));
        }
        assert!(world.ask(Query::Buffer(buffer)).is_err());
        world.with(&[(0, FdSource::BufferRead(buffer))]);
        assert_eq!(world.output(program(&["wc", "-c"])).1, format!("{}\n", 2 * most));
    }

    fn what_another_start_knew_is_nothing_here(world) {
        let (scope, io, buffer) = (ScopeId(8), IoId(8), BufferId(8));
        let effects = [
            Effect::Leave(PassId(8), Passed::Neither),
            Effect::KeepInput(SpoolId(8)),
            Effect::DropSpool(SpoolId(8)),
            Effect::DropStagedFile(StagedFileId(8)),
            Effect::DropScratch(ScratchId(8)),
            Effect::CloseIo(io),
            Effect::DropBuffer(buffer),
            Effect::Abandon(OperationId(8)),
            Effect::HandOver { scope, into: ScopeId::SCRIPT },
            Effect::Kill { scope, strong: true },
        ];
        for effect in effects {
            world.driver.perform(effect);
        }
        assert!(world.is_quiet());
        world.driver.perform(Effect::Terminate(scope));
        world.emptied(scope);
    }

    fn what_is_filled_takes_no_descriptors(world) {
        let ids: Vec<BufferId> = (0..200).map(|_| BufferId(world.id())).collect();
        let before = super::input_spools::descriptors();
        for id in &ids {
            world.driver.perform(Effect::Fill(*id, format!("{id:?}").into()));
        }
        // A worker that cleans up after other shells holds some.
        assert!(super::input_spools::descriptors() < before + ids.len() / 2);
        for id in &ids {
            world.with(&[(0, FdSource::BufferRead(*id))]);
            assert_eq!(world.output(program(&["cat"])).1, format!("{id:?}"));
        }
    }

    fn what_has_ended_is_told_at_once_when_that_is_asked_for(world) {
        for _ in 0..10 {
            let processes: Vec<ProcessId> = (0..20).map(|_| world.start(shell("exit 3"))).collect();
            let pids: Vec<i32> = processes.iter().map(|it| world.pid_of(*it)).collect();
            until("they don't end", || !pids.iter().any(|pid| lives(*pid)));
            world.driver.catch_up();
            while let Some(event) = world.driver.wait(Time::START) {
                world.events.push_back(event);
            }
            let ended = |it: &&Event| matches!(it, Event::Exited { .. });
            assert_eq!(world.events.iter().filter(ended).count(), processes.len());
            world.events.clear();
        }
    }

    fn a_signal_during_the_last_step_wins_over_success(world) {
        let kill = process::Command::new("sh").args(["-c", "kill -TERM $PPID"]).status();
        assert!(kill.expect("a shell").success());
        until("no signal", || has_data(world.driver.signals.readiness()));
        let outcome = world.driver.flush_on_exit(Outcome::Succeeded);
        assert_eq!(outcome, Outcome::Interrupted(libc::SIGTERM));
    }

    fn a_signal_to_all_is_told_before_what_it_ended(world) {
        for _ in 0..20 {
            let signals = "kill -STOP $$; kill -TERM $PPID; kill -STOP $$; kill -TERM $$";
            let process = world.start(shell(signals));
            let pid = world.pid_of(process);
            let stops = || ProcDir(pid).stat().expect("a line").contains(") T");
            until("it doesn't stop", stops);
            // The loop awaited the start, and must not take the signal.
            sys::kill(pid, libc::SIGCONT).expect("it is there");
            until("it doesn't stop again", stops);
            // Any thread of the test's process may take the signal, as soon as the thread runs.
            until("no signal", || !is_pending(libc::SIGTERM));
            until("no signal", || has_data(world.driver.signals.readiness()));
            sys::kill(pid, libc::SIGCONT).expect("it is there");
            until("it doesn't end", || !lives(pid));
            // The loop handles the end first.
            world.driver.reap(pid);
            let events = [(); 2].map(|()| world.driver.wait(Time::NEVER));
            let [Some(Event::Interrupted(15)), Some(Event::Exited { status, .. })] = events else {
                panic!("{events:?}")
            };
            assert_eq!(status, CommandStatus::Signaled(15));
        }
    }
}

/// True if no thread of this process has taken a signal sent to the process.
fn is_pending(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:")).expect("a line");
    let pending = u64::from_str_radix(pending.trim(), 16).expect("a number");
    pending & 1 << (signal - 1) != 0
}

fn has_data(pipe: BorrowedFd) -> bool {
    let mut polled = [PollFd::new(pipe, PollFlags::POLLIN)];
    poll(&mut polled, PollTimeout::ZERO) == Ok(1)
}

/// Runs a body with a driver whose run has lasted `elapsed` in earlier starts.
fn after(elapsed: Duration, name: &str, body: fn(&mut World)) {
    super::alone_with(name, || Attachments { elapsed, ..Attachments::default() }, body);
}

#[test]
fn the_clock_goes_on() {
    const ELAPSED: Duration = Duration::from_secs(100 * 86_400);
    after(ELAPSED, concat!(module_path!(), "::the_clock_goes_on"), |world| {
        let now = world.driver.now();
        assert!(now >= Time::after(ELAPSED) && now < Time::after(ELAPSED + LONG));
        let start = Instant::now();
        let until = world.driver.now() + Duration::from_millis(30);
        assert_eq!(world.driver.wait(until), None);
        assert!(world.driver.now() >= until);
        assert!((Duration::from_millis(29)..LONG).contains(&start.elapsed()));
        // Time limits in the past do not make it wait.
        assert_eq!(world.driver.wait(Time::after(LONG)), None);
        // Commands receive time limits by the wall clock.
        world.deadline = Deadline::at(world.driver.now() + Duration::from_secs(1000));
        let limit = world.output(shell("echo $FTSH_DEADLINE")).1.to_string();
        let (limit, _) = limit.split_once('@').expect("times on two clocks");
        let limit: f64 = limit.parse().expect("a number");
        let unix = std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_secs_f64();
        assert!((unix + 900.0..unix + 1001.0).contains(&limit), "{limit} at {unix}");
    });
}
