//! Conditions that the next start of a recorded run may find: other input, a journal of another
//! version, changed files, options that exclude each other.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, symlink};
use std::time::Duration;

use ftsh_journal::{Beginning, Started, Writer};
use ftsh_machine::{Config, Time};
use ftsh_syntax::parse;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Uid, chown};

use crate::supervision::is_stopped;
use crate::support::run::Finished;
use crate::support::skipped::skipped;
use crate::support::{FTSH, Ftsh};

/// A command that waits forever in the first start and is lost, and that ends at once in the next
/// one.
fn waits(word: &str) -> String {
    format!(
        "try 2 times every 1 ms
            sh -c 'test -e been$0 || {{ echo > been$0; exec sleep 1000; }}' {word}
        end"
    )
}

/// Kills the shell and its supervisor once the command with this word has started.
fn killed_at(run: Ftsh, word: &str) -> Finished {
    let run = run.start();
    let been = run.directory().join(format!("been{word}"));
    run.until("it is there", |_| been.exists());
    let interpreter = run.interpreter().expect("an interpreter");
    kill(run.pid(), Signal::SIGKILL).expect("it lives");
    // Other processes may be gone already.
    let _ = kill(interpreter, Signal::SIGKILL);
    run.leave()
}

/// A recorded run of a script.
fn recorded(text: &str) -> Ftsh {
    Ftsh::script(text).options(["--journal=j"])
}

/// The next start with the same words.
fn again(before: Finished) -> Ftsh {
    Ftsh::after(before).options(["--journal=j", "script.ftsh"])
}

fn status(of: &Finished) -> String {
    Ftsh::new().arg("--status").arg(of.directory.path().join("j")).success().text()
}

#[test]
fn declared_arguments_are_those_of_the_first_start() {
    let text = format!(
        "args name --level=3 files...
        echo $name $level $files >> out
        {}
        echo $name $level $files $# >> out",
        waits("w")
    );
    let words = ["one", "--level=5", "two"];
    let finished = killed_at(recorded(&text).args(words), "w");
    let finished = again(finished).args(words).success();
    assert_eq!(finished.read("out"), "one 5 two\none 5 two 2\n");
}

#[test]
fn variables_and_texts_are_read_on_and_every_descriptor_written_on() {
    let text = format!(
        "printf 'a\\nb\\nc\\n' -> letters
        while .succeeds. (read line)
            sh -c 'echo $0 >&3' $line
            if $line .eq. b
                {}
            end
        end -< letters 3> third
        while .succeeds. (read line)
            echo $line >&4
            if $line .eq. y
                {}
            end
        end 4>> fourth << END
x
y
z
END
        for i in 1 2 3
            echo $i >&5
            if $i .eql. 2
                {}
            end
        end 5-> numbers
        echo $numbers",
        waits("1"),
        waits("2"),
        waits("3")
    );
    let mut run = recorded(&text).file("third", "old\n").file("fourth", "old\n");
    for word in ["1", "2", "3"] {
        run = again(killed_at(run, word));
    }
    let finished = run.stdout("1 2 3\n").success();
    assert_eq!(finished.read("third"), "a\nb\nc\n");
    assert_eq!(finished.read("fourth"), "old\nx\ny\nz\n");
    finished.nothing_left();
}

#[test]
fn random_choices_are_those_of_the_beginning() {
    let choice = "random(1, 1000000000)";
    let text = format!("x={choice}\n{}\ny={choice}\necho $x $y", waits("1"));
    let at_once = Ftsh::script(&text).file("been1", "").options(["--seed=7"]).success().text();
    let finished = killed_at(recorded(&text).options(["--seed=7"]), "1");
    again(finished).options(["--seed=8"]).stdout(at_once).success();
}

#[test]
fn an_input_that_is_no_file_any_more_is_reported() {
    let text = format!("read one\n{}\nread two\necho \"$one $two\"", waits("1"));
    let finished = killed_at(recorded(&text).stdin("first\nsecond\n"), "1");
    let by = "(echo other; echo more) | \"$@\"";
    let next = again(finished).through(["sh", "-c", by, "sh"]);
    next.stdout("first other\n").stderr("standard input is no file any more").success();
}

#[test]
fn a_journal_of_another_version_is_refused() {
    let script = parse("script.ftsh", "echo never").expect("a script");
    let config = Config::default();
    let mut beginning = Beginning::new(&script, &[], &[], &config, 7, Duration::ZERO);
    beginning.behavior += 1;
    beginning.version = "77.8.9".into();
    let run = recorded("echo never");
    let file = File::create_new(run.path("j")).expect("a file");
    let mut writer = Writer::begin(file, 1, beginning).expect("a journal");
    writer.start(Started {
        at: Duration::ZERO,
        since_boot: Duration::ZERO,
        boot: String::new(),
        elapsed: Duration::ZERO,
        pid: 1,
        interpreter: 1,
        mark: "none".into(),
        directory: "/".into(),
        umask: 0o22,
        ignored: Vec::new(),
        user: nix::unistd::getuid().as_raw(),
        version: "77.8.9".into(),
    });
    writer.record_delivery(Time::START, None).and_then(|()| writer.commit()).expect("a journal");
    let before = fs::read(run.path("j")).expect("a journal");
    let own = concat!("this is ftsh ", env!("CARGO_PKG_VERSION"));
    let finished = run.refused(&["can't resume the run in", "ftsh 77.8.9", own]);
    let journal = finished.directory.path().join("j");
    assert_eq!(fs::read(&journal).expect("a journal"), before);
    let look = Ftsh::new().arg("--status").arg(&journal);
    look.refused(&["can't show", "ftsh 77.8.9", own]);
}

#[test]
fn scripts_of_one_name_are_distinguished_by_their_text() {
    let text = format!("{}\necho $0", waits("1"));
    let finished = killed_at(Ftsh::command(&text).options(["--journal=j"]), "1");
    let other = Ftsh::after(finished).options(["--journal=j", "-c", "echo never"]);
    let finished = other.refused(&["another script with the name `-c`", "remove"]);
    let named = Ftsh::after(finished).options(["--journal=j", "-c", &text, "name"]);
    let finished = named.refused(&["a run of `-c`"]);
    let same = Ftsh::after(finished).options(["--journal=j", "-c", &text]);
    same.stdout("ftsh\n").success();
    let finished = killed_at(Ftsh::new().options(["--journal=j"]).stdin(&text), "1");
    let other = Ftsh::after(finished).options(["--journal=j"]).stdin("echo never");
    let finished = other.refused(&["another script with the name `stdin`"]);
    Ftsh::after(finished).options(["--journal=j"]).stdin(&text).stdout("ftsh\n").success();
}

#[test]
fn scripts_of_one_name_in_two_places_are_distinguished() {
    let text = [waits("1"), waits("2"), waits("3"), "echo end".into()].join("\n");
    let run = Ftsh::new().file("a/job.ftsh", &text).file("b/job.ftsh", "echo never");
    let finished = killed_at(run.options(["--journal=j", "a/job.ftsh"]), "1");
    let next = |before, file| Ftsh::after(before).options(["--journal=j", file]);
    let other = next(finished, "b/job.ftsh").refused(&["/a/job.ftsh` that began", "`b/job.ftsh`"]);
    let link = other.directory.path().join("link.ftsh");
    symlink("b/../a/job.ftsh", &link).expect("a link");
    let finished = killed_at(next(other, "link.ftsh"), "2");
    let path = |name: &str| finished.directory.path().join(name);
    fs::rename(path("a/job.ftsh"), path("moved.ftsh")).expect("it is moved");
    let moved = next(finished, "moved.ftsh").refused(&["start that script, also if it has moved"]);
    // The script has the same name and text in another place.
    let copy = Ftsh::after(moved).file("c/job.ftsh", text);
    let finished = killed_at(copy.options(["--journal=j", "c/job.ftsh"]), "3");
    let last = next(finished, "./a//job.ftsh").stdout("end\n").stderr("the script can't be read");
    last.success();
}

/// Another user could have written the journal, or could write it later.
#[test]
fn a_file_of_another_user_is_refused() {
    if !Uid::effective().is_root() {
        return skipped("root");
    }
    for content in [&b""[..], b"ftsh jour"] {
        let run = recorded("echo never").file("j", content);
        chown(&run.path("j"), Some(Uid::from_raw(65534)), None).expect("root may");
        run.refused(&["can't use", "it belongs to the user with the id 65534, not 0"]);
    }
}

#[test]
fn the_next_run_has_the_same_file() {
    let finished = recorded("echo one").success();
    let number = |finished: &Finished| {
        fs::metadata(finished.directory.path().join("j")).expect("a journal").ino()
    };
    let before = number(&finished);
    let finished = again(finished).stdout("one\n").success();
    assert_eq!(number(&finished), before);
}

#[test]
fn a_resumed_run_skips_the_splay() {
    let finished = killed_at(recorded(&waits("1")), "1");
    let finished = again(finished).options(["--splay=1 h"]).success();
    finished.nothing_left();
}

#[test]
fn the_limit_of_another_shell_suspends() {
    let text = format!("{}\necho end", waits("1"));
    let outer =
        "try for 1500 ms or 1 time\n$FTSH --journal=j script.ftsh\ncatch\necho $error_kind\nend";
    let run = Ftsh::command(outer).file("script.ftsh", text).env("FTSH", FTSH);
    let finished = run.stdout("timeout\n").success();
    finished.nothing_left();
    let said = status(&finished);
    assert!(said.contains("the run was suspended"), "{said}");
    again(finished).stdout("end\n").success();
}

/// The success of an atomic attempt does not count if the run is suspended before the commit: the
/// staged output is gone.
#[test]
fn an_atomic_attempt_that_ends_with_its_shell_is_made_again() {
    let text = "for once in 1
            try 3 times every 1 ms atomic
                read line
                echo $line >> lines
                sh -c 'echo $$ > pid; while test -e wait; do sleep 0.01; done'
            end
            cat
        end < input";
    let run = recorded(text).file("wait", "").file("input", "1\n2\n").start();
    run.until_lines("pid", 1);
    let interpreter = run.interpreter().expect("an interpreter");
    kill(interpreter, Signal::SIGSTOP).expect("it lives");
    run.until("a stopped interpreter", |_| is_stopped(interpreter.as_raw()));
    let command = fs::read_to_string(run.directory().join("pid")).expect("a number");
    fs::remove_file(run.directory().join("wait")).expect("it was there");
    let state = format!("/proc/{}/stat", command.trim());
    run.until("the end of the command", |_| {
        fs::read_to_string(&state).is_ok_and(|state| state.contains(") Z "))
    });
    kill(interpreter, Signal::SIGTERM).expect("it lives");
    kill(interpreter, Signal::SIGCONT).expect("it lives");
    let finished = run.wait();
    finished.killed_by(Signal::SIGTERM).nothing_left();
    let finished = again(finished).stdout("2\n").success();
    assert_eq!(finished.read("lines"), "1\n1\n");
}

#[test]
fn options_that_would_damage_a_journal_are_refused() {
    for option in ["--lock=j", "--results=j", "-fj", "--results=./j"] {
        recorded("echo never").options([option]).refused(&["`--journal`", "the same file"]);
    }
    let finished = recorded("echo one").success();
    let journal = finished.directory.path().join("j");
    let before = fs::read(&journal).expect("a journal");
    let picture = Ftsh::after(finished).args(["--timeline", "j", "-o", "./j"]);
    let finished = picture.refused(&["can't be drawn into the journal itself"]);
    assert_eq!(fs::read(&journal).expect("a journal"), before);
    drop(finished);
}

#[test]
fn output_left_by_a_removed_run_is_refused_with_advice() {
    let finished = killed_at(recorded(&waits("1")).options(["--cron"]), "1");
    let path = |name: &str| finished.directory.path().join(name);
    fs::remove_file(path("j")).expect("a journal");
    let output = path("j.output");
    fs::write(&output, "printed\n").expect("output");
    let finished = again(finished)
        .options(["--cron"])
        .refused(&["remove the file if it is left from a removed journal"]);
    fs::remove_file(output).expect("output");
    again(finished).options(["--cron"]).success();
}
