//! Held output and staged files.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::*;
use ftsh_machine::effect::{Access, CommitMode, Sink, StagedFileId};

/// Creates a directory for files.
fn place() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

fn text(path: &Path) -> BString {
    path.to_str().expect("a name").into()
}

fn draft(id: u64, path: &Path) -> FdSource {
    FdSource::StagedFile { file: StagedFileId(id), path: text(path), mode: CommitMode::Replace }
}

fn addition(id: u64, path: &Path) -> FdSource {
    FdSource::StagedFile { file: StagedFileId(id), path: text(path), mode: CommitMode::Append }
}

/// Runs a command of `sh` with this standard output.
fn write(world: &mut World, to: FdSource, script: &str) {
    world.with(&[(1, to)]);
    let process = world.start(shell(script));
    assert_eq!(world.end_of(process), "exit 0");
    world.with(&[]);
}

fn settle(world: &mut World, ids: &[u64]) -> Result<Reply, Refusal> {
    let operation = OperationId(world.id());
    let drafts = ids.iter().copied().map(StagedFileId).collect();
    world.driver.perform(Effect::Commit { operation, files: drafts });
    world.done(operation)
}

fn drop_all(world: &mut World, ids: &[u64]) {
    for id in ids {
        world.driver.perform(Effect::DropStagedFile(StagedFileId(*id)));
    }
}

/// Returns the sorted names in a directory.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory").flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("a file")
}

fn mode(path: &Path) -> u32 {
    path.metadata().expect("a file").permissions().mode() & 0o7777
}

/// Creates a file with some text.
fn made(path: PathBuf, text: &str) -> PathBuf {
    fs::write(&path, text).expect("a file");
    path
}

each_alone! {
    fn what_leads_to_one_file_is_held_in_order(world) {
        let place = place();
        let file = text(&place.path().join("f"));
        let (out, err, other, closed) = (BufferId(1), BufferId(2), BufferId(3), BufferId(4));
        world.last = 10;
        let read_only = FdSource::File { path: "/dev/null".into(), access: Access::Read };
        world.with(&[
            (1, FdSource::File { path: file, access: Access::Append }),
            (2, FdSource::Descriptor(1)),
            (4, FdSource::File { path: "/dev/null".into(), access: Access::Write }),
            (5, read_only),
        ]);
        let changes = std::mem::take(&mut world.redirects);
        world.open(IoId(1), IoId::INHERITED, changes);
        let holds = [(2, err), (1, out), (3, closed), (4, other), (5, BufferId(5))];
        let holds = holds.map(|(descriptor, id)| FdChange { descriptor, source: FdSource::Hold(id) });
        world.open(IoId(2), IoId(1), holds.to_vec());
        for script in [
            "echo one",
            "echo two >&2",
            "echo three",
            "echo four >&4; test ! -e /proc/self/fd/3 && readlink /proc/self/fd/5",
        ] {
            let process = world.start_from(IoId(2), shell(script));
            assert_eq!(world.end_of(process), "exit 0");
        }
        assert_eq!(world.content(err), "one\ntwo\nthree\n/dev/null\n");
        assert_eq!(world.content(out), "");
        assert_eq!(world.content(other), "four\n");
        let all = vec![out, err, closed, other, BufferId(5), BufferId(99)];
        assert_eq!(world.ask(Query::Filled(all)), Ok(Reply::Buffers(vec![err, other])));
        let tail = |world: &mut World, most| world.ask(Query::Tail(vec![Sink::Buffer(err), Sink::Buffer(out)], most));
        assert_eq!(tail(world, 100), Ok(Reply::Text("two\none\nthree\n/dev/null\n".into())));
        assert_eq!(tail(world, 15), Ok(Reply::Text("two\n/dev/null\n".into())));
        assert_eq!(tail(world, 3), Ok(Reply::Text("wo\n".into())));

        // The same inside: the pipes of one target count as one target.
        let holds = [(2, BufferId(6)), (1, BufferId(7))];
        let holds = holds.map(|(descriptor, id)| FdChange { descriptor, source: FdSource::Hold(id) });
        world.open(IoId(3), IoId(2), holds.to_vec());
        let process = world.start_from(IoId(3), shell("echo inner; echo complaint >&2"));
        assert_eq!(world.end_of(process), "exit 0");
        assert_eq!(world.ask(Query::Filled(vec![BufferId(6), BufferId(7)])), Ok(Reply::Buffers(vec![BufferId(6)])));
        let process = world.start_from(IoId(3), shell("seq 100000"));
        assert_eq!(world.end_of(process), "exit 0");
        let tail = world.ask(Query::Tail(vec![Sink::Buffer(BufferId(6))], 100));
        assert_eq!(tail, Ok(Reply::Text("complaint\n".into())));
        assert_eq!(fs::read(place.path().join("f")).expect("a file"), b"");
    }

    fn what_is_held_cannot_be_cut_off(world) {
        let (out, copy) = (BufferId(1), BufferId(2));
        world.last = 10;
        let hold = |descriptor, id| FdChange { descriptor, source: FdSource::Hold(id) };
        world.open(IoId(1), IoId::INHERITED, vec![hold(1, out)]);
        let script = "echo first; echo second > /dev/stdout; (sleep 60; echo late) & echo third";
        let process = world.start_from(IoId(1), shell(script));
        assert_eq!(world.end_of(process), "exit 0");
        let process = world.start_from(IoId(1), Action::Print("fourth\n".into()));
        assert_eq!(world.end_of(process), "exit 0");
        let all = "first\nsecond\nthird\nfourth\n";
        assert_eq!(world.content(out), all);
        for _ in 0..2 {
            world.with(&[(0, FdSource::BufferRead(out)), (1, FdSource::BufferCreate(copy, "".into()))]);
            let process = world.start(Action::Copy);
            assert_eq!(world.end_of(process), "exit 0");
            assert_eq!(world.content(copy), all);
        }
        world.with(&[]);
        world.driver.perform(Effect::DropBuffer(out));
        world.driver.perform(Effect::CloseIo(IoId(1)));
        assert_eq!(world.ask(Query::Filled(vec![out])), Ok(Reply::Buffers(Vec::new())));
    }

    fn much_is_held_in_little_memory(world) {
        let (out, copy) = (BufferId(1), BufferId(2));
        world.last = 10;
        let before = super::input_spools::status("VmHWM");
        world.open(IoId(1), IoId::INHERITED, vec![FdChange { descriptor: 1, source: FdSource::Hold(out) }]);
        let process = world.start_from(IoId(1), program(&["head", "-c", "100000000", "/dev/zero"]));
        assert_eq!(world.end_of(process), "exit 0");
        assert_eq!(world.ask(Query::Filled(vec![out])), Ok(Reply::Buffers(vec![out])));
        world.with(&[(0, FdSource::BufferRead(out)), (1, FdSource::BufferCreate(copy, "".into()))]);
        let process = world.start(program(&["wc", "-c"]));
        assert_eq!(world.end_of(process), "exit 0");
        assert_eq!(world.content(copy), "100000000\n");
        let grown = super::input_spools::status("VmHWM") - before;
        assert!(grown < 10_000, "{grown} KiB");
    }

    fn holding_again_and_again_takes_no_descriptors(world) {
        let mut most = 0;
        for number in 0..200 {
            let (out, err) = (BufferId(2 * number), BufferId(2 * number + 1));
            world.last = 1000 + 10 * number;
            let holds = [(1, out), (2, err)];
            let holds = holds.map(|(descriptor, id)| FdChange { descriptor, source: FdSource::Hold(id) });
            world.open(IoId(1), IoId::INHERITED, holds.to_vec());
            let process = world.start_from(IoId(1), shell("echo x; echo y >&2"));
            assert_eq!(world.end_of(process), "exit 0");
            assert_eq!(world.content(out).len() + world.content(err).len(), 4);
            world.driver.perform(Effect::DropBuffer(out));
            world.driver.perform(Effect::DropBuffer(err));
            world.driver.perform(Effect::CloseIo(IoId(1)));
            if number == 20 {
                most = super::input_spools::descriptors() + 6;
            }
            assert!(most == 0 || super::input_spools::descriptors() <= most, "{number}");
        }
    }

    fn a_new_file_is_there_when_it_is_settled(world) {
        let place = place();
        let path = place.path().join("new");
        for (number, umask) in [(1, None), (2, Some(0o027)), (3, Some(0))] {
            world.umask = umask;
            write(world, draft(number, &path), "echo one; echo two");
            assert!(!path.exists());
            assert_eq!(settle(world, &[number]), Ok(Reply::Truth(true)));
            assert_eq!(read(&path), "one\ntwo\n");
            let wanted = 0o666 & !u32::from(umask.unwrap_or_else(crate::system::umask));
            assert_eq!(mode(&path), wanted);
            assert_eq!(settle(world, &[number]), Ok(Reply::Truth(true))); // nothing is left to do
            drop_all(world, &[number]);
            assert_eq!(names(place.path()), ["new"]);
            fs::remove_file(&path).expect("it was there");
        }
    }

    fn what_is_only_to_be_filled_stays_if_nothing_is_written(world) {
        let place = place();
        let (old, new) = (made(place.path().join("old"), "old"), place.path().join("new"));
        for (number, script, wanted) in [(1, ":", ["old"].as_slice()), (2, "echo x", &["new", "old"])] {
            for (id, path) in [(number, &old), (10 + number, &new)] {
                let fill = FdSource::StagedFile { file: StagedFileId(id), path: text(path), mode: CommitMode::Fill };
                write(world, fill, script);
            }
            assert_eq!(settle(world, &[number, 10 + number]), Ok(Reply::Truth(true)));
            drop_all(world, &[number, 10 + number]);
            assert_eq!((read(&old).as_str(), names(place.path())), (["old", "x\n"][number as usize - 1], wanted.iter().map(ToString::to_string).collect()));
        }
    }

    fn a_draft_that_is_dropped_leaves_nothing(world) {
        let place = place();
        let old = made(place.path().join("old"), "old");
        write(world, draft(1, &old), "echo new");
        write(world, draft(2, &place.path().join("new")), "echo new");
        write(world, addition(3, &old), "echo more");
        write(world, addition(4, &place.path().join("newer")), "echo more");
        drop_all(world, &[1, 2, 3, 4, 5]);
        assert_eq!(settle(world, &[1, 2, 3, 4, 5]), Ok(Reply::Truth(true)));
        assert_eq!((read(&old).as_str(), names(place.path())), ("old", vec!["old".to_owned()]));
    }

    fn an_old_file_keeps_its_mode_and_its_owner(world) {
        let place = place();
        let path = made(place.path().join("f"), "old");
        for wanted in [0o640, 0o600, 0o4755, 0o444] {
            fs::set_permissions(&path, PermissionsExt::from_mode(wanted)).expect("its mode");
            let is_root = nix::unistd::geteuid().is_root();
            if is_root {
                std::os::unix::fs::chown(&path, Some(1234), Some(4321)).expect("its owner");
                fs::set_permissions(&path, PermissionsExt::from_mode(wanted)).expect("its mode");
            } else if wanted == 0o444 {
                world.with(&[(1, draft(9, &path))]);
                let process = world.start(shell("echo"));
                assert!(world.end_of(process).ends_with("f: permission denied"));
                continue;
            }
            write(world, draft(wanted.into(), &path), "echo new");
            assert_eq!(settle(world, &[wanted.into()]), Ok(Reply::Truth(true)));
            assert_eq!(read(&path), "new\n");
            let owner = path.metadata().map(|it| (it.uid(), it.gid())).expect("its owner");
            if is_root {
                assert_eq!((mode(&path), owner), (wanted, (1234, 4321)));
            } else {
                assert_eq!(mode(&path), wanted & 0o777);
            }
            assert_eq!(names(place.path()), ["f"]);
        }
    }

    fn links_are_followed(world) {
        let place = place();
        let inner = place.path().join("inner");
        fs::create_dir(&inner).expect("a directory");
        let file = made(inner.join("file"), "old");
        fs::hard_link(&file, place.path().join("hard")).expect("a link");
        symlink("inner/file", place.path().join("link")).expect("a link");
        symlink("link", place.path().join("second")).expect("a link");
        symlink("inner/new", place.path().join("dangling")).expect("a link");
        symlink("loop", place.path().join("loop")).expect("a link");
        write(world, draft(1, &place.path().join("second")), "echo one");
        write(world, draft(2, &place.path().join("dangling")), "echo two");
        write(world, addition(3, &place.path().join("link")), "echo three");
        assert_eq!(settle(world, &[1, 2, 3]), Ok(Reply::Truth(true)));
        assert_eq!(read(&file), "one\nthree\n");
        assert_eq!(read(&inner.join("new")), "two\n");
        assert_eq!(read(&place.path().join("hard")), "old");
        assert!(place.path().join("second").is_symlink() && place.path().join("dangling").is_symlink());
        assert_eq!(names(&inner), ["file", "new"]);
        world.with(&[(1, draft(4, &place.path().join("loop")))]);
        let process = world.start(shell("echo"));
        assert!(world.end_of(process).contains("/loop: "), "a loop is refused");
    }

    fn what_is_no_regular_file_is_written_at_once(world) {
        let place = place();
        let fifo = place.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("a fifo");
        let source = FdSource::File { path: text(&fifo), access: Access::Read };
        let out = BufferId(1);
        world.last = 10;
        world.with(&[(0, source), (1, FdSource::BufferCreate(out, "".into()))]);
        let reader = world.start(program(&["cat"]));
        write(world, draft(1, &fifo), "echo through");
        assert_eq!(world.end_of(reader), "exit 0");
        assert_eq!(world.content(out), "through\n");
        write(world, draft(2, Path::new("/dev/null")), "echo nowhere");
        write(world, addition(3, Path::new("/dev/null")), "echo nowhere");
        assert_eq!(settle(world, &[1, 2, 3]), Ok(Reply::Truth(true)));
        // Writes to an open file go to that file.
        let open = made(place.path().join("open"), "");
        let file = fs::OpenOptions::new().append(true).open(&open).expect("a file");
        let link = place.path().join("link");
        symlink(format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file)), &link).expect("a link");
        let inode = file.metadata().expect("a file").ino();
        write(world, draft(7, &link), "echo open");
        assert_eq!(settle(world, &[7]), Ok(Reply::Truth(true)));
        assert_eq!((read(&open).as_str(), open.metadata().expect("a file").ino()), ("open\n", inode));
        fs::remove_file(&open).expect("it was there");
        fs::remove_file(&link).expect("it was there");
        world.with(&[(1, draft(4, place.path()))]);
        let process = world.start(shell("echo"));
        assert!(world.end_of(process).ends_with("is a directory"));
        for wrong in ["none/f", "fifo/f", "", "new/"] {
            let path = place.path().join(wrong);
            let path = if wrong.is_empty() { Path::new("") } else { &path };
            for source in [draft(5, path), addition(6, path)] {
                world.with(&[(1, source)]);
                let process = world.start(shell("echo"));
                assert!(world.end_of(process).starts_with("Redirect: "), "{wrong}");
            }
        }
        assert_eq!(names(place.path()), ["fifo"]);
    }

    fn several_take_their_places_in_order_or_say_which_did(world) {
        let place = place();
        let (a, inner) = (place.path().join("a"), place.path().join("inner"));
        fs::create_dir(&inner).expect("a directory");
        let b = inner.join("b");
        for (first, second, ids) in [(&a, &b, [1, 2]), (&b, &a, [3, 4])] {
            let _ = fs::create_dir(&inner);
            write(world, draft(ids[0], first), "echo one");
            write(world, draft(ids[1], second), "echo two");
            fs::remove_dir_all(&inner).expect("it was there");
            let result = settle(world, &ids);
            drop_all(world, &ids);
            if first == &a {
                let wanted = format!(
                    "{}: no such file or directory; written already: {}", b.display(), a.display()
                );
                let refusal = Refusal { message: wanted, errno: Some("ENOENT".into()) };
                assert_eq!(result, Ok(Reply::Incomplete(refusal)));
                assert_eq!(read(&a), "one\n");
                fs::remove_file(&a).expect("it was there");
            } else {
                let wanted = format!("{}: no such file or directory", b.display());
                assert_eq!(result, Err(refused(wanted, "ENOENT")));
            }
            assert!(names(place.path()).is_empty());
        }
    }

    fn what_has_become_something_else_is_left_alone(world) {
        let place = place();
        let path = made(place.path().join("f"), "old");
        write(world, draft(1, &path), "echo new");
        fs::remove_file(&path).expect("it was there");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a fifo");
        assert!(settle(world, &[1]).is_err());
        drop_all(world, &[1]);
        assert_eq!(names(place.path()), ["f"]);
        assert!(!path.metadata().expect("a fifo").is_file());
    }

    fn additions_come_at_the_end_as_it_is_then(world) {
        let place = place();
        let path = made(place.path().join("f"), "old\n");
        write(world, addition(1, &path), "echo one; echo two");
        write(world, addition(2, &path), "echo three");
        fs::write(&path, "meanwhile\n").expect("a file");
        assert_eq!(settle(world, &[1, 2]), Ok(Reply::Truth(true)));
        assert_eq!(read(&path), "meanwhile\none\ntwo\nthree\n");
        world.umask = Some(0o077);
        let new = place.path().join("new");
        write(world, addition(3, &new), ":");
        assert_eq!(settle(world, &[3]), Ok(Reply::Truth(true)));
        assert_eq!((read(&new).as_str(), mode(&new)), ("", 0o600));
    }

    fn an_addition_that_does_not_fit_is_taken_back(world) {
        let place = place();
        let path = made(place.path().join("f"), "old\n");
        let new = place.path().join("new");
        write(world, addition(1, &path), "head -c 3000000 /dev/zero");
        write(world, addition(2, &new), "head -c 3000000 /dev/zero");
        write(world, draft(3, &place.path().join("g")), "echo g");
        ftsh_sys::ignore_file_size_limit();
        let limit = 1_000_000;
        nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_FSIZE, limit, limit)
            .expect("a limit");
        let wanted =
            |path: &Path| Err(refused(format!("{}: file too large", path.display()), "EFBIG"));
        assert_eq!(settle(world, &[1, 3]), wanted(&path));
        assert_eq!(settle(world, &[2, 3]), wanted(&new));
        assert_eq!((read(&path).as_str(), new.exists()), ("old\n", false));
        let Ok(Reply::Incomplete(refusal)) = settle(world, &[3, 1]) else { panic!("it can't be") };
        let text = refusal.message;
        assert!(text.contains("f: file too large; written already: "), "{text}");
        assert_eq!(refusal.errno.as_deref(), Some("EFBIG"));
        assert_eq!(read(&path), "old\n");
    }

    fn who_has_it_open_goes_on_writing_to_it(world) {
        let place = place();
        let path = made(place.path().join("f"), "old\n");
        world.with(&[(1, draft(1, &path)), (2, FdSource::Null)]);
        let process = world.start(shell("(while ! test -e go; do sleep 0.01; done; echo late) & echo soon"));
        world.directory.path = Some(Arc::new(text(place.path())));
        let _ = world.end_of(process);
        let process = world.start(shell("(while ! test -e go; do sleep 0.01; done; echo later) & echo soon"));
        assert_eq!(world.end_of(process), "exit 0");
        assert_eq!(settle(world, &[1]), Ok(Reply::Truth(true)));
        drop_all(world, &[1]);
        assert_eq!(read(&path), "soon\n");
        fs::write(place.path().join("go"), "").expect("a file");
        until("it doesn't go on", || read(&path) == "soon\nlater\n");
    }

    fn several_commands_write_to_one_draft(world) {
        let place = place();
        let path = place.path().join("f");
        let change = FdChange { descriptor: 1, source: draft(1, &path) };
        world.open(IoId(1), IoId::INHERITED, vec![change]);
        for word in ["one", "two"] {
            let process = world.start_from(IoId(1), program(&["echo", word]));
            assert_eq!(world.end_of(process), "exit 0");
            let process = world.start_from(IoId(1), Action::Print(format!("{word}\n").into()));
            assert_eq!(world.end_of(process), "exit 0");
        }
        world.driver.perform(Effect::CloseIo(IoId(1)));
        assert_eq!(settle(world, &[1]), Ok(Reply::Truth(true)));
        assert_eq!(read(&path), "one\none\ntwo\ntwo\n");
    }

    fn an_abandoned_settling_puts_all_in_place_or_nothing(world) {
        let place = place();
        for round in 0..100 {
            let paths = [1, 2, 3].map(|it| made(place.path().join(format!("f{it}")), "old"));
            let ids = [1, 2, 3].map(|it| 10 * round + it);
            for (id, path) in ids.iter().zip(&paths) {
                let change = FdChange { descriptor: 1, source: draft(*id, path) };
                world.open(IoId(1), IoId::INHERITED, vec![change]);
                let process = world.start_from(IoId(1), Action::Print("new".into()));
                assert_eq!(world.end_of(process), "exit 0");
                world.driver.perform(Effect::CloseIo(IoId(1)));
            }
            let operation = OperationId(world.id());
            let drafts = ids.map(StagedFileId).to_vec();
            world.driver.perform(Effect::Commit { operation, files: drafts });
            std::thread::sleep(Duration::from_micros(round * 10));
            world.driver.perform(Effect::Abandon(operation));
            drop_all(world, &ids);
            world.driver.tables.registry().clear(); // waits for those that are in the middle of it
            until("neither all nor nothing", || {
                let texts = paths.each_ref().map(|path| read(path));
                texts == ["old"; 3] || texts == ["new"; 3]
            });
            assert_eq!(names(place.path()), ["f1", "f2", "f3"]);
        }
    }

    fn a_scratch_directory_goes_with_all_in_it(world) {
        let Ok(Reply::Text(path)) = world.ask(Query::Scratch(ScratchId(1))) else { panic!("no path") };
        assert_eq!(world.ask(Query::Scratch(ScratchId(1))), Ok(Reply::Text(path.clone())));
        let other = world.ask(Query::Scratch(ScratchId(2)));
        assert_ne!(other, Ok(Reply::Text(path.clone())));
        let outside = place();
        let kept = made(outside.path().join("kept"), "");
        let path = PathBuf::from(path.to_string());
        assert_eq!((mode(&path), names(&path).len()), (0o700, 0));
        let script = "cd \"$1\" && mkdir -p a/b/c d && touch f a/f a/b/f d/f .hidden && ln -s \"$2\" link && ln -s \"$3\" d/link
            deep=. && for i in $(seq 300); do deep=$deep/0123456789; done && mkdir -p $deep && touch $deep/f
            mkfifo fifo && chmod 0 a/b/c && chmod 500 a/b a && chmod 0 d && chmod 0 .";
        let outside_text = outside.path().to_str().expect("a name");
        let words = [
            "sh", "-c", script, "sh", path.to_str().expect("a name"), outside_text,
            kept.to_str().expect("a name"),
        ];
        let process = world.start(program(&words));
        assert_eq!(world.end_of(process), "exit 0");
        world.driver.perform(Effect::DropScratch(ScratchId(1)));
        world.driver.perform(Effect::DropScratch(ScratchId(7)));
        until("it stays", || path.symlink_metadata().is_err());
        assert!(kept.exists());
        // The other directory is removed with the driver.
        let Ok(Reply::Text(other)) = other else { panic!("no path") };
        let other = PathBuf::from(other.to_string());
        made(other.join("f"), "");
        world.driver.tables.registry().close();
        assert!(!other.exists());
        assert!(world.ask(Query::Scratch(ScratchId(3))).is_err());
    }
}
