//! `atomic in`: directories that change completely or not at all.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use ftsh_layers::{Attempt, CoverError, Directories};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Gid, Uid, chown};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::resuming::{self, Victim, again, over, recorded};
use crate::support::run::Finished;
use crate::support::skipped::skipped;
use crate::support::{Ftsh, rounds};

/// User of unprivileged runs.
const NOBODY: u32 = 65534;

/// Returns true if directories can be covered. Otherwise the test is reported as skipped.
pub(crate) fn can_cover(unprivileged: bool) -> bool {
    let place = tempfile::tempdir().expect("a directory");
    let covered = Directories::find(&[place.path()]).and_then(|it| Attempt::begin(&it, "probe"));
    let limit = fs::read_to_string("/proc/sys/user/max_user_namespaces").unwrap_or_default();
    match covered {
        Err(CoverError::Namespaces { .. } | CoverError::FileSystem { .. }) => {
            skipped("overlays");
            false
        }
        _ if unprivileged && limit.trim() == "0" => {
            skipped("namespaces for users who are not root");
            false
        }
        _ => true,
    }
}

/// Creates a run of a script with a directory `d` that contains the file `old`.
fn script(text: &str) -> Ftsh {
    Ftsh::script(text).file("d/old", "old\n")
}

/// Returns names and contents of the files below the directory of a run, sorted, without the script.
fn tree(run: &Finished) -> Vec<(String, String)> {
    let root = run.directory.path();
    let (mut found, mut left) = (Vec::new(), vec![root.to_owned()]);
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).expect("a directory").flatten() {
            let path = entry.path();
            let name = path.strip_prefix(root).expect("below").display().to_string();
            if path.is_dir() {
                left.push(path);
            } else if name != "script.ftsh" {
                found.push((name, fs::read_to_string(&path).unwrap_or_default()));
            }
        }
    }
    found.sort();
    found
}

fn expect_tree(run: &Finished, wanted: &[(&str, &str)]) {
    let found = tree(run);
    let found: Vec<_> = found.iter().map(|(name, text)| (&**name, &**text)).collect();
    assert_eq!(found, wanted, "{}", run.story());
}

#[test]
fn branches_take_and_give_files_in_a_view() {
    if !can_cover(false) {
        return;
    }
    let text = |wanted: &str| {
        format!(
            "try backoff none atomic in d\n\
             \tforall x in a takes d/old gives \"d/$x\" d/{wanted}/y\n\
             \t\tcp d/old d/$x\n\t\tmkdir d/sub\n\t\techo y > d/sub/y\n\
             \tend\nend"
        )
    };
    let run = script(&text("sub")).success();
    expect_tree(&run, &[("d/a", "old\n"), ("d/old", "old\n"), ("d/sub/y", "y\n")]);
    let run = script(&text("missing")).failure(1);
    assert!(run.errors().contains("the branch cannot give `d/missing/y`"), "{}", run.errors());
    expect_tree(&run, &[("d/old", "old\n")]);
}

#[test]
fn a_failed_attempt_leaves_nothing_and_a_good_one_everything() {
    let text = "cd d\n\
        try 3 times backoff none atomic in .\n\
        \tsh -c 'echo \"$1\" >> log; rm -f old; mkdir new; echo x > new/f; wc -l < log' sh $attempt\n\
        \tif $attempt < 3; failure \"attempt $attempt\"; end\n\
        end";
    for unprivileged in [false, true] {
        if !can_cover(unprivileged) {
            return;
        }
        let mut run = script(text);
        if unprivileged && Uid::effective().is_root() {
            for name in ["d", "d/old"] {
                chown(&run.path(name), Some(Uid::from_raw(NOBODY)), None).expect("another owner");
            }
            run = run.unprivileged();
        }
        let run = run.stdout("1\n").success();
        expect_tree(&run, &[("d/log", "3\n"), ("d/new/f", "x\n")]);
    }
}

#[test]
fn the_shell_and_its_commands_see_the_same_files() {
    if !can_cover(false) {
        return;
    }
    // Each line is an operation of the shell on files that only the attempt has.
    let text = "try atomic in d\n\
        sh -c 'cd d; echo made > made; mkdir sub; ln -s made link; echo \"echo sourced\" > lib; rm old'\n\
        cat < d/made\n\
        echo written > d/written; cat d/written\n\
        echo more >> d/made; cat d/made\n\
        if .isfile. d/made && .isdir. d/sub && .islink. d/link && .isr. d/made; echo tests; end\n\
        if .exists. d/old; echo wrong; end\n\
        echo d/*\n\
        for f in files(\"d/**\"); echo $f; end\n\
        source d/lib\n\
        cd d; pwd | sed 's/.*\\///'; cat made -> v; echo $v\n\
        cd sub; pwd -P | sed 's/.*\\/d/d/'; cd ..\n\
        echo piped | cat > piped; cat piped\n\
        forall x in a b at most 1; echo $x > $x; end\n\
        echo *\n\
        end\n\
        pwd | sed 's/.*\\///'";
    let wanted = "made\nwritten\nmade\nmore\ntests\nd/lib d/link d/made d/sub d/written\n\
        d/lib\nd/link\nd/made\nd/sub\nd/written\nsourced\nd\nmade more\nd/sub\npiped\n\
        a b lib link made piped sub written\nd\n";
    let run = script(text).stdout(wanted).success();
    assert_eq!(run.read("d/made"), "made\nmore\n", "{}", run.story());
}

#[test]
fn programs_are_found_in_the_view() {
    if !can_cover(false) {
        return;
    }
    let text = "pwd -> here; export PATH=\"$here/d:$PATH\"\n\
        try atomic in d\n\
        \tsh -c 'printf \"#!/bin/sh\\necho ran\\n\" > d/tool; chmod +x d/tool'\n\
        \ttool; d/tool; cd d; ./tool\n\
        end\n\
        tool";
    script(text).stdout("ran\nran\nran\nran\n").success();
}

#[test]
fn output_of_the_try_takes_its_place_after_the_files() {
    if !can_cover(false) {
        return;
    }
    let text = "try atomic in d\n\
        sh -c 'echo a > d/a; test ! -e d/report'\n\
        echo good\n\
        end > d/report";
    let run = script(text).success();
    expect_tree(&run, &[("d/a", "a\n"), ("d/old", "old\n"), ("d/report", "good\n")]);
}

#[test]
fn a_directory_stays_if_a_file_outside_cannot_take_its_place() {
    if !can_cover(false) {
        return;
    }
    let text = "try atomic in d\n\
        sh -c 'echo a > d/a; mkdir report; touch report/other'\n\
        end > report";
    let run = script(text).failure(1);
    assert!(run.errors().contains("no longer a regular file"), "{}", run.story());
    expect_tree(&run, &[("d/old", "old\n"), ("report/other", "")]);
}

#[test]
fn each_branch_has_its_own_view() {
    if !can_cover(false) {
        return;
    }
    let text = "forall x in a b c keep going atomic in d\n\
        sh -c 'echo $0 > d/$0; ls d | wc -l' $x\n\
        if $x .eq. b; failure; end\n\
        end";
    let run = script(text).failure(1);
    expect_tree(&run, &[("d/a", "a\n"), ("d/c", "c\n"), ("d/old", "old\n")]);
}

#[test]
fn only_the_winner_of_a_hedge_changes_files() {
    if !can_cover(false) {
        return;
    }
    let text = "forany x in slow fast in order hedge after 100 ms atomic in d\n\
        sh -c 'echo $0 > d/$0' $x\n\
        if $x .eq. slow; sleep 1 minute; end\n\
        end";
    let run = script(text).success();
    expect_tree(&run, &[("d/fast", "fast\n"), ("d/old", "old\n")]);
}

#[test]
fn a_change_by_another_process_is_a_conflict() {
    if !can_cover(false) {
        return;
    }
    // The second branch has begun before the first one takes its place.
    let text = "cd d\n\
        forall x in 1 2 keep going\n\
        try 3 times backoff none atomic in .\n\
        \tsh -c 'touch ../begun-$0-$1; echo $0 >> old' $x $attempt\n\
        \twhile .not. (.exists. ../begun-1-1 && .exists. ../begun-2-1); sleep 10 ms; end\n\
        catch\n\
        \techo $error_kind\n\
        end\n\
        end";
    let run = script(text).stdout("").success();
    let old = run.read("d/old");
    assert!(old == "old\n1\n2\n" || old == "old\n2\n1\n", "{old}\n{}", run.story());
    let attempts = fs::read_dir(run.directory.path()).expect("a directory").flatten();
    let begun = attempts.filter(|it| it.file_name().to_string_lossy().starts_with("begun"));
    assert!(begun.count() > 2, "{}", run.story());
    assert!(run.errors().contains("was changed by another process meanwhile"), "{}", run.story());
}

#[test]
fn a_limit_leaves_nothing_of_an_attempt() {
    if !can_cover(false) {
        return;
    }
    let text = "try 2 times each 200 ms backoff none atomic in d\n\
        sh -c 'echo a > d/a; sleep 60'\n\
        end";
    let run = script(text).failure(124);
    run.nothing_left();
    expect_tree(&run, &[("d/old", "old\n")]);
}

#[test]
fn a_limit_before_the_first_file_discards_the_attempt() {
    if !can_cover(false) {
        return;
    }
    // Another process holds the lock on the directory until the limit has passed.
    let text = "sh -c 'flock d sh -c \"touch held; until test -e caught; do sleep 0.01; done\" &'\n\
        while .not. .exists. held; sleep 10 ms; end\n\
        try for 500 ms atomic in d\n\
        sh -c 'echo new > d/old; echo new > d/new'\n\
        catch\n\
        echo $error_kind\n\
        touch caught\n\
        end";
    let run = script(text).stdout("timeout\n").success();
    expect_tree(&run, &[("caught", ""), ("d/old", "old\n"), ("held", "")]);
}

#[test]
fn an_unfinished_commit_is_logged() {
    if !can_cover(false) {
        return;
    }
    let run = script("try atomic in d; true; end").options(["-l", "5"]);
    let layers = run.path(".ftsh-0123456789abcdef-0");
    fs::create_dir(&layers).expect("a directory");
    fs::set_permissions(&layers, Permissions::from_mode(0o700)).expect("permissions");
    std::os::unix::fs::symlink(run.path("d"), layers.join("lower")).expect("a link");
    fs::write(layers.join("note"), "of another version").expect("a note");
    let run = run.success();
    let wanted = "is still unfinished: the note is of another version of ftsh";
    assert!(run.errors().contains(wanted), "{}", run.story());
}

#[test]
fn what_a_good_attempt_leaves_running_ends_before_the_commit() {
    if !can_cover(false) {
        return;
    }
    let text = "try atomic in d\n\
        \tsh d/start\n\
        end";
    let start = "(trap 'echo ended > d/end; exit' TERM; echo up > d/up; while :; do sleep 0.01; done) \
        < /dev/null > /dev/null 2>&1 &\n\
        while ! test -e d/up; do sleep 0.01; done\n";
    let run = script(text).file("d/start", start).success();
    run.nothing_left();
    let wanted = [("d/end", "ended\n"), ("d/old", "old\n"), ("d/start", start), ("d/up", "up\n")];
    expect_tree(&run, &wanted);
}

#[test]
fn what_cannot_be_covered_is_refused_before_the_first_attempt() {
    if !can_cover(false) {
        return;
    }
    let refused = [
        ("try 3 times atomic in missing\necho a\nend", "`missing`: no such file or directory"),
        ("try 3 times atomic in /\necho a\nend", "`/` cannot be covered as a whole"),
        (
            "mkdir d/sub\ntry atomic in d/sub\ntry 3 times atomic in d\necho a\nend\nend",
            "has a file system mounted below",
        ),
        ("function f\nkeep true\nend\ntry atomic in d\nf\nend", "`keep` is not possible"),
        ("list none in\ntry atomic in ${none[@]}\necho a\nend", "has no directory"),
    ];
    for (text, message) in refused {
        let run = script(text).stdout("").stderr(message).failure(1);
        expect_tree(&run, &[("d/old", "old\n")]);
    }
}

#[test]
fn a_set_uid_program_without_rights_is_reported() {
    if !can_cover(true) {
        return;
    }
    let run = script("./rooted\ntry 1 time atomic in d\n./rooted\nend").file("rooted", "");
    let program = run.path("rooted");
    fs::copy("/bin/true", &program).expect("a copy");
    fs::set_permissions(&program, Permissions::from_mode(0o4755)).expect("permissions");
    let run = if Uid::effective().is_root() {
        chown(&run.path("d"), Some(Uid::from_raw(NOBODY)), None).expect("another owner");
        run.unprivileged()
    } else {
        run
    };
    let run = run.success();
    assert_eq!(run.errors().matches("is a set-uid program").count(), 1, "{}", run.story());
    run.expect_stderr(":3 `./rooted` is a set-uid program");
}

#[test]
fn inner_attempts_change_files_of_the_outer_one() {
    let text = "try 2 times backoff none atomic in d\n\
        sh -c 'echo $0 > d/outer; rm -f d/old' $attempt\n\
        try 2 times backoff none atomic in d\n\
        sh -c 'cat d/outer >> d/inner'\n\
        if $attempt == 1; failure inner; end\n\
        end\n\
        forall x in a b at most 2 atomic in d/sub\n\
        sh -c 'echo $0 > d/sub/$0' $x\n\
        echo shell > d/sub/shell.$x\n\
        end > d/output\n\
        ls d/sub\n\
        if $attempt == 1; failure outer; end\n\
        end";
    for unprivileged in [false, true] {
        if !can_cover(unprivileged) {
            return;
        }
        let mut run = script(text).file("d/sub/old", "");
        if unprivileged && Uid::effective().is_root() {
            for name in ["d", "d/old", "d/sub", "d/sub/old"] {
                let nobody = Uid::from_raw(NOBODY);
                let group = Gid::from_raw(NOBODY);
                chown(&run.path(name), Some(nobody), Some(group)).expect("another owner");
            }
            run = run.unprivileged();
        }
        let run = run.stdout("a\nb\nold\nshell.a\nshell.b\n").success();
        expect_tree(
            &run,
            &[
                ("d/inner", "2\n"),
                ("d/outer", "2\n"),
                ("d/output", ""),
                ("d/sub/a", "a\n"),
                ("d/sub/b", "b\n"),
                ("d/sub/old", ""),
                ("d/sub/shell.a", "shell\n"),
                ("d/sub/shell.b", "shell\n"),
            ],
        );
    }
}

#[test]
fn a_command_line_has_directories_too() {
    if !can_cover(false) {
        return;
    }
    let head = ["try", "2", "times", "backoff", "none", "atomic", "in", "d e", "--"];
    let command = ["sh", "-c", "echo x >> 'd e/f'; cat 'd e/f'; exit 3"];
    let run = Ftsh::new().file("d e/old", "").args(head).args(command).failure(3);
    expect_tree(&run, &[("d e/old", "")]);
}

/// Kills the interpreter, the supervisor or both at random moments; a survivor or the next shell
/// cleans up.
#[test]
fn a_kill_leaves_all_files_old_or_new() {
    if !can_cover(false) {
        return;
    }
    rounds::rounds(&["0"], |round| {
        let mut random = ChaCha8Rng::seed_from_u64(round.number as u64);
        let new = (0..KILLS).filter(|number| killed(&mut random, *number)).count();
        eprintln!("{KILLS} kills: all files are new {new} times");
    });
}

/// Kills in each round.
const KILLS: usize = 12;

/// Kills a run at a random moment. Returns true if the attempt has succeeded.
fn killed(random: &mut ChaCha8Rng, number: usize) -> bool {
    let (first, second) = (
        "for i in 1 2 3 4; do echo new > d/f$i; done",
        "for i in 5 6 7 8; do echo new > d/f$i; done",
    );
    let (begin, end) =
        if number.is_multiple_of(2) { ("try atomic in d\n", "end\n") } else { ("", "") };
    let text =
        format!("try atomic in d\nsh -c '{first}'\n{begin}sh -c '{second}; rm d/old'\n{end}end");
    let names: Vec<String> = (1..=8).map(|it| format!("d/f{it}")).collect();
    let run = names.iter().fold(script(&text), |run, name| run.file(name, "old\n")).start();
    std::thread::sleep(Duration::from_micros(random.random_range(0..50_000)));
    let interpreter = run.interpreter();
    match (number % 3, interpreter) {
        (0, _) => run.signal(Signal::SIGKILL),
        (1, Some(interpreter)) => _ = kill(interpreter, Signal::SIGKILL),
        _ => {
            interpreter.map(|it| kill(it, Signal::SIGKILL));
            run.signal(Signal::SIGKILL);
        }
    }
    let run = without_layers(run.leave());
    let texts: Vec<String> = names.iter().map(|name| run.read(name)).collect();
    let has_old = run.directory.path().join("d/old").exists();
    let all = |text: &str| texts.iter().all(|it| it == text);
    assert!(all("new\n") && !has_old || all("old\n") && has_old, "{texts:?} {has_old}");
    !has_old
}

/// Starts shells until no layers are left.
fn without_layers(mut run: Finished) -> Finished {
    let begin = Instant::now();
    while !layers(run.directory.path()).is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(30), "layers stay: {}", run.story());
        run = Ftsh::after(run).arg("-c").arg("sleep 0.02").success();
    }
    run
}

/// Kills a recorded run at random moments until the script has ended. An attempt whose commit had
/// begun is not made again.
#[test]
fn a_commit_of_a_recorded_run_takes_place_once() {
    if !can_cover(false) {
        return;
    }
    rounds::rounds(&["0"], |round| {
        let mut random = ChaCha8Rng::seed_from_u64(round.number as u64);
        let kills: usize = (0..3).map(|_| resume_until_the_end(&mut random)).sum();
        eprintln!("{kills} kills");
    });
}

/// Runs a script until its end, in spite of kills. Returns the number of kills.
fn resume_until_the_end(random: &mut ChaCha8Rng) -> usize {
    let text = "for i in 1 2 3 4\n\
        try 99 times backoff none atomic in d\n\
        sh -c 'echo $0 >> d/log; for f in a b c d e f g h; do echo $0 > d/$f; done; echo $0' $i\n\
        end > report-$i\n\
        end";
    let mut run = script(text).options(["--journal=journal"]).start();
    for kills in 0..200 {
        std::thread::sleep(Duration::from_micros(random.random_range(5_000..60_000)));
        let victims = [Some(run.pid()), run.interpreter()];
        let victims = if kills % 3 == 2 { &victims[..] } else { &victims[kills % 3..][..1] };
        for pid in victims.iter().flatten() {
            // The run may be over.
            let _ = kill(*pid, Signal::SIGKILL);
        }
        let ended = run.leave();
        if ended.status.is_some_and(|status| status.success()) {
            assert_eq!(ended.read("d/log"), "1\n2\n3\n4\n", "{kills} kills: {}", ended.story());
            let reports: String = (1..=4).map(|it| ended.read(&format!("report-{it}"))).collect();
            assert_eq!(reports, "1\n2\n3\n4\n", "{kills} kills: {}", ended.story());
            without_layers(ended);
            return kills;
        }
        run = Ftsh::after(ended).options(["--journal=journal"]).arg("script.ftsh").start();
    }
    panic!("200 kills, and the script has not ended");
}

#[test]
fn a_run_is_not_resumed_while_a_note_is_unreadable() {
    if !can_cover(false) {
        return;
    }
    let run = recorded("try 2 times atomic in d\nSTAYS\nend").file("d/old", "old\n");
    let killed = resuming::killed(run, Victim::Both);
    let root = killed.directory.path();
    let note = root.join(&layers(root)[0]).join("note");
    fs::write(&note, "of another version").expect("a note");
    let reason = "/j`: the note is of another version of ftsh";
    let refused = again(killed).stderr(reason).failure(2);
    fs::remove_file(&note).expect("a note");
    over(again(refused).success());
}

/// Returns the names of layers in a directory.
fn layers(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(".ftsh-")).collect()
}

#[test]
fn a_shell_in_an_attempt_has_attempts_of_its_own() {
    for unprivileged in [false, true].into_iter().filter(|it| can_cover(*it)) {
        let text = "try 1 time atomic in d\n\
            ftsh -c 'try 2 times backoff none atomic in d\n\
            rm -f d/old; echo $attempt >> d/log; test $attempt -eq 2\nend'\nend";
        let mut run = script(text);
        run.unprivileged = unprivileged;
        if unprivileged {
            run = run.owned_by_nobody(&["d", "d/old"]);
        }
        let run = run.success();
        assert_eq!(tree(&run), [("d/log".into(), "2\n".into())]);
    }
}
