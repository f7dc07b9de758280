//! Input that each attempt reads again.

use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use super::*;
use crate::descriptors::{Fd, FdTable};
use ftsh_machine::effect::{PipeId, SpoolId};

/// Tables: the outer one, and those of attempts.
const BASE: IoId = IoId(1);
const OUTER: IoId = IoId(2);
const INNER: IoId = IoId(3);

/// Opens the base table with this input.
fn read_from(world: &mut World, fd: OwnedFd) {
    let mut table = FdTable::default();
    table.set(0, Fd::new(fd).expect("a number of our own")).expect("a number");
    world.driver.tables.io_mut().insert(BASE, table);
}

/// Begins an attempt.
fn begin(world: &mut World, replay: u64, io: IoId, base: IoId) {
    let change = FdChange { descriptor: 0, source: FdSource::Spool(SpoolId(replay)) };
    world.driver.perform(Effect::CloseIo(io));
    world.open(io, base, vec![change]);
}

/// Returns the input that a command reads from a table.
fn read(world: &mut World, io: IoId, words: &[&str]) -> String {
    let buffer = BufferId(world.id());
    world.with(&[(1, FdSource::BufferCreate(buffer, "".into()))]);
    let process = world.start_from(io, program(words));
    world.with(&[]);
    assert_eq!(world.end_of(process), "exit 0");
    world.content(buffer).to_string()
}

/// Reads a line and no further byte.
fn line(world: &mut World, io: IoId) -> String {
    let process = world.start_from(io, Action::ReadLine);
    world.end_of(process)
}

fn keep(world: &mut World, replay: u64) {
    world.driver.perform(Effect::KeepInput(SpoolId(replay)));
    drop_replay(world, replay);
}

fn drop_replay(world: &mut World, replay: u64) {
    world.driver.perform(Effect::DropSpool(SpoolId(replay)));
}

/// Returns each kind of input with this content, and true if its end can be detected.
fn inputs(content: &str) -> Vec<(&'static str, OwnedFd)> {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(content.as_bytes()).expect("room");
    file.rewind().expect("a file");
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    writer.write_all(content.as_bytes()).expect("room");
    let (ours, mut theirs) = UnixStream::pair().expect("sockets");
    theirs.write_all(content.as_bytes()).expect("room");
    vec![("file", file.into()), ("pipe", reader.into()), ("socket", ours.into())]
}

/// Returns the number of descriptors of this process.
pub(super) fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("a system with /proc").count()
}

/// Returns a field of this process's status, such as its peak memory in KiB.
pub(super) fn status(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a system with /proc");
    let line = status.lines().find(|line| line.starts_with(field)).expect("a field");
    line.split_whitespace().nth(1).and_then(|it| it.parse().ok()).expect("a number")
}

const LINES: &str = "1\n2\n3\n4\n5\n6\n";

each_alone! {
    fn each_attempt_reads_from_the_beginning(world) {
        for (kind, fd) in inputs(LINES) {
            read_from(world, fd);
            assert_eq!(line(world, BASE), "exit 0: 1");
            for _ in 0..3 {
                begin(world, 1, OUTER, BASE);
                assert_eq!(line(world, OUTER), "exit 0: 2", "{kind}");
                assert_eq!(read(world, OUTER, &["head", "-c", "2"]), "3\n", "{kind}");
                assert_eq!(line(world, OUTER), "exit 0: 4", "{kind}");
            }
            keep(world, 1);
            assert_eq!(line(world, BASE), "exit 0: 5", "{kind}");
            // A dropped attempt leaves the input unread for other readers.
            begin(world, 2, OUTER, BASE);
            assert_eq!(read(world, OUTER, &["cat"]), "6\n", "{kind}");
            drop_replay(world, 2);
            assert_eq!(read(world, BASE, &["cat"]), "6\n", "{kind}");
            assert_eq!(line(world, BASE), "exit 1: ", "{kind}");
            world.driver.perform(Effect::CloseIo(OUTER));
            world.driver.perform(Effect::CloseIo(BASE));
            assert!(!world.driver.tables.spools().has_spools(), "{kind}");
        }
    }

    fn attempts_inside_attempts_go_back_to_their_own_beginnings(world) {
        for (kind, fd) in inputs(LINES) {
            read_from(world, fd);
            for _ in 0..2 {
                begin(world, 1, OUTER, BASE);
                assert_eq!(line(world, OUTER), "exit 0: 1", "{kind}");
                for _ in 0..3 {
                    begin(world, 2, INNER, OUTER);
                    assert_eq!(line(world, INNER), "exit 0: 2", "{kind}");
                    assert_eq!(line(world, INNER), "exit 0: 3", "{kind}");
                }
                drop_replay(world, 2);
                assert_eq!(line(world, OUTER), "exit 0: 2", "{kind}");
                begin(world, 3, INNER, OUTER);
                assert_eq!(line(world, INNER), "exit 0: 3", "{kind}");
                keep(world, 3);
                assert_eq!(line(world, OUTER), "exit 0: 4", "{kind}");
            }
            keep(world, 1);
            assert_eq!(read(world, BASE, &["cat"]), "5\n6\n", "{kind}");
            for io in [INNER, OUTER, BASE] {
                world.driver.perform(Effect::CloseIo(io));
            }
            assert!(!world.driver.tables.spools().has_spools(), "{kind}");
        }
    }

    fn what_cannot_be_read_anew_stays_as_it_is(world) {
        let pty = nix::pty::openpty(None, None).expect("a terminal");
        let null = std::fs::File::open("/dev/null").expect("nothing");
        let (_, writer) = std::io::pipe().expect("a pipe");
        for fd in [pty.slave, null.into(), writer.into()] {
            let name = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()));
            let name = format!("{}\n", name.expect("open").display());
            read_from(world, fd);
            for _ in 0..2 {
                begin(world, 1, OUTER, BASE);
                assert_eq!(read(world, OUTER, &["readlink", "/proc/self/fd/0"]), name);
            }
            drop_replay(world, 1);
        }
        world.driver.tables.io_mut().insert(BASE, FdTable::default());
        begin(world, 2, OUTER, BASE);
        keep(world, 2);
        begin(world, 3, OUTER, IoId::INHERITED);
        drop_replay(world, 3);
        assert!(!world.driver.tables.spools().has_spools());
    }

    fn input_that_comes_late_is_waited_for_at_rest(world) {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        read_from(world, reader.into());
        begin(world, 1, OUTER, BASE);
        let process = world.start_from(OUTER, Action::ReadLine);
        let used = || nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_THREAD)
            .map(|it| it.user_time() + it.system_time()).expect("the time");
        let before = used();
        let limit = world.driver.now() + Duration::from_millis(300);
        assert_eq!(world.driver.wait(limit), None);
        let took = used() - before;
        assert!(nix::sys::time::TimeValLike::num_milliseconds(&took) < 50, "{took}");
        writer.write_all(b"late\nrest\n").expect("room");
        assert_eq!(world.end_of(process), "exit 0: late");
        begin(world, 1, OUTER, BASE);
        assert_eq!(line(world, OUTER), "exit 0: late");
        // The reader still runs when the end arrives.
        let process = world.start_from(OUTER, program(&["grep", "-q", "rest"]));
        assert_eq!(world.end_of(process), "exit 0");
        let process = world.start_from(OUTER, program(&["cat"]));
        drop(writer);
        assert_eq!(world.end_of(process), "exit 0");
        assert_eq!(world.ask(Query::InputEnded(OUTER)), Ok(Reply::Truth(true)));
        keep(world, 1);
        assert_eq!(world.ask(Query::InputEnded(BASE)), Ok(Reply::Truth(true)));
    }

    fn the_end_of_an_input_is_seen(world) {
        for (kind, fd) in inputs("") {
            read_from(world, fd);
            let ends = Ok(Reply::Truth(kind != "file"));
            assert_eq!(world.ask(Query::InputEnded(BASE)), ends, "{kind}");
        }
        for (kind, fd) in inputs(LINES) {
            read_from(world, fd);
            assert_eq!(world.ask(Query::InputEnded(BASE)), Ok(Reply::Truth(false)), "{kind}");
            begin(world, 1, OUTER, BASE);
            assert_eq!(line(world, OUTER), "exit 0: 1");
            assert_eq!(world.ask(Query::InputEnded(OUTER)), Ok(Reply::Truth(false)), "{kind}");
            drop_replay(world, 1);
            assert_eq!(world.ask(Query::InputEnded(BASE)), Ok(Reply::Truth(false)), "{kind}");
        }
        assert_eq!(world.ask(Query::InputEnded(IoId::INHERITED)), Ok(Reply::Truth(false)));
    }

    fn nothing_is_read_ahead_before_a_command_can_read(world) {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        writer.write_all(LINES.as_bytes()).expect("room");
        let copy = reader.try_clone().expect("a descriptor");
        read_from(world, reader.into());
        begin(world, 1, OUTER, BASE);
        let unread = || ftsh_sys::unread(copy.as_fd()).expect("a pipe");
        let process = world.start_from(OUTER, Action::Print("x".into()));
        let _ = world.end_of(process);
        assert_eq!(unread(), LINES.len());
        drop_replay(world, 1);
        assert_eq!(unread(), LINES.len());
        // A reader of one line causes reading ahead of at most one page.
        writer.write_all(&vec![b'x'; 30_000]).expect("room");
        begin(world, 2, OUTER, BASE);
        assert_eq!(line(world, OUTER), "exit 0: 1");
        keep(world, 2);
        let ahead = LINES.len() + 30_000 - unread();
        eprintln!("read ahead: {ahead}");
        assert_eq!(line(world, BASE), "exit 0: 2");
    }

    fn a_writer_sees_when_nobody_reads_any_more(world) {
        let pipe = PipeId(1);
        world.with(&[(1, FdSource::PipeWriter(pipe))]);
        let writer = world.start(program(&["yes"]));
        world.with(&[]);
        let change = FdChange { descriptor: 0, source: FdSource::PipeReader(pipe) };
        world.open(BASE, IoId::INHERITED, vec![change]);
        for _ in 0..3 {
            begin(world, 1, OUTER, BASE);
            assert_eq!(read(world, OUTER, &["head", "-n", "1"]), "y\n");
        }
        keep(world, 1);
        world.driver.perform(Effect::CloseIo(OUTER));
        world.driver.perform(Effect::CloseIo(BASE));
        assert_eq!(world.end_of(writer), "signal 13");
        assert!(!world.driver.tables.spools().has_spools());
    }

    fn many_attempts_one_after_the_other_take_no_more_descriptors(world) {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        let thread = std::thread::spawn(move || {
            for number in 0..600 {
                let _ = writeln!(writer, "{number}");
            }
        });
        read_from(world, reader.into());
        let mut most = 0;
        for number in 0..300 {
            begin(world, number, OUTER, BASE);
            assert_eq!(line(world, OUTER), format!("exit 0: {}", 2 * number));
            begin(world, number, OUTER, BASE);
            assert_eq!(line(world, OUTER), format!("exit 0: {}", 2 * number));
            keep(world, number);
            assert_eq!(line(world, BASE), format!("exit 0: {}", 2 * number + 1));
            if number == 10 {
                most = descriptors() + 2;
            }
            assert!(most == 0 || descriptors() <= most, "{number}");
        }
        thread.join().expect("it ends");
        assert_eq!(read(world, BASE, &["cat"]), "");
    }

    fn a_hundred_megabytes_are_read_three_times_in_little_memory(world) {
        let size = 100_000_000;
        let pipe = PipeId(1);
        world.with(&[(1, FdSource::PipeWriter(pipe))]);
        let script = format!("yes 0123456789abcdef | head -c {size}");
        let writer = world.start(shell(&script));
        world.with(&[]);
        let change = FdChange { descriptor: 0, source: FdSource::PipeReader(pipe) };
        world.open(BASE, IoId::INHERITED, vec![change]);
        let before = status("VmHWM");
        let start = Instant::now();
        for _ in 0..3 {
            begin(world, 1, OUTER, BASE);
            assert_eq!(read(world, OUTER, &["wc", "-c"]), format!("{size}\n"));
        }
        eprintln!("three times 100 MB: {:?}", start.elapsed());
        begin(world, 1, OUTER, BASE);
        assert_eq!(read(world, OUTER, &["head", "-c", "17"]), "0123456789abcdef\n");
        keep(world, 1);
        assert_eq!(read(world, BASE, &["wc", "-c"]).trim(), (size - 17).to_string());
        assert_eq!(world.end_of(writer), "exit 0");
        let grown = status("VmHWM") - before;
        assert!(grown < 20_000, "{grown} KiB");
    }

    fn what_others_take_from_the_same_pipe_holds_up_nothing(world) {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        let mut thief = reader.try_clone().expect("a descriptor");
        read_from(world, reader.into());
        begin(world, 1, OUTER, BASE);
        let process = world.start_from(OUTER, program(&["cat"]));
        let thread = std::thread::spawn(move || {
            let mut taken = [0; 1];
            while thief.read(&mut taken).is_ok_and(|count| count > 0) {}
        });
        let writing = std::thread::spawn(move || {
            for _ in 0..20_000 {
                let _ = writer.write_all(b"x");
            }
        });
        assert_eq!(world.end_of(process), "exit 0");
        writing.join().expect("it ends");
        thread.join().expect("it ends");
    }

    fn a_copy_of_the_descriptor_reads_what_the_attempt_reads(world) {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        writer.write_all(LINES.as_bytes()).expect("room");
        drop(writer);
        read_from(world, reader.into());
        for _ in 0..2 {
            begin(world, 1, OUTER, BASE);
            assert_eq!(line(world, OUTER), "exit 0: 1");
            world.with(&[(3, FdSource::Descriptor(0)), (0, FdSource::Null)]);
            let process = world.start_from(OUTER, shell("read a <&3 && test $a = 2 && ! read b"));
            world.with(&[]);
            assert_eq!(world.end_of(process), "exit 0");
        }
        keep(world, 1);
        assert_eq!(line(world, BASE), "exit 0: 3");
    }
}
