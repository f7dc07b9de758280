//! Starting programs, and how they end.

use ftsh_machine::time::Deadline;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use bstr::BString;

use super::*;
use ftsh_machine::effect::Access;
use ftsh_sys as sys;

/// The shell's own umask, and another one for a command.
const UMASKS: [Option<u16>; 2] = [None, Some(0o123)];

/// Creates an executable file. Another process writes the file: in this process, a child forked
/// meanwhile by another test could briefly hold it open for writing.
fn script(directory: &std::path::Path, name: &str, text: &[u8], mode: u32) {
    let (text_file, path) = (directory.join("text"), directory.join(name));
    std::fs::write(&text_file, text).expect("a file can be written");
    let copied = std::process::Command::new("cp").arg(text_file).arg(&path).status();
    assert!(copied.expect("cp").success(), "the file can be copied");
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("its mode can be set");
}

fn ignored_signals(status: &str) -> u64 {
    let mut fields = status.split_whitespace().skip_while(|&field| field != "SigIgn:");
    let all = u64::from_str_radix(fields.nth(1).expect("a field"), 16).expect("a number");
    all & 0x7fff_ffff // glibc ignores its internal signals 32 and 33 in children
}

each_alone! {
    fn a_command_ends_as_it_ends(world) {
        let ends = ["true", "exit 3", "kill -TERM $$", "kill -34 $$"].map(|script| {
            let process = world.start(shell(script));
            world.end_of(process)
        });
        assert_eq!(ends, ["exit 0", "exit 3", "signal 15", "signal 34"]);
    }

    fn a_program_is_found_along_the_path_of_its_own_environment(world) {
        let place = tempfile::tempdir().expect("a directory");
        let text = place.path().to_str().expect("a name").to_owned();
        script(place.path(), "prog", b"#!/bin/sh\necho found $0", 0o755);
        let missing = world.start(program(&["prog"]));
        assert_eq!(world.end_of(missing), "NotFound: prog: not found along PATH");
        let (end, output) = world.output(with_variables(&["prog"], &[("PATH", &text)]));
        assert_eq!((end.as_str(), output), ("exit 0", format!("found {text}/prog\n").into()));
        // Relative paths start at the task's directory.
        world.directory.path = Some(Arc::new(text.clone().into()));
        for (path, word) in [(".", "prog"), ("", "prog"), ("/", "./prog")] {
            let (end, _) = world.output(with_variables(&[word], &[("PATH", path)]));
            assert_eq!(end, "exit 0", "{path} {word}");
        }
    }

    fn a_program_that_moved_is_found_again(world) {
        let (one, two) = (tempfile::tempdir().expect("one"), tempfile::tempdir().expect("two"));
        let path = format!("{}:{}", one.path().display(), two.path().display());
        for place in [&one, &two] {
            script(place.path(), "prog", b"#!/bin/sh\n", 0o755);
            let process = world.start(with_variables(&["prog"], &[("PATH", &path)]));
            assert_eq!(world.end_of(process), "exit 0");
            std::fs::remove_file(place.path().join("prog")).expect("it was there");
        }
    }

    fn what_cannot_be_executed_says_why(world) {
        for umask in UMASKS {
            world.umask = umask;
            let place = tempfile::tempdir().expect("a directory");
            script(place.path(), "plain", b"true", 0o644);
            script(place.path(), "garbage", b"\0\x01\x02", 0o755);
            script(place.path(), "orphan", b"#!/no/such/interpreter -x", 0o755);
            world.directory.path = Some(Arc::new(place.path().to_str().expect("a name").into()));
            let mut end = |words: &[&str]| {
                let process = world.start(program(words));
                world.end_of(process)
            };
            assert_eq!(end(&["./plain"]), "NotExecutable: ./plain: permission denied; `chmod +x ./plain` makes it a program");
            assert_eq!(end(&["/"]), "NotExecutable: /: is a directory");
            assert_eq!(end(&["./none"]), "NotFound: ./none: not found");
            assert_eq!(end(&[""]), "NotFound: the command's name is empty");
            assert_eq!(end(&["./garbage"]), "NotExecutable: ./garbage: not a program for this machine");
            assert_eq!(
                end(&["./orphan"]),
                "NotExecutable: ./orphan: its interpreter /no/such/interpreter does not exist"
            );
            assert_eq!(end(&["true", "a\0b"]), "System: a NUL byte cannot be passed to a program");
            let long = "x".repeat(3 << 20);
            assert_eq!(end(&["true", &long]), "System: true: too many arguments, or too long");
            world.directory.path = Some(Arc::new("/no/such/place".into()));
            let process = world.start(program(&["true"]));
            assert_eq!(world.end_of(process), "System: true: the directory /no/such/place no longer exists");
            world.directory.path = None;
        }
    }

    fn a_script_without_a_first_line_is_run_by_sh(world) {
        for umask in UMASKS {
            world.umask = umask;
            let place = tempfile::tempdir().expect("a directory");
            script(place.path(), "prog", b"echo \"$1\"", 0o755);
            let path = place.path().join("prog");
            let (end, output) = world.output(program(&[path.to_str().expect("a name"), "a b"]));
            assert_eq!((end.as_str(), output), ("exit 0", "a b\n".into()));
        }
    }

    fn a_command_sees_its_own_environment(world) {
        world.deadline = Deadline::at(Time::after(Duration::from_millis(1500)));
        let words = ["sh", "-c", "echo $A $B; echo $FTSH_DEADLINE"];
        let (_, output) = world.output(with_variables(&words, &[("A", "1"), ("A", "2")]));
        let text = output.to_string();
        let (first, deadline) = text.split_once('\n').expect("two lines");
        assert_eq!(first, "2");
        let (deadline, _) = deadline.split_once('@').expect("times on two clocks");
        let deadline: f64 = deadline.parse().expect("a number");
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = now.expect("after 1970").as_secs_f64();
        assert!((deadline - now).abs() < 2.0, "{deadline} {now}");
    }

    fn a_command_starts_with_usual_signals_in_a_group_of_its_own(world) {
        for umask in UMASKS {
            world.umask = umask;
            let script = "grep -E '^Sig(Blk|Ign)' /proc/self/status; ps -o pgid= -p $$; echo $$";
            let (_, output) = world.output(shell(script));
            let text = output.to_string();
            let fields: Vec<&str> = text.split_whitespace().collect();
            assert_eq!(fields[..2], ["SigBlk:", "0000000000000000"]);
            // Only signals ignored at the shell's start; the shell itself ignores these two.
            let ours = [libc::SIGPIPE, libc::SIGXFSZ];
            let mask = ours.iter().fold(0, |mask, signal| mask | 1 << (signal - 1));
            let ignored = ignored_signals(&text);
            let own = ignored_signals(&std::fs::read_to_string("/proc/self/status").expect("a file"));
            assert_eq!(ignored & !mask, own & !mask);
            for signal in ours {
                let inherits = ignored & 1 << (signal - 1) != 0;
                assert_eq!(inherits, sys::was_ignored(signal));
            }
            assert!(!sys::was_ignored(libc::SIGPIPE));
            assert_eq!(fields[4], fields[5]);
        }
    }

    fn a_command_inherits_nothing_of_ours(world) {
        for umask in UMASKS {
            world.umask = umask;
            let (_, output) = world.output(program(&["ls", "/proc/self/fd"]));
            let ours = |line: &str| !sys::is_passed_on(line.parse().expect("a number"));
            // One of the descriptors is the directory that `ls` reads.
            assert!(output.to_string().lines().filter(|line| ours(line)).count() <= 1, "{output}");
        }
    }

    fn a_command_has_the_umask_that_it_is_given(world) {
        let place = tempfile::tempdir().expect("a directory");
        let own = crate::system::umask();
        for (umask, seen) in [(None, own), (Some(0), 0), (Some(0o077), 0o077), (Some(own), own)] {
            world.umask = umask;
            let (end, output) = world.output(shell("umask"));
            assert_eq!((end.as_str(), output), ("exit 0", format!("{seen:04o}\n").into()));
            let path = place.path().join(format!("{umask:?}"));
            for access in [Access::Write, Access::Append] {
                let name: BString = path.to_str().expect("a name").into();
                world.with(&[(1, FdSource::File { path: name, access })]);
                let process = world.start(Action::Print("x".into()));
                assert_eq!(world.end_of(process), "exit 0");
                let mode = path.metadata().expect("a file").permissions().mode();
                assert_eq!(mode & 0o777, u32::from(0o666 & !seen));
                assert_eq!(crate::system::umask(), own);
            }
            // Its permissions stay, whichever process writes to the file.
            world.umask = Some(0);
            let process = world.start(Action::Print("x".into()));
            assert_eq!(world.end_of(process), "exit 0");
            let mode = path.metadata().expect("a file").permissions().mode();
            assert_eq!(mode & 0o777, u32::from(0o666 & !seen));
            world.with(&[]);
        }
    }

    fn a_status_that_is_lost_is_no_signal(world) {
        let process = world.start(program(&["sleep", "1000"]));
        let pid = world.pid_of(process);
        let _ = sys::kill(pid, libc::SIGTERM);
        until("it doesn't end", || !matches!(sys::wait_for(pid, false), Ok(None)));
        assert_eq!(world.end_of(process), "lost");
    }

    fn commands_that_workers_start_end_as_they_end(world) {
        let null = FdSource::File { path: "/dev/null".into(), access: Access::Write };
        world.with(&[(1, null)]);
        for round in 0..10 {
            // Orphans come and go meanwhile, and the driver searches for them.
            let parent = ScopeId::SCRIPT;
            world.start(shell("(sleep 0.001; true) & (true &) ; exit 0"));
            let start = |code: i32| {
                let process = world.start(shell(&format!("exit {code}")));
                let scope = ScopeId(1000 * (round + 1) + code as u64);
                world.driver.perform(Effect::OpenScope { scope, parent, pass: None });
                world.driver.perform(Effect::Terminate(scope));
                process
            };
            let processes: Vec<ProcessId> = (0..40).map(start).collect();
            for (code, process) in processes.into_iter().enumerate() {
                assert_eq!(world.end_of(process), format!("exit {code}"));
            }
        }
    }

    #[ignore = "slow: `.ci/run` includes it"]
    fn a_thousand_commands_run_at_once(world) {
        let start = Instant::now();
        let processes: Vec<ProcessId> =
            (0..1000).map(|_| world.start(program(&["sleep", "0.2"]))).collect();
        for process in processes {
            assert_eq!(world.end_of(process), "exit 0");
        }
        assert!(start.elapsed() < LONG);
    }

    fn a_signal_to_the_shell_is_reported_each_time(world) {
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGINT] {
            // Sent by another process: a signal from this process counts as meant for the prompt's
            // thread.
            let kill = world.start(shell(&format!("kill -{signal} $PPID")));
            world.expect("interruption", |event| {
                (*event == Event::Interrupted(signal)).then_some(())
            });
            assert_eq!(world.end_of(kill), "exit 0");
        }
    }

    fn nothing_is_started_once_that_is_forbidden(world) {
        sys::forbid_starts();
        let process = world.start(program(&["true"]));
        assert_eq!(world.end_of(process), "System: true: operation canceled");
        assert!(!sys::is_starting());
    }

    fn waiting_ends_at_the_moment_given(world) {
        let until = world.driver.now() + Duration::from_micros(1500);
        assert_eq!(world.driver.wait(until), None);
        assert!(world.driver.now() >= until);
        assert_eq!(world.driver.wait(Time::START), None);
    }

    fn an_exec_that_fails_changes_nothing(world) {
        let process = ProcessId(world.id());
        let buffer = BufferId(world.id());
        let text = BString::from("kept");
        world.with(&[(1, FdSource::BufferCreate(buffer, text)), (0, FdSource::Null)]);
        world.directory.path = Some(Arc::new("/".into()));
        let run = world.request(process, ScopeId::SCRIPT, program(&["no-such-program"]));
        world.driver.perform(Effect::Exec(Box::new(run)));
        assert_eq!(world.end_of(process), "NotFound: no-such-program: not found along PATH");
        world.with(&[]);
        world.directory.path = None;
        let before = std::env::current_dir().expect("a directory");
        let (_, output) = world.output(program(&["pwd", "-P"]));
        assert_eq!(output, format!("{}\n", before.display()));
    }

    #[ignore = "a measurement"]
    fn what_spawning_costs_by_hand(world) {
        // Alternately, and the best of many, since other work on the machine disturbs the
        // measurement.
        const COUNT: u32 = 200;
        let mut best = [Duration::MAX; 2];
        let action = program(&["/bin/true"]);
        for round in 0..40 {
            let start = Instant::now();
            for _ in 0..COUNT {
                if round % 2 == 0 {
                    let process = world.start(action.clone());
                    world.end_of(process);
                    world.events.clear();
                } else {
                    let status = process::Command::new("/bin/true").status();
                    assert!(status.is_ok_and(|status| status.success()));
                }
            }
            let best = &mut best[round % 2];
            *best = start.elapsed().div_f64(COUNT.into()).min(*best);
        }
        eprintln!("ours {:?}, plain {:?}", best[0], best[1]);
    }
}
