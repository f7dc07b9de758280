//! `--storm`: the copies of its runs, models in them, and the end of the storm.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::atomic_in::can_cover;
use crate::support::Ftsh;

/// Returns the names in a directory.
fn names(path: &Path) -> BTreeSet<OsString> {
    std::fs::read_dir(path).expect("a directory").flatten().map(|it| it.file_name()).collect()
}

/// True if the script of a new storm with this directory for temporary files has printed `begun`.
fn has_begun(temporary: &Path, before: &BTreeSet<OsString>) -> bool {
    let names = names(temporary);
    let mut outputs = names.difference(before).map(|it| temporary.join(it).join("output"));
    outputs.any(|it| std::fs::read(it).is_ok_and(|text| text == b"begun\n"))
}

#[test]
fn a_signal_ends_a_storm_and_leaves_nothing() {
    if !can_cover(false) {
        return;
    }
    let temporary = tempfile::tempdir().expect("a directory");
    let text = "sh -c 'echo > d/f; echo begun; sleep 1000'";
    let run = Ftsh::script(text).file("d/old", "").options(["--storm", "--in", "d"]);
    let run = run.env("TMPDIR", temporary.path()).start();
    run.until("a beginning", |_| has_begun(temporary.path(), &BTreeSet::new()));
    run.signal(Signal::SIGTERM);
    let run = run.wait();
    run.killed_by(Signal::SIGTERM).nothing_left();
    assert_eq!(names(run.directory.path()), ["d", "script.ftsh"].map(Into::into).into());
    assert_eq!(names(temporary.path()), BTreeSet::new());
    assert_eq!(std::fs::read_dir(run.directory.path().join("d")).expect("a directory").count(), 1);
}

/// The next storm removes the directory of a storm that was killed, and leaves that of one that
/// lives. The run of a killed storm ends.
#[test]
fn storms_that_were_killed_leave_nothing() {
    if !can_cover(false) {
        return;
    }
    let temporary = tempfile::tempdir().expect("a directory");
    let storm = |text| {
        let run = Ftsh::script(text).env("TMPDIR", temporary.path()).options(["--storm"]);
        run.limit(Duration::from_secs(100))
    };
    let begin = || {
        let before = names(temporary.path());
        let run = storm("sh -c 'echo begun; exec sleep 1000'").start();
        run.until("a beginning", |_| has_begun(temporary.path(), &before));
        run
    };
    let killed = begin();
    killed.signal(Signal::SIGKILL);
    killed.until_gone("the run");
    assert_eq!(names(temporary.path()).len(), 1);
    // Directories and files of other owners stay.
    let other = temporary.path().join("ftsh-storm-other");
    std::fs::create_dir(&other).expect("a directory");
    let living = begin();
    let works = names(temporary.path());
    assert_eq!(works.len(), 2, "{works:?}");
    storm("touch f").success();
    assert_eq!(names(temporary.path()), works);
    living.signal(Signal::SIGTERM);
    living.wait().killed_by(Signal::SIGTERM).nothing_left();
    assert_eq!(names(temporary.path()), ["ftsh-storm-other".into()].into());
}

/// The current directory is a copy whatever `--in` names, and the rest is read-only.
#[test]
fn nothing_changes_outside_of_the_copies() {
    for unprivileged in [false, true].into_iter().filter(|it| can_cover(*it)) {
        let storm = |text: &str| {
            let cd = "cd work; exec \"$0\" \"$@\"";
            let run =
                Ftsh::script(text).file("work/log", "").file("in/old", "").file("out/log", "");
            let run = run.file("work/script.ftsh", text).through(["/bin/sh", "-c", cd]);
            let mut run = run.owned_by_nobody(&[".", "work", "work/log", "in", "out", "out/log"]);
            run.unprivileged = unprivileged;
            run.options(["--storm", "--in", "../in"]).run()
        };
        for text in [
            "cd ..; echo x >> out/log",
            "cd ../out\ntry 1 time atomic\necho x >> log\nend",
            "sh -c 'echo x >> ../out/log'",
            "try 1 time; rm ../out/log; catch; exit 1; end",
            "cp log /tmp/log-of-a-storm",
        ] {
            let run = storm(text);
            run.expect_code(2);
            run.expect_stderr("fails without any fault");
            run.expect_stderr("`--in DIR` copies DIR as well");
            assert_eq!(run.read("out/log"), "");
            assert!(!Path::new("/tmp/log-of-a-storm").exists());
        }
        // Devices, temporary files, the copies and attempts in them.
        let text = "echo x > /dev/null; sh -c 'echo x > $(mktemp)'\n\
            try 1 time atomic; touch $scratch/x; end\n\
            sh -c 'echo x > $TMPDIR/f; ls $TMPDIR | wc -l'\n\
            try 1 time atomic in .\necho x > new\nend\n\
            touch ../in/new";
        let run = storm(text);
        run.expect_code(0);
        assert_eq!(
            (run.read("work/log"), names(&run.directory.path().join("in")).len()),
            (String::new(), 1)
        );
        let run = storm("echo x >> log");
        run.expect_code(1);
        assert_eq!(run.read("work/log"), "");
    }
}

/// Wrappers, shells and other scripts find the models as well, and other calls are noted.
#[test]
fn models_reach_commands_of_commands() {
    if !can_cover(false) {
        return;
    }
    let pay = "#!/bin/sh\necho real >> paid\n";
    let text = "pay 0; env pay 1; nice pay 2; timeout 60 pay 3; sh -c 'pay 4'\n\
        ftsh -c 'pay 5'; ftsh try 1 time -- pay 6; echo 7 | xargs pay\n\
        ./script; PATH=/usr/bin:/bin env pay 8; env pay 9 -> answer\n\
        if $answer != done; exit 5; end\n\
        try 3 times backoff none; env due; end; due";
    let storm = |text: &str, models: &[&str]| {
        let run = Ftsh::script(text).program("bin/pay", pay).program("bin/curl", pay);
        let run = run.program("script", "#!/bin/sh\nset -e\npay 10\nexec pay 11\n");
        let path = format!("{}:/usr/bin:/bin", run.path("bin").display());
        let path = format!(
            "{}:{path}",
            Path::new(crate::support::FTSH).parent().expect("a folder").display()
        );
        let models = models.iter().flat_map(|model| ["--command", model]);
        let run = run.env("PATH", path).options(["--storm"]).options(models);
        run.limit(Duration::from_secs(100)).run()
    };
    // The state of a model is that of a run, whoever calls it.
    let due = "due fails 2 times exits 3";
    let text_of_due = "accept 3 env due; accept 3 due; env due; due";
    let run = storm(text_of_due, &[due]);
    run.expect_code(0);
    let run = storm(text, &["pay takes 1 hour prints \"done\"", "due fails 1 time exits 3"]);
    run.expect_code(0);
    assert!(!run.text().contains("ran for real"), "{}", run.text());
    let run = storm("sh -c ./bin/pay", &["pay takes 1 s"]);
    assert!(run.text().contains("ran for real: pay;"), "{}", run.story());
    for text in [
        "env curl",
        "timeout 60 curl",
        "sh -c 'curl'",
        "sh -c ./bin/curl",
        "echo 1 | xargs curl",
        "ftsh try 2 times -- curl",
        "ftsh -c 'curl'",
    ] {
        let run = storm(text, &[]);
        assert!(run.text().contains("ran for real: curl;"), "{text}: {}", run.story());
    }
}

#[test]
fn a_report_that_cannot_be_printed_is_no_result() {
    if !can_cover(false) {
        return;
    }
    for text in ["touch f", "mkdir d"] {
        let script = format!("sh -c 'ftsh --storm -c \"{text}\" > /dev/full; echo $?'");
        Ftsh::command(&script).stderr("can't write to standard output").stdout("2\n").success();
    }
}
