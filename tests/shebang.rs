//! Scripts with a `#!` line.

use crate::support::{FTSH, Ftsh};

#[test]
fn a_script_is_a_program() {
    Ftsh::command("./prog 'a b' c")
        .program("prog", &format!("#!{FTSH}\necho \"$# $1\"\n"))
        .stdout("2 a b\n")
        .success();
}

#[test]
fn options_come_as_one_argument() {
    let finished = Ftsh::command("./prog arg")
        .program("prog", &format!("#!{FTSH} -l 20 -f the.log\necho $1\nsh -c 'exit 0'\n"))
        .stdout("arg\n")
        .success();
    assert!(finished.read("the.log").contains("sh"), "{}", finished.read("the.log"));
}

#[test]
fn one_option_needs_no_splitting() {
    Ftsh::command("./prog")
        .program("prog", &format!("#!{FTSH} -n\necho never\n"))
        .stdout("")
        .success();
}

#[test]
fn a_time_option_on_the_line() {
    Ftsh::command("./prog")
        .program("prog", &format!("#!{FTSH} -t 3 -l 0\nsh -c 'echo $FTSH_KILL_TIMEOUT'\n"))
        .stdout("0\n")
        .success();
}

#[test]
fn a_line_that_linux_cuts_is_refused() {
    let start = format!("#!{FTSH} -l 0 -f ");
    for (length, rest, is_whole) in
        [(255, "", true), (255, "\n", true), (256, "", false), (256, "\n", false)]
    {
        let line = start.clone() + &"f".repeat(length - start.len()) + rest;
        for start in ["./prog", "ftsh prog"] {
            let ftsh = Ftsh::command(start).program("prog", &line);
            if is_whole {
                ftsh.success();
            } else {
                ftsh.stderr("can't read the `#!` line of ").stderr("after 255 bytes").failure(2);
            }
        }
    }
}

#[test]
fn script_arguments_that_look_like_options_stay_arguments() {
    Ftsh::command("./prog -l 40 -x")
        .program("prog", &format!("#!{FTSH} -l 0\necho \"$@\"\n"))
        .stdout("-l 40 -x\n")
        .success();
}

#[test]
fn bad_options_on_the_line_are_reported() {
    Ftsh::command("./prog")
        .program("prog", &format!("#!{FTSH} -l loud -f x\necho never\n"))
        .stdout("")
        .stderr("loud")
        .failure(2);
}

#[test]
fn a_crontab_line_runs() {
    // The same call as cron's with SHELL=/usr/bin/ftsh.
    Ftsh::command("try for 5 minutes; cp a b; end").file("a", "data").success().read("b");
}

#[test]
fn options_hold_however_the_script_is_started() {
    for line in [
        "#!/usr/bin/ftsh -l 20 -f the.log",
        "#!/usr/bin/ftsh  -l20 -f'the.log'\r",
        "#!/usr/bin/env -S ftsh -l 20 -f the.log",
        "#! /opt/ftsh -f the.log -l 20 ",
    ] {
        let finished = Ftsh::script(format!("{line}\necho $1\nsh -c 'exit 0'\n"))
            .arg("-x")
            .stdout("-x\n")
            .success();
        assert!(finished.read("the.log").contains("sh"), "{line}: {}", finished.read("the.log"));
        Ftsh::command("ftsh prog -x")
            .program("prog", &format!("{line}\necho $1\n"))
            .stdout("-x\n")
            .success()
            .read("the.log");
    }
}

#[test]
fn the_command_line_wins() {
    let started = |options: &[&str]| {
        Ftsh::script(
            "#!/usr/bin/ftsh -t 30 --unset fail\nsh -c 'echo $FTSH_KILL_TIMEOUT' \"$nosuch\"\n",
        )
        .options(options)
        .run()
    };
    assert_eq!(started(&["--unset", "empty", "-t", "12"]).text(), "7\n");
    assert_eq!(started(&["--unset=empty"]).text(), "25\n");
    started(&["-t", "12"]).expect_code(1);
}

#[test]
fn secrets_of_both_are_hidden() {
    let finished = Ftsh::script("#!/usr/bin/ftsh --redact ONE -l 20\nsh -c : aaaa1 bbbb2\n")
        .options(["--redact", "TWO"])
        .env("ONE", "aaaa1")
        .env("TWO", "bbbb2")
        .success();
    let errors = finished.errors();
    assert!(
        errors.contains("sh") && !errors.contains("aaaa1") && !errors.contains("bbbb2"),
        "{errors}"
    );
}

#[test]
fn a_script_started_by_hand_takes_the_lock_of_its_first_line() {
    let ftsh = Ftsh::script("#!/usr/bin/ftsh --lock=the.lock --lock-busy=skip\necho ran\n")
        .file("outer.ftsh", "ftsh --lock=the.lock -c 'ftsh script.ftsh; echo done'\n");
    let mut ftsh = ftsh;
    ftsh.arguments = vec!["outer.ftsh".into()];
    ftsh.stdout("done\n").success();
}

#[test]
fn other_first_lines_say_nothing() {
    for line in
        ["#!/bin/sh -l 20", "#!/usr/bin/env ftsh", "#!/usr/bin/ftsh", "# -l 20", "#!", "#!-l 20"]
    {
        let finished = Ftsh::script(format!("{line}\nsh -c 'echo a'\n")).stdout("a\n").success();
        assert_eq!(finished.errors(), "", "{line}");
    }
    Ftsh::new().stdin("#!/usr/bin/ftsh -n\necho a\n").stdout("a\n").success();
}

#[test]
fn mistakes_in_the_line_are_said() {
    for (options, text) in [
        ("--nosuch", "unknown option `--nosuch`"),
        ("-f 'a", "quote"),
        ("-f", "leave no script to run"),
        ("-l loud", "loud"),
    ] {
        let ftsh = Ftsh::script(format!("#!/usr/bin/ftsh {options}\necho never\n"));
        ftsh.refused(&[text]).one_line();
    }
    Ftsh::script("#!/usr/bin/ftsh --nosuch\necho never\n").refused(&["script.ftsh", "#!"]);
}
