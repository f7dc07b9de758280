//! Descriptors, buffers, pipes and files.

use std::sync::Arc;

use super::*;
use crate::buffers::LineAssembler;
use crate::fds::RelayPipe;
use crate::few_descriptors::none_during;
use crate::paths::TaskDirectory;
use ftsh_machine::effect::{Access, Directory, PipeId};

fn file(path: &std::path::Path, access: Access) -> FdSource {
    FdSource::File { path: path.to_str().expect("a name").into(), access }
}

each_alone! {
    fn redirections_apply_from_left_to_right(world) {
        let (a, b) = (BufferId(1), BufferId(2));
        let script = "echo out; echo err >&2; echo three >&3";
        world.last = 10;
        world.with(&[
            (1, FdSource::BufferCreate(a, "start ".into())),
            (3, FdSource::Descriptor(1)),
            (2, FdSource::Descriptor(1)),
            (1, FdSource::BufferCreate(b, "".into())),
        ]);
        let process = world.start(shell(script));
        assert_eq!(world.end_of(process), "exit 0");
        assert_eq!(world.content(a), "start err\nthree\n");
        assert_eq!(world.content(b), "out\n");
    }

    fn output_and_errors_can_be_exchanged(world) {
        let (out, err) = (BufferId(1), BufferId(2));
        world.last = 10;
        world.with(&[
            (1, FdSource::BufferCreate(out, "".into())),
            (2, FdSource::BufferCreate(err, "".into())),
            (3, FdSource::Descriptor(1)),
            (1, FdSource::Descriptor(2)),
            (2, FdSource::Descriptor(3)),
        ]);
        let process = world.start(shell("echo out; echo err >&2"));
        world.end_of(process);
        assert_eq!((world.content(out), world.content(err)), ("err\n".into(), "out\n".into()));
    }

    fn inherited_descriptors_can_be_exchanged(world) {
        world.with(&[(3, FdSource::Descriptor(0)), (0, FdSource::Descriptor(2)), (2, FdSource::Descriptor(3))]);
        let (_, output) = world.output(shell("readlink /proc/self/fd/0 /proc/self/fd/2"));
        let name = |number| std::fs::read_link(format!("/proc/self/fd/{number}")).expect("open");
        assert_eq!(output, format!("{}\n{}\n", name(2).display(), name(0).display()));
    }

    fn what_is_not_open_cannot_be_copied(world) {
        world.with(&[(1, FdSource::Descriptor(7))]);
        let process = world.start(program(&["true"]));
        assert_eq!(world.end_of(process), "Redirect: descriptor 7 is not open");
    }

    fn files_are_made_emptied_and_added_to(world) {
        let place = tempfile::tempdir().expect("a directory");
        world.directory.path = Some(Arc::new(place.path().to_str().expect("a name").into()));
        let path = std::path::Path::new("f");
        for (access, text) in [
            (Access::Write, "one"), (Access::Append, "two"), (Access::Write, "three"),
            (Access::Append, "four"),
        ] {
            world.with(&[(1, file(path, access))]);
            let process = world.start(program(&["echo", text]));
            assert_eq!(world.end_of(process), "exit 0");
        }
        world.with(&[(0, file(path, Access::Read))]);
        assert_eq!(world.output(program(&["cat"])).1, "three\nfour\n");
        world.with(&[(0, file(std::path::Path::new("none"), Access::Read))]);
        let process = world.start(program(&["cat"]));
        assert_eq!(world.end_of(process), "Redirect: none: no such file or directory");
    }

    fn sixty_megabytes_go_through_a_buffer(world) {
        let start = Instant::now();
        let (end, output) = world.output(program(&["head", "-c", "60000000", "/dev/zero"]));
        assert_eq!((end.as_str(), output.len()), ("exit 0", 60_000_000));
        world.with(&[(0, FdSource::Bytes(output))]);
        assert_eq!(world.output(program(&["wc", "-c"])).1, "60000000\n");
        assert!(start.elapsed() < LONG);
    }

    fn a_buffer_is_read_from_its_beginning_while_it_grows(world) {
        let buffer = BufferId(world.id());
        world.with(&[(1, FdSource::BufferCreate(buffer, "a\0".into()))]);
        let process = world.start(Action::Print("b\u{ff}".into()));
        world.end_of(process);
        let copy = BufferId(world.id());
        world.with(&[(0, FdSource::BufferRead(buffer)), (1, FdSource::BufferCopy { buffer: copy, of: buffer })]);
        let process = world.start(program(&["cat"]));
        assert_eq!(world.end_of(process), "exit 0");
        assert_eq!(world.content(copy), "a\0b\u{ff}a\0b\u{ff}");
        world.with(&[(1, FdSource::BufferAppend(buffer))]);
        let process = world.start(program(&["echo"]));
        world.end_of(process);
        assert_eq!(world.content(buffer), "a\0b\u{ff}\n");
        world.driver.perform(Effect::DropBuffer(buffer));
        assert!(world.ask(Query::Buffer(buffer)).is_err());
    }

    fn a_pipe_ends_when_its_writer_does_and_breaks_when_its_reader_does(world) {
        let pipe = PipeId(1);
        world.with(&[(1, FdSource::PipeWriter(pipe))]);
        let writer = world.start(program(&["yes"]));
        world.with(&[(0, FdSource::PipeReader(pipe))]);
        assert_eq!(world.output(program(&["head", "-n", "1"])).1, "y\n");
        assert_eq!(world.end_of(writer), "signal 13");

        let pipe = PipeId(2);
        world.with(&[(0, FdSource::PipeReader(pipe))]);
        let reader = world.start(program(&["cat"]));
        world.with(&[(1, FdSource::PipeWriter(pipe))]);
        let writer = world.start(Action::Print("".into()));
        assert_eq!(world.end_of(writer), "exit 0");
        assert_eq!(world.end_of(reader), "exit 0");
    }

    fn a_pipe_that_cannot_be_created_fails_at_both_ends(world) {
        let directory = TaskDirectory::default();
        let mut plan = |source| {
            let redirects = vec![FdChange { descriptor: 1, source }];
            let plan = world.driver.tables.io_mut().plan(IoId::INHERITED, &directory, None, redirects);
            plan.err().map(|error| error.to_string())
        };
        let failed = none_during(|| plan(FdSource::PipeWriter(PipeId(1))));
        assert_eq!(failed.as_deref(), Some("cannot create a pipe: too many open files (see `ulimit -n`)"));
        // A reader of a new pipe would wait forever for a writer.
        assert_eq!(plan(FdSource::PipeReader(PipeId(1))), failed);
    }

    fn held_output_has_a_content_if_no_pipe_can_be_created(world) {
        let redirects = [(1, BufferId(1)), (2, BufferId(2))]
            .map(|(descriptor, id)| FdChange { descriptor, source: FdSource::Hold(id) });
        let directory = TaskDirectory::default();
        let io = world.driver.tables.io_mut();
        let plan = none_during(|| io.plan(IoId::INHERITED, &directory, None, redirects.into()));
        assert!(plan.is_err());
        assert_eq!([BufferId(1), BufferId(2)].map(|id| world.content(id)), ["", ""]);
    }

    fn output_that_cannot_be_watched_is_refused(world) {
        let relay = OperationId(1);
        world.driver.tables.begin_relay(relay, IoId::INHERITED);
        let ProcessDriver { tables, reactor, .. } = &mut world.driver;
        // The kernel watches no regular file.
        let reader = tempfile::tempfile().expect("a file").into();
        let lines = LineAssembler::new(None);
        let pipe = RelayPipe { relay, descriptor: 1, reader, lines, keeps: None };
        assert!(tables.relays().listen(reactor, IoId(2), vec![pipe]).is_err());
    }

    fn printing_never_holds_up_the_loop(world) {
        let pipe = PipeId(1);
        world.with(&[(1, FdSource::PipeWriter(pipe))]);
        let writer = world.start(Action::Print("x".repeat(1 << 20).into()));
        world.with(&[]);
        let other = world.start(program(&["true"]));
        assert_eq!(world.end_of(other), "exit 0"); // while the pipe is full
        world.with(&[(0, FdSource::PipeReader(pipe))]);
        assert_eq!(world.output(program(&["wc", "-c"])).1, "1048576\n");
        assert_eq!(world.end_of(writer), "exit 0");
    }

    fn printing_to_nobody_ends_like_a_program(world) {
        let pipe = PipeId(1);
        world.with(&[(0, FdSource::PipeReader(pipe))]);
        let reader = world.start(program(&["true"]));
        world.end_of(reader);
        world.with(&[(1, FdSource::PipeWriter(pipe))]);
        let writer = world.start(Action::Print("x".into()));
        assert_eq!(world.end_of(writer), "signal 13");
        world.with(&[(1, file(std::path::Path::new("/dev/full"), Access::Write))]);
        let writer = world.start(Action::Print("x".into()));
        assert_eq!(world.end_of(writer), "Builtin: no space left on device");
    }

    fn a_line_is_read_and_nothing_after_it(world) {
        let buffer = BufferId(world.id());
        let operation = OperationId(world.id());
        let (io, pipe) = (IoId(1), PipeId(1));
        let text = "one\ntwo\nthree";
        // Several commands share the table, as in a block.
        for source in [FdSource::Bytes(text.into()), FdSource::PipeReader(pipe)] {
            if matches!(source, FdSource::PipeReader(_)) {
                world.with(&[(1, FdSource::PipeWriter(pipe))]);
                let writer = world.start(Action::Print(text.into()));
                world.end_of(writer);
                world.with(&[]);
            }
            world.driver.perform(Effect::Open {
                operation,
                io,
                base: IoId::INHERITED,
                directory: Directory::default(),
                umask: None,
                redirects: vec![
                    FdChange { descriptor: 0, source },
                    FdChange { descriptor: 1, source: FdSource::BufferCreate(buffer, "".into()) },
                ],
            });
            assert_eq!(world.done(operation), Ok(Reply::Truth(true)));
            let mut ends = Vec::new();
            for action in [
                Action::ReadLine, program(&["head", "-c", "4"]), Action::ReadLine, Action::ReadLine,
            ] {
                let process = ProcessId(world.id());
                let mut run = world.request(process, ScopeId::SCRIPT, action);
                run.io = io;
                world.driver.perform(Effect::Run(Box::new(run)));
                ends.push(world.end_of(process));
            }
            assert_eq!(ends, ["exit 0: one", "exit 0", "exit 1: three", "exit 1: "]);
            assert_eq!(world.content(buffer), "two\n");
            world.driver.perform(Effect::CloseIo(io));
        }
    }

    fn a_hung_open_holds_up_nothing_and_can_be_given_up(world) {
        let place = tempfile::tempdir().expect("a directory");
        let fifo = place.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("a fifo");
        let scope = ScopeId(1);
        world.driver.perform(Effect::OpenScope { scope, parent: ScopeId::SCRIPT, pass: None });
        world.with(&[(0, file(&fifo, Access::Read))]);
        world.start_in(scope, program(&["cat"]));
        let operation = OperationId(world.id());
        world.driver.perform(Effect::Open {
            operation,
            io: IoId(1),
            base: IoId::INHERITED,
            directory: Directory::default(),
                umask: None,
            redirects: vec![FdChange { descriptor: 1, source: file(&fifo, Access::Write) }],
        });
        // Each open found the other end.
        assert!(world.done(operation).is_ok());
        world.driver.perform(Effect::CloseIo(IoId(1)));
        world.expect("end", |event| matches!(event, Event::Exited { .. }).then_some(()));
        world.events.clear();

        let hung = [Access::Read, Access::Write].map(|access| {
            let fifo = place.path().join(format!("{access:?}"));
            nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("a fifo");
            let source = file(&fifo, access);
            world.with(&[(0, source.clone())]);
            world.start_in(scope, program(&["cat"]));
            let operation = OperationId(world.id());
            world.driver.perform(Effect::Open {
                operation,
                io: IoId(2),
                base: IoId::INHERITED,
                directory: Directory::default(),
                umask: None,
                redirects: vec![FdChange { descriptor: 0, source }],
            });
            operation
        });
        world.driver.perform(Effect::Terminate(scope));
        world.emptied(scope);
        for operation in hung {
            world.driver.perform(Effect::Abandon(operation));
        }
        // No thread stays blocked in an open.
        let threads = |state: &str| {
            let tasks = std::fs::read_dir("/proc/self/task").expect("threads");
            let calls = tasks.flatten().filter_map(|task| {
                std::fs::read_to_string(task.path().join("wchan")).ok()
            });
            calls.filter(|call| call.contains(state)).count()
        };
        until("a thread stays in an open", || threads("fifo") == 0);
        assert!(world.is_quiet());
    }

    fn questions_about_files_are_answered(world) {
        let place = tempfile::tempdir().expect("a directory");
        let text = place.path().to_str().expect("a name").to_owned();
        std::fs::write(place.path().join("a.txt"), "content").expect("a file");
        world.directory.path = Some(Arc::new(text.clone().into()));
        assert_eq!(world.ask(Query::Glob("*.txt".into())), Ok(Reply::Words(vec!["a.txt".into()])));
        assert_eq!(world.ask(Query::Directory(".".into())), Ok(Reply::Text(text.into())));
        assert_eq!(world.ask(Query::File("a.txt".into())), Ok(Reply::Text("content".into())));
        assert_eq!(world.ask(Query::File(".".into())), Err(refused(".: is a directory", "EISDIR")));
        assert_eq!(
            world.ask(Query::Directory("none".into())),
            Err(refused("none: no such file or directory", "ENOENT"))
        );
    }
}
