//! Scripts that are programs.

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
fn script_arguments_that_look_like_options_stay_arguments() {
    Ftsh::command("./prog -l 40 -x")
        .program("prog", &format!("#!{FTSH} -l 0\necho \"$@\"\n"))
        .stdout("-l 40 -x\n")
        .success();
}

#[test]
fn bad_options_on_the_line_are_told() {
    Ftsh::command("./prog")
        .program("prog", &format!("#!{FTSH} -l loud -f x\necho never\n"))
        .stdout("")
        .stderr("loud")
        .failure(2);
}

#[test]
fn a_crontab_line_runs() {
    // What cron does with SHELL=/usr/bin/ftsh.
    Ftsh::command("try for 5 minutes; cp a b; end").file("a", "data").success().read("b");
}
