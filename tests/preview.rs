//! `--preview`: a run in a copy, whose changes are listed and dropped.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use nix::sys::signal::Signal;

use crate::atomic_in::can_cover;
use crate::support::Ftsh;
use crate::support::run::Running;

#[test]
fn changes_are_listed_and_dropped() {
    if !can_cover(false) {
        return;
    }
    let text = "echo out\n\
        sh -c 'echo x > d/new; rm d/old; mkdir d/sub; echo > d/sub/f'\n\
        echo more >> d/log\n\
        echo real > elsewhere\n\
        cd d; echo *\n\
        exit 3";
    let listed = "A d/log\nA d/new\nD d/old\nA d/sub\nA d/sub/f\n\
        ftsh: `d` is as before; what the run did elsewhere is done\n";
    let run = Ftsh::script(text).file("d/old", "old\n").options(["--preview", "d"]);
    let run = run.stdout("out\nlog new sub\n").stderr(listed).failure(3);
    assert_eq!(run.read("elsewhere"), "real\n");
    let left: Vec<_> = fs::read_dir(run.directory.path().join("d")).expect("a directory").collect();
    assert_eq!((left.len(), run.read("d/old").as_str()), (1, "old\n"));
    let names = fs::read_dir(run.directory.path()).expect("a directory").flatten();
    assert!(
        names.map(|it| it.file_name()).all(|name| !name.to_string_lossy().starts_with(".ftsh"))
    );
}

#[test]
fn a_signal_and_a_prefix_pass_through() {
    if !can_cover(false) {
        return;
    }
    let run = Ftsh::command("kill -TERM $$; sleep 60").options(["--preview", "."]).run();
    run.killed_by(Signal::SIGTERM).nothing_left();
    let run = Ftsh::command("echo begun; sleep 60").options(["--preview", "d"]);
    let run = run.file("d/old", "").start();
    run.until("a beginning", Running::has_output);
    run.signal(Signal::SIGTERM);
    run.wait().killed_by(Signal::SIGTERM).nothing_left();
    let words = ["--preview", "d", "try", "2", "times", "backoff", "none", "--"];
    let command = ["sh", "-c", "echo a >> d/a; wc -l < d/a; exit 4"];
    let run = Ftsh::new().file("d/old", "").args(words).args(command);
    run.stdout("1\n2\n").stderr("A d/a\n").failure(4);
}

/// The shell in the copy, and shells that the script starts, cover directories of the copy again.
#[test]
fn attempts_in_a_copy_have_copies_of_their_own() {
    for unprivileged in [false, true].into_iter().filter(|it| can_cover(*it)) {
        let text = "try 2 times backoff none atomic in d\n\
            echo $attempt >> d/log; test $attempt -eq 2\nend\n\
            cat d/log\n\
            ftsh -c 'try 1 time atomic in d/sub\nrm d/sub/f; mkdir d/sub/g\nend'\n\
            accept 1 ftsh -c 'try 1 time atomic in d\necho 3 >> d/log; exit 1\nend'\n\
            try 1 time atomic in d\n\
            accept 1 ftsh -c 'try 1 time atomic in d\ntrue\nend'\nend";
        let run = Ftsh::script(text).file("d/sub/f", "");
        let mut run = run.options(["--preview", "."]);
        run.unprivileged = unprivileged;
        if unprivileged {
            run = run.owned_by_nobody(&["d", "d/sub", "d/sub/f"]);
        }
        let run = run.stdout("2\n").stderr("A d/log\nD d/sub/f\nA d/sub/g\n");
        // The kernel stacks two overlays.
        let run = run.stderr("two outer attempts or copies cover").success();
        let names = fs::read_dir(run.directory.path()).expect("a directory").flatten();
        let names: Vec<_> = names.map(|it| it.file_name()).collect();
        assert_eq!(names.len(), 2, "{names:?}");
        assert!(run.directory.path().join("d/sub/f").exists());
        assert!(!run.directory.path().join("d/log").exists());
    }
}

#[test]
fn a_copy_with_its_layers_inside_has_no_attempts() {
    if !can_cover(true) {
        return;
    }
    let text = "try 1 time atomic in p/d\ntouch p/d/new\nend";
    let run = Ftsh::script(text).file("p/d/old", "").options(["--preview", "p/d"]).unprivileged();
    let run = run.owned_by_nobody(&["p/d"]);
    fs::set_permissions(run.path("p"), fs::Permissions::from_mode(0o555)).expect("permissions");
    let run = run.stderr("p/d` is a copy already (by `--preview`").failure(1);
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(run.directory.path().join("p"), mode).expect("permissions");
}

/// The copy is gone, so processes in it have nothing to work on.
#[test]
fn processes_end_with_the_copy() {
    if !can_cover(false) {
        return;
    }
    let text = "keep sh -c 'setsid sleep 1000 &'\nsh -c 'sleep 1000 & echo x > f'";
    let run = Ftsh::script(text).options(["--preview", "."]).stderr("A f\n").success();
    run.nothing_left();
    // Those that a caller started before are not of the script.
    let text = "sleep 1000 & exec ftsh --preview . -c 'touch f'";
    let run = Ftsh::new().through(["sh", "-c", text]).start().leave();
    assert_eq!(run.survivors.len(), 1, "{:?}", run.survivors);
    // A preview that is killed ends as well.
    let run =
        Ftsh::script("echo begun; sleep 1000; sh -c 'sleep 1000'").options(["--preview", "."]);
    let run = run.start();
    run.until("a beginning", Running::has_output);
    run.signal(Signal::SIGKILL);
    run.until_gone("the script");
}

#[test]
fn what_cannot_be_covered_is_refused() {
    let run = Ftsh::script("touch ran").options(["--preview", "missing"]);
    let run = run.refused(&["--preview: `missing`: no such file or directory"]);
    assert!(!run.directory.path().join("ran").exists());
}
