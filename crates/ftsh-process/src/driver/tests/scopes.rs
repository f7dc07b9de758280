//! Emptying of scopes.

#![allow(unsafe_code)]

use std::os::fd::AsRawFd;

use super::*;

const SCOPE: ScopeId = ScopeId(1);
const BELOW: ScopeId = ScopeId(2);
const OTHER: ScopeId = ScopeId(3);

fn open(world: &mut World) {
    for (scope, parent) in [(SCOPE, ScopeId::SCRIPT), (BELOW, SCOPE), (OTHER, ScopeId::SCRIPT)] {
        world.driver.perform(Effect::OpenScope { scope, parent, pass: None });
    }
}

each_alone! {
    fn an_empty_scope_is_emptied_at_once(world) {
        open(world);
        world.driver.perform(Effect::Terminate(SCOPE));
        world.emptied(SCOPE);
    }

    fn a_scope_and_those_below_it_end_and_others_live_on(world) {
        open(world);
        let pids = [SCOPE, BELOW, OTHER].map(|scope| {
            let process = world.start_in(scope, program(&["sleep", "1000"]));
            world.pid_of(process)
        });
        world.driver.perform(Effect::Terminate(SCOPE));
        world.emptied(SCOPE);
        assert_eq!(pids.map(lives), [false, false, true]);
        assert!(world.is_quiet());
    }

    fn a_command_that_ignores_sigterm_is_killed(world) {
        open(world);
        let buffer = BufferId(world.id());
        world.with(&[(1, FdSource::BufferCreate(buffer, "".into()))]);
        let process = world.start_in(SCOPE, shell("trap '' TERM; echo; while :; do sleep 1; done"));
        let pid = world.pid_of(process);
        until("the trap isn't set", || {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
            let line = status.lines().find(|line| line.starts_with("SigIgn:")).expect("a line");
            let ignored = u64::from_str_radix(&line[8..], 16).expect("a number");
            ignored & 1 << (libc::SIGTERM - 1) != 0
        });
        world.driver.perform(Effect::Terminate(SCOPE));
        assert!(world.is_quiet());
        assert!(lives(pid));
        world.driver.perform(Effect::Kill { scope: SCOPE, strong: true });
        world.emptied(SCOPE);
        assert!(!lives(pid));
    }

    fn a_stopped_command_ends_all_the_same(world) {
        open(world);
        let process = world.start_in(SCOPE, shell("kill -STOP $$; exit 1"));
        let pid = world.pid_of(process);
        until("it doesn't stop", || std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| stat.contains(") T ")));
        world.driver.perform(Effect::Terminate(SCOPE));
        world.emptied(SCOPE);
    }

    fn what_a_command_left_behind_ends_with_its_scope(world) {
        open(world);
        let (end, output) = {
            let buffer = BufferId(world.id());
            world.with(&[(1, FdSource::BufferCreate(buffer, "".into()))]);
            let process = world.start_in(SCOPE, shell("sleep 1000 & echo $!"));
            (world.end_of(process), world.content(buffer))
        };
        assert_eq!(end, "exit 0"); // although its output is still open
        let pid: i32 = output.to_string().trim().parse().expect("a number");
        assert!(lives(pid));
        world.driver.perform(Effect::Terminate(SCOPE));
        world.emptied(SCOPE);
        until("it lives on", || !lives(pid)); // init takes a moment to reap it
    }

    fn what_was_handed_over_lives_until_the_outer_scope_ends(world) {
        open(world);
        let buffer = BufferId(world.id());
        world.with(&[(1, FdSource::BufferCreate(buffer, "".into()))]);
        let process = world.start_in(BELOW, shell("sleep 1000 & echo $!"));
        world.end_of(process);
        let pid: i32 = world.content(buffer).to_string().trim().parse().expect("a number");
        world.driver.perform(Effect::HandOver { scope: BELOW, into: SCOPE });
        world.driver.perform(Effect::HandOver { scope: SCOPE, into: ScopeId::SCRIPT });
        world.driver.perform(Effect::Terminate(SCOPE));
        world.emptied(SCOPE);
        assert!(lives(pid));
        world.driver.perform(Effect::Terminate(ScopeId::SCRIPT));
        world.emptied(ScopeId::SCRIPT);
        until("it lives on", || !lives(pid));
    }

    #[ignore = "slow: `.ci/run` includes it"]
    fn daemons_end_with_their_scope_and_others_live_on(world) {
        open(world);
        for round in 0..20 {
            let (scope, other) = (ScopeId(100 + round), ScopeId(200 + round));
            world.driver.perform(Effect::OpenScope { scope, parent: ScopeId::SCRIPT, pass: None });
            world.driver.perform(Effect::OpenScope { scope: other, parent: ScopeId::SCRIPT, pass: None });
            let start = |world: &mut World, scope, mark: &str| {
                // Double-forked, with sessions of their own, with and without their parents.
                let script = "
                    (setsid sh -c 'sleep 1000; true' &)
                    (setsid nohup sleep 1000 > /dev/null 2>&1 &)
                    (exec sleep 1000) &
                    for i in 1 2 3 4 5; do setsid sleep 1000 & done
                    exit 1";
                world.with(&[(1, FdSource::Null), (2, FdSource::Null)]);
                let words = ["sh", "-c", script];
                let process = world.start_in(scope, with_variables(&words, &[("MARK", mark)]));
                assert_eq!(world.end_of(process), "exit 1");
            };
            let (mark, other_mark) = (mark(&format!("a{round}")), mark(&format!("b{round}")));
            start(world, scope, &mark);
            start(world, other, &other_mark);
            until("they don't start", || marked(&mark).len() == 9 && marked(&other_mark).len() == 9);
            world.driver.perform(Effect::Terminate(scope));
            world.emptied(scope);
            assert_eq!(stories(&marked(&mark)), "");
            // A shell that has started its last daemon may still be among them for a moment.
            until("the others are gone", || marked(&other_mark).len() == 9);
            world.driver.perform(Effect::Terminate(other));
            world.emptied(other);
            assert_eq!(stories(&marked(&other_mark)), "");
        }
    }

    fn daemons_that_ignore_sigterm_are_killed(world) {
        open(world);
        let script = "trap '' TERM; for i in $(seq 200); do setsid sleep 1000 & done; wait";
        world.with(&[(1, FdSource::Null), (2, FdSource::Null)]);
        world.start_in(SCOPE, with_variables(&["sh", "-c", script], &[("MARK", &mark("c"))]));
        until("they don't start", || marked(&mark("c")).len() == 201);
        world.driver.perform(Effect::Terminate(SCOPE));
        until("they end on SIGTERM", || marked(&mark("c")).len() == 201);
        let start = Instant::now();
        world.driver.perform(Effect::Kill { scope: SCOPE, strong: true });
        world.emptied(SCOPE);
        eprintln!("200 daemons: {:?}", start.elapsed());
        assert!(marked(&mark("c")).is_empty());
    }

    fn a_chain_of_a_hundred_ends(world) {
        open(world);
        let script = "if [ $N -gt 0 ]; then N=$((N-1)) setsid sh -c \"$SCRIPT\"; sleep 1000; fi";
        world.with(&[(1, FdSource::Null), (2, FdSource::Null)]);
        let mark_d = mark("d");
        let variables = [("MARK", mark_d.as_str()), ("N", "100"), ("SCRIPT", "trap '' TERM; if [ $N -gt 0 ]; then export N=$((N-1)); setsid sh -c \"$SCRIPT\"; fi; sleep 1000")];
        world.start_in(SCOPE, with_variables(&["sh", "-c", script], &variables));
        until("they don't start", || marked(&mark("d")).len() > 101);
        world.driver.perform(Effect::Terminate(SCOPE));
        world.driver.perform(Effect::Kill { scope: SCOPE, strong: true });
        world.emptied(SCOPE);
        assert!(marked(&mark("d")).is_empty());
    }

    fn a_fork_bomb_that_changes_sessions_ends(world) {
        for round in 0..3 {
            let scope = ScopeId(10 + round);
            world.driver.perform(Effect::OpenScope { scope, parent: ScopeId::SCRIPT, pass: None });
            let mark = mark(&format!("e{round}"));
            // Grows to 32 processes. After a moment, each starts its successor and ends, as long as
            // the test's directory exists.
            let place = tempfile::tempdir().expect("a directory");
            let place = place.path().to_str().expect("a name");
            let bomb = "trap '' TERM; [ -d $PLACE ] && if [ $D -gt 0 ]; then export D=$((D-1))
                setsid sh -c \"$BOMB\" & setsid sh -c \"$BOMB\" &
                else sleep 0.2; setsid sh -c \"$BOMB\" & fi";
            world.with(&[(0, FdSource::Null), (1, FdSource::Null), (2, FdSource::Null)]);
            let variables = [("MARK", mark.as_str()), ("BOMB", bomb), ("D", "5"), ("PLACE", place)];
            world.start_in(scope, with_variables(&["sh", "-c", bomb], &variables));
            until("it doesn't start", || marked(&mark).len() > 20);
            world.driver.perform(Effect::Terminate(scope));
            world.driver.perform(Effect::Kill { scope, strong: true });
            let start = Instant::now();
            world.emptied(scope);
            eprintln!("fork bomb: {:?}", start.elapsed());
            assert!(marked(&mark).is_empty());
        }
    }

    fn an_orphan_that_wiped_its_environment_ends_too(world) {
        world.driver.perform(Effect::OpenScope { scope: SCOPE, parent: ScopeId::SCRIPT, pass: None });
        let buffer = BufferId(world.id());
        world.with(&[(1, FdSource::BufferCreate(buffer, "".into())), (2, FdSource::Null)]);
        let script = "(env -i setsid sh -c 'echo $$; exec sleep 1000' &); sleep 0.1; exit 1";
        let process = world.start_in(SCOPE, shell(script));
        world.end_of(process);
        until("it doesn't start", || !world.content(buffer).is_empty());
        let pid: i32 = world.content(buffer).to_string().trim().parse().expect("a number");
        world.driver.perform(Effect::Terminate(SCOPE));
        world.emptied(SCOPE);
        if way() == "1" {
            let _ = ftsh_sys::kill(pid, libc::SIGKILL); // not found by the shell
        } else {
            assert!(!lives(pid));
        }
    }

    fn a_program_that_is_never_loaded_ends_with_its_scope(world) {
        open(world);
        let place = tempfile::tempdir().expect("a folder");
        let file = place.path().join("slow");
        std::fs::copy("/bin/true", &file).expect("a program");
        // Simulates a file system that hangs: opening the file blocks until the file lease is
        // released.
        let lease = std::fs::File::open(&file).expect("the program");
        // SAFETY: plain system calls; no other code handles the signal.
        let leased = unsafe {
            libc::signal(libc::SIGIO, libc::SIG_IGN);
            libc::fcntl(lease.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK)
        };
        if leased != 0 {
            return eprintln!("this file system has no leases");
        }
        let start = Instant::now();
        world.start_in(SCOPE, program(&[file.to_str().expect("text")]));
        let loading = || {
            let tasks = std::fs::read_dir("/proc/self/task").expect("tasks").flatten();
            let children = tasks.map(|task| std::fs::read_to_string(task.path().join("children")));
            children.flatten().any(|children| !children.trim().is_empty())
        };
        until("it doesn't begin to be loaded", loading);
        // Other commands are handled meanwhile.
        let process = world.start_in(OTHER, program(&["true"]));
        assert_eq!(world.end_of(process), "exit 0");
        world.driver.perform(Effect::Terminate(SCOPE));
        world.emptied(SCOPE);
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    }

    fn weak_mode_goes_on(world) {
        open(world);
        world.with(&[(1, FdSource::Null), (2, FdSource::Null)]);
        world.start_in(SCOPE, with_variables(&["sh", "-c", "trap '' TERM; sleep 1000; sleep 1000"], &[("MARK", &mark("f"))]));
        until("it doesn't start", || marked(&mark("f")).len() == 2);
        world.driver.perform(Effect::Terminate(SCOPE));
        world.driver.perform(Effect::Kill { scope: SCOPE, strong: false });
        world.emptied(SCOPE);
        until("it lives", || marked(&mark("f")).is_empty());
    }
}
