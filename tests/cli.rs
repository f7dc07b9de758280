//! The command line: options, bad usage, exit statuses.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use crate::support::{FTSH, Ftsh, side_by_side};

#[test]
fn command_text_runs() {
    Ftsh::command("echo hello").stdout("hello\n").success();
}

#[test]
fn command_text_takes_a_name_and_arguments() {
    Ftsh::command("echo $0 $# $2")
        .args(["name", "one", "two words"])
        .stdout("name 2 two words\n")
        .success();
}

#[test]
fn each_script_is_checked_and_printed() {
    let ftsh = |options: &[&str], scripts: &[&str]| {
        Ftsh::new()
            .file("good.ftsh", "echo   a")
            .file("odd.ftsh", "#!/usr/bin/ftsh --backoff='fixed from 1 ms'\ntry for 20 ms; a; end")
            .file("bad.ftsh", "try")
            .args(options)
            .args(scripts)
    };
    ftsh(&["-n"], &["good.ftsh", "good.ftsh"]).stdout("").success();
    ftsh(&["-n"], &["good.ftsh", "bad.ftsh", "good.ftsh"]).stderr("bad.ftsh:1").failure(2);
    let warned = ftsh(&["-n", "--strict"], &["good.ftsh", "odd.ftsh", "good.ftsh"]).run().errors();
    assert!(!warned.contains("short-limit"), "{warned}");
    let both = ftsh(&["-n", "--"], &["bad.ftsh", "nosuch", "bad.ftsh"]).failure(2).errors();
    assert_eq!(both.matches("bad.ftsh:1").count(), 2, "{both}");
    assert!(both.contains("`nosuch`") && both.contains("each word is a script"), "{both}");
    let warning = Ftsh::new()
        .file("a", "echo a")
        .file("b", "echo \"\\n\"")
        .args(["-n", "--strict", "a", "b", "a"]);
    warning.stderr("b:1").failure(1);
    ftsh(&["-p"], &["good.ftsh", "good.ftsh"]).stdout("echo a\necho a\n").success();
    ftsh(&["-p"], &["bad.ftsh", "good.ftsh"]).stdout("echo a\n").failure(2);
    // Elsewhere, the words are arguments.
    ftsh(&["-nc", "echo", "name"], &["bad.ftsh"]).success();
    ftsh(&[], &["good.ftsh", "bad.ftsh"]).stdout("a\n").success();
}

#[test]
fn a_script_gets_its_name_and_arguments() {
    Ftsh::script("echo $0 $# \"$1\"").args(["one two"]).stdout("script.ftsh 1 one two\n").success();
}

#[test]
fn declared_arguments_are_checked_before_anything_runs() {
    let script = || Ftsh::script("args \"Copy.\" source target=/srv -v\necho ran > ran");
    for options in [&["--journal=j"][..], &["--lock", "--cron"], &["--splay=1h"], &[]] {
        let finished = script().options(options).args(["-x"]).stdout("").failure(2);
        finished.expect_stderr(
            "script.ftsh: there is no option `-x`\nusage: script.ftsh source [target=/srv] [-v]\n",
        );
        assert!(
            !finished.directory.path().join("ran").exists()
                && !finished.directory.path().join("j").exists(),
            "{options:?}"
        );
    }
    for help in ["--help", "-h", "-vh"] {
        let text = "usage: script.ftsh source [target=/srv] [-v]\nCopy.\n";
        let finished = script().options(["--journal=j"]).args(["-x", help]).stdout(text).success();
        assert!(
            !finished.directory.path().join("ran").exists()
                && !finished.directory.path().join("j").exists()
        );
    }
    script().args(["-v", "a"]).success();
}

#[test]
fn declared_arguments_need_not_be_utf8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let bytes = |bytes: &'static [u8]| OsStr::from_bytes(bytes).to_owned();
    Ftsh::script("args -o|--out=FILE name\nprintf '%s\\n' \"$out\" \"$name\"")
        .args([bytes(b"-o\xff"), bytes(b"\xfe")])
        .stdout(b"\xff\n\xfe\n")
        .success();
    Ftsh::script("args -v").args([bytes(b"-\xff")]).failure(2);
}

#[test]
fn arguments_need_not_be_utf8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let argument = OsStr::from_bytes(b"a\xff b");
    Ftsh::script(
        "echo \"$1\"\nprintf '%s\\n' \"$1\"\nx=\"$1\"\necho \"$x\"\nfor y in $1; echo $y; end",
    )
    .arg(argument)
    .stdout(b"a\xff b\na\xff b\na\xff b\na\xff\nb\n")
    .success();
}

#[test]
fn environment_need_not_be_utf8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    Ftsh::command("echo $V; sh -c 'echo $V'")
        .env("V", OsStr::from_bytes(b"\xfe\xff"))
        .stdout(b"\xfe\xff\n\xfe\xff\n")
        .success();
}

#[test]
fn a_script_on_standard_input() {
    Ftsh::new().stdin("echo hello\nexit 3\n").stdout("hello\n").failure(3);
}

#[test]
fn help_lists_the_options() {
    let help = Ftsh::new().arg("--help").success().text();
    for argument in
        ftsh::cli::options::flags::command().get_arguments().filter(|it| !it.is_hide_set())
    {
        let short = argument.get_short().map(|short| format!("-{short}"));
        let long = argument.get_long().map(|long| format!("--{long}"));
        for name in short.into_iter().chain(long) {
            assert!(help.contains(&name), "{name} isn't in the help:\n{help}");
        }
    }
    for name in ["FTSH_DEADLINE", "Exit status", "124"] {
        assert!(help.contains(name), "{name} isn't in the help:\n{help}");
    }
}

#[test]
fn short_help_lists_common_options() {
    let help = Ftsh::new().arg("-h").success().text();
    for name in ["-c", "-n", "-f", "-l", "--cron", "--lock", "--help"] {
        assert!(help.contains(name), "{name} isn't in the help:\n{help}");
    }
    assert!(!help.contains("--log-format"), "{help}");
}

/// Returns the paragraphs of the help on a terminal with this number of columns.
fn paragraphs(option: &str, columns: usize) -> Vec<Vec<String>> {
    let help = Ftsh::new().arg(option).env("COLUMNS", columns.to_string()).success().text();
    let paragraphs = help.trim_end().split("\n\n");
    paragraphs.map(|text| text.lines().map(str::to_owned).collect()).collect()
}

#[test]
fn short_help_fits_a_screen() {
    let lines: Vec<_> = paragraphs("-h", 80).join(&String::new());
    assert!(lines.len() <= 24, "{}", lines.join("\n"));
}

#[test]
fn help_comes_in_groups_that_fit_a_screen() {
    for (columns, height) in [(80, 24), (40, 40)] {
        for paragraph in paragraphs("--help", columns) {
            let shown = paragraph.join("\n");
            assert!(paragraph.len() <= height, "{columns} columns:\n{shown}");
            let widest = paragraph.iter().map(|line| line.chars().count()).max();
            assert!(widest <= Some(columns), "{columns} columns:\n{shown}");
        }
    }
}

#[test]
fn help_is_a_word_too() {
    let help = |words: &[&str]| Ftsh::new().args(words).success().text();
    assert_eq!(help(&["help"]), help(&["--help"]));
    assert!(help(&["help", "hedge", "--lock"]).contains("`ftsh --lock FILE`: "));
    Ftsh::new().args(["help", "try", "nosuch"]).refused(&["there is no help on `nosuch`"]);
    let run = Ftsh::new().file("help", "echo \"script $1\"").args(["help", "forany"]);
    run.stdout("script forany\n").success();
}

#[test]
fn version_prints_the_version() {
    for option in ["-V", "-v", "--version", "version"] {
        let version = Ftsh::new().arg(option).success().text();
        assert!(version.contains(env!("CARGO_PKG_VERSION")), "{version}");
        assert_eq!(version.lines().count(), 1);
    }
}

#[test]
fn check_only_runs_nothing() {
    Ftsh::script("echo never\ntouch ran\n").options(["-n"]).stdout("").success();
}

#[test]
fn check_only_finds_errors() {
    Ftsh::script("echo never\ntry\n").options(["-n"]).stdout("").stderr("script.ftsh:2").failure(2);
}

#[test]
fn check_only_warns() {
    let script = "try 5 times\n    try 100 times\n        true\n    end\nend\n";
    Ftsh::script(script)
        .options(["-n"])
        .stdout("")
        .stderr("warning[multiplied-attempts]: attempts multiply: up to 5 × 100 = 500\n --> script.ftsh:2:5\n")
        .success();
    assert_eq!(Ftsh::script(script).success().errors(), "", "a run is no time for advice");
    let given = "try for 500 ms; true; end";
    Ftsh::command(given).options(["-n"]).stderr("warning[short-limit]: no delay fits").success();
    let quick = Ftsh::command(given).options(["-n", "--backoff", "fixed from 1 ms"]).success();
    assert_eq!(quick.errors(), "");
    let warned = Ftsh::command("exit; a").options(["-n"]).success().errors();
    assert!(
        warned.starts_with("warning[unreachable]: this is never reached\n --> -c:1:7\n"),
        "{warned}"
    );
    let tried = || Ftsh::command("try for 1 day; crul x; end").options(["-n"]);
    let slip = tried().program("bin/curl", "#!/bin/sh\n").env("PATH", "bin");
    slip.stderr("there is no program `crul` along `PATH`").stderr("did you mean `curl`?").success();
    let there = tried().program("bin/crul", "#!/bin/sh\n").env("PATH", "bin").success();
    assert_eq!(there.errors(), "");
}

#[test]
fn strict_checks_fail_because_of_warnings() {
    let checked = |text: &str| Ftsh::command(text).options(["-n", "--strict"]);
    checked("rm $1").stderr("warning[unchecked-argument]").failure(1);
    checked("echo a").stderr("").success();
    // A program that this machine lacks may be on the next one.
    checked("try 2 times; nosuchprog; end").stderr("warning[missing-program]").success();
    checked("try").stderr("error[").failure(2);
    Ftsh::command("echo a").options(["--strict"]).stderr("`--strict` needs `-n`").failure(2);
}

#[test]
fn bad_usage_gets_one_line() {
    let usages: &[(&[&str], &str)] = &[
        (&["--nosuch"], "--nosuch"),
        (&["-x", "script.ftsh"], "-x"),
        (&["-l"], "-l"),
        (&["-l", "loud", "script.ftsh"], "loud"),
        (&["-l", "-5", "script.ftsh"], "-5"),
        (&["-t", "soon", "script.ftsh"], "soon"),
        (&["-t", "-1", "script.ftsh"], "-1"),
        (&["-k", "gently", "script.ftsh"], "gently"),
        (&["-c"], "-c"),
        (&["--seed", "lucky", "script.ftsh"], "lucky"),
        (&["--backoff", "exponental", "script.ftsh"], "exponential"),
        (&["--backoff", "full from 10 s to 1 s", "script.ftsh"], "from"),
        (&["--backoff", "", "script.ftsh"], "backoff"),
        (&["--unset=maybe", "script.ftsh"], "maybe"),
        (&["--log-format", "xml", "script.ftsh"], "xml"),
        (&["-n", "-p", "--strict", "script.ftsh"], "`-n` checks and `-p` prints"),
        (&["--replay", "j", "-f", "log"], "`--replay` takes no `-f`"),
        (&["--status", "j", "--replay", "j"], "`--replay`, `--status`, `--timeline` and `--trace`"),
        (&["--answer", "--call-home", "@h", "--", "true"], "`--answer` excludes `--call-home`"),
        (&["--lsp", "--channels"], "`--lsp` and `--channels`"),
    ];
    for (arguments, text) in usages {
        let finished =
            Ftsh::new().file("script.ftsh", "echo never").args(*arguments).refused(&[text]);
        finished.one_line();
    }
}

#[test]
fn bad_environment_gets_one_line() {
    for (name, value) in [
        ("FTSH_LOG_LEVEL", "loud"),
        ("FTSH_KILL_TIMEOUT", "soon"),
        ("FTSH_KILL_MODE", "gently"),
        ("FTSH_EXPMIN", "little"),
        ("FTSH_EXPMAX", "-1"),
        ("FTSH_EXPFACTOR", "0"),
        ("FTSH_EXPRAND", "2"),
    ] {
        Ftsh::command("echo never").env(name, value).refused(&[name]).one_line();
    }
}

#[test]
fn options_may_be_joined_with_their_values() {
    Ftsh::command("echo hello").options(["-l40", "-t5", "-kweak"]).stdout("hello\n").success();
}

#[test]
fn two_dashes_end_the_options() {
    Ftsh::new().file("-c", "echo dash").args(["--", "-c"]).stdout("dash\n").success();
}

#[test]
fn a_seed_repeats_the_choices() {
    let script = "for i in 1 .to. 20; forany x in a b c d e f; echo -n $x; end; end; echo";
    let run = |seed: &str| Ftsh::command(script).options(["--seed", seed]).success().text();
    assert_eq!(run("7"), run("7"));
    assert_ne!(run("7"), run("8"));
}

#[test]
fn without_a_seed_the_choices_differ() {
    let script = "for i in 1 .to. 20; forany x in a b c d e f; echo -n $x; end; end; echo";
    assert_ne!(Ftsh::command(script).success().text(), Ftsh::command(script).success().text());
}

#[test]
fn statuses_are_those_of_the_failure() {
    for (script, status) in [
        ("success", 0),
        ("exit 17", 17),
        ("sh -c 'exit 9'", 9),
        ("sh -c 'kill -9 $$'", 137),
        ("try for 50 ms; sleep 20; end", 124),
        ("no-such-command", 127),
        ("/", 126),
        ("echo < nosuch", 1),
        ("x=1 .div. 0", 1),
        ("failure", 1),
        ("try", 2),
    ] {
        Ftsh::command(script).failure(status);
    }
}

#[test]
fn an_unknown_user_causes_no_crash() {
    // The C library asks plug-ins about these, which a statically linked program cannot load.
    for script in
        ["echo > ~nobodyhasthisname/a", "cd ~nobodyhasthisname", "echo ~nobodyhasthisname"]
    {
        Ftsh::command(script).stderr("there is no user nobodyhasthisname").failure(1);
    }
    Ftsh::command("echo ~root").stdout("/root\n").success();
}

#[test]
fn closed_descriptors_are_no_crash() {
    Ftsh::command("sh -c 'exec ftsh -c \"echo hi\" >&-'").run();
    Ftsh::command("sh -c 'exec ftsh -c success <&- >&- 2>&-'").success();
}

#[test]
fn writing_to_a_closed_output_fails() {
    let wrong = |arguments: &str, redirect: &str| {
        let script = format!("sh -c 'ftsh {arguments} {redirect}; echo $? > status'; cat status");
        let finished = Ftsh::command(&script)
            .file("journal", fs::read(journal()).expect("a journal"))
            .file("echo", "echo hi")
            .file("program", "/bin/echo hi")
            .file("errors", "echo hi >&2")
            .file("grouped", "forall i in 1 output grouped; echo hi; end")
            .file("tagged", "forall i in 1 output tagged; echo hi; end")
            .file("atomic", "try 1 time atomic; echo hi; end")
            .file("exec", "exec echo hi")
            .file("input", "cat")
            .success();
        let status = finished.text();
        (status == "0\n").then(|| format!("{arguments} {redirect}: {}", finished.story()))
    };
    let mut cases = vec![("errors", "2>&-"), ("input", "<&-")];
    let scripts = ["echo", "program", "grouped", "tagged", "atomic", "exec"];
    let looks = ["--replay journal", "--status journal", "--version", "--help", "--channels"];
    for arguments in scripts.into_iter().chain(looks) {
        cases.extend([(arguments, ">&-"), (arguments, "> /dev/full")]);
    }
    side_by_side::none(cases, |(arguments, redirect)| wrong(arguments, redirect));
    Ftsh::command("sh -c 'ftsh -c success <&- >&- 2>&-'").success();
}

/// Creates a journal of this version.
fn journal() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/journals");
    let mut all = fs::read_dir(folder).expect("journals").map(|it| it.expect("one").path());
    all.find(|path| path.extension().is_some_and(|end| end == "journal")).expect("a journal")
}

#[test]
fn a_script_may_come_through_a_non_blocking_input() {
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    fcntl(&reader, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).expect("a flag");
    let mut child =
        Command::new(FTSH).stdin(reader).stdout(Stdio::piped()).spawn().expect("the shell");
    let stat = format!("/proc/{}/stat", child.id());
    // A sleeping shell is waiting for the script.
    while fs::read_to_string(&stat).is_ok_and(|it| !it.contains(") S ") && !it.contains(") Z ")) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let written = writer.write_all(b"echo a\n").and_then(|()| writer.write_all(b"echo b\n"));
    drop(writer);
    let mut text = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut text).expect("text");
    assert!(child.wait().expect("an end").success() && written.is_ok());
    assert_eq!(text, "a\nb\n");
}

#[test]
fn a_broken_pipe_ends_it_quietly() {
    let finished = Ftsh::command("sh -c 'ftsh -c \"while true; echo y; end\" | head -n 1'")
        .stdout("y\n")
        .success();
    assert!(!finished.errors().contains("panick"), "{}", finished.story());
}

#[test]
fn checking_fails_for_mistakes_only() {
    let warned = Ftsh::command("try 2 times; try 2 times; ls; end; end").options(["-n"]);
    warned.stdout("").stderr("warning[multiplied-attempts]: attempts multiply").success();
    Ftsh::command("if").options(["-n"]).stdout("").stderr("error[unexpected]: ").failure(2);
}

#[test]
fn statuses_with_two_meanings() {
    Ftsh::command("defer 5 'too early'").failure(75);
    Ftsh::command("grep x /no/such/file").stderr("exited with 2").failure(2);
    Ftsh::command("echo 'if oops' > part; source part").failure(1);
}

#[test]
fn two_ways_to_end_without_a_report() {
    for silent in [Ftsh::command("exit 3"), Ftsh::command("sh -c 'exit 3'").options(["-l", "0"])] {
        assert_eq!(silent.failure(3).errors(), "");
    }
}
