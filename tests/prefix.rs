//! A word before a command: `ftsh try 3 times -- cmd`. The tests whose names begin with `row_` are the rows
//! of the table in `docs/evidence/compared.md`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::Ftsh;
use crate::support::run::Finished;
use crate::support::terminal::User;

/// A run of a command line whose words are separated by spaces, followed by words that may have any
/// bytes.
fn ftsh(line: &str, words: &[&str]) -> Ftsh {
    Ftsh::new().args(line.split_whitespace()).args(words)
}

/// A run of `sh -c` with heads before it.
fn sh(heads: &str, script: &str) -> Ftsh {
    ftsh(heads, &["--", "sh", "-c", script])
}

/// Records an attempt, and succeeds from the third one on.
const THIRD: &str = "echo x >> attempts; test $(wc -l < attempts) -ge 3";

fn lines(finished: &Finished, file: &str) -> usize {
    finished.read(file).lines().count()
}

fn code(finished: &Finished) -> Option<i32> {
    finished.status.and_then(|status| status.code())
}

/// Returns the one line on standard error.
fn line_of(finished: &Finished) -> String {
    let errors = finished.errors();
    assert_eq!(errors.lines().count(), 1, "{errors}");
    errors.trim_end().to_owned()
}

#[test]
fn row_the_status_is_that_of_the_command() {
    sh("try 2 times backoff none", "exit 7").failure(7);
    sh("try 5 times backoff none", THIRD).success();
    sh("limit 1 minute", "exit 9").failure(9);
    sh("forall in a b at most 1", "exit 3").failure(3);
}

#[test]
fn row_a_number_limits_the_attempts() {
    let finished = sh("try 4 times backoff none", "echo x >> attempts; false").failure(1);
    assert_eq!(lines(&finished, "attempts"), 4);
    let line = line_of(&finished);
    assert!(line.starts_with("ftsh: sh exited with 1 after 4 attempts in "), "{line}");
}

#[test]
fn row_a_time_limits_all_attempts_together() {
    sh("try for 400 ms each 10 s backoff none", "sleep 60").failure(124);
    let finished = sh("limit 200 ms", "sleep 60").failure(124);
    assert_eq!(line_of(&finished), "ftsh: sh ran out of time after 200 ms");
}

#[test]
fn row_a_time_limits_each_attempt() {
    let finished = sh("try 3 times each 100 ms backoff none", "sleep 60").failure(124);
    finished.expect_stderr("3 attempts");
}

#[test]
fn a_signal_comes_before_sigterm() {
    let script = "trap 'echo int > got; kill $!; exit' INT; sleep 60 & echo > ready; wait";
    let other = "until test -e ready; do sleep 0.01; done; exit 7";
    let heads = "-t 20 try signal INT forall in 1 2";
    let words = ["--", "sh", "-c", "if test $1 = 1; then eval \"$2\"; else eval \"$3\"; fi", "sh"];
    let run = ftsh(heads, &[&words[..], &["{}", script, other]].concat());
    let finished = run.failure(7);
    assert_eq!(finished.read("got"), "int\n");
    let printed = ftsh("-p limit 5 min signal SIGINT", &["--", "make"]).success();
    assert_eq!(printed.text(), "limit 5 minutes signal SIGINT -- make\n");
}

#[test]
fn row_delays_grow() {
    let heads = "-l 30 -f log try 4 times backoff exponential from 20 ms by 3";
    let finished = sh(heads, "false").failure(1);
    let log = finished.read("log");
    let delays = ["20 ms", "60 ms", "180 ms"].map(|it| format!("try: {it} until"));
    assert!(delays.iter().all(|delay| log.contains(delay)), "{log}");
}

#[test]
fn row_delays_are_random() {
    let log = |seed: &str| {
        let heads = format!("--seed {seed} -l 30 -f log try 2 times backoff full from 40 ms");
        let log = sh(&heads, "false").failure(1).read("log");
        log.lines()
            .find_map(|it| it.split_once("try: ")?.1.split_once(" until"))
            .map(|it| it.0.to_owned())
    };
    assert_ne!(log("1"), log("2"));
}

#[test]
fn row_arguments_with_blanks_newlines_and_quotes_arrive_whole() {
    let words = [
        "a b",
        "",
        "two\nlines",
        "it's \"so\"",
        r"\'\\ $HOME ${x} `date`",
        "*",
        "~",
        "{}",
        "a\r\nb",
        "\\",
    ];
    for heads in ["try 2 times", "limit 1 minute", "try 2 times forany in w", "forall in w"] {
        let program = if heads.contains("for") { "[%s]{}\\0" } else { "[%s]\\0" };
        let end = if heads.contains("for") { "w" } else { "" };
        let words: Vec<_> =
            words.into_iter().filter(|word| end.is_empty() || *word != "{}").collect();
        let expected: Vec<_> = words.iter().map(|word| format!("[{word}]{end}\0")).collect();
        let command = [&["--", "printf", program], &words[..]].concat();
        ftsh(heads, &command).stdout(expected.concat()).success();
    }
}

#[test]
fn row_arguments_that_are_not_utf8_arrive_whole() {
    let word = OsString::from_vec(b"\xff{}\xfea\xff'\r\n\xc3".to_vec());
    let heads = Ftsh::new().args(["forall", "in"]).arg(OsString::from_vec(b"\x80 w".to_vec()));
    let expected = b"\xff\x80 w\xfea\xff'\r\n\xc3|".to_vec();
    heads.args(["--", "printf", "%s|"]).arg(&word).stdout(expected).success();
    Ftsh::new()
        .args(["try", "2", "times", "--", "printf", "%s|"])
        .arg(word)
        .stdout(b"\xff{}\xfea\xff'\r\n\xc3|")
        .success();
}

#[test]
fn row_each_attempt_reads_the_same_standard_input() {
    let script = "cat > got$FTSH_ATTEMPT; test $FTSH_ATTEMPT -ge 3";
    for text in ["a\nb\n".to_owned(), "line\n".repeat(200_000)] {
        let through = ["sh", "-c", "cat input | \"$0\" \"$@\""];
        let run = sh("try 5 times backoff none", script).file("input", &text).through(through);
        let finished = run.success();
        for attempt in 1..=3 {
            assert_eq!(finished.read(&format!("got{attempt}")), text);
        }
    }
    // A file is read again from where it was.
    let finished = sh("try 5 times backoff none", script).stdin("from a file").success();
    assert_eq!(finished.read("got3"), "from a file");
}

#[test]
fn row_input_is_kept_on_disk_when_it_is_large() {
    let script = "head -c 150000000 /dev/zero | \"$0\" \"$@\"";
    let count = "wc -c; test $FTSH_ATTEMPT -ge 2";
    let run = sh("try 3 times backoff none", count).through(["sh", "-c", script]);
    run.stdout("150000000\n150000000\n").limit(Duration::from_secs(60)).success();
}

#[test]
fn row_a_terminal_stays_the_terminal_of_the_command() {
    let script = "test -t 0 && test -t 1 && echo ready && read answer && echo got $answer";
    let words = ["try", "3", "times", "--", "sh", "-c", script];
    let mut user = User::start(&words, &[("TERM", "xterm")], 80, None);
    user.sees("ready");
    user.types("yes\n");
    user.sees("got yes");
    assert!(user.ends().success());
}

#[test]
fn row_output_passes_at_once() {
    let mut run = sh("try 3 times", "echo ready; read line; echo $line").stdin_stays_open().start();
    run.until("it prints", crate::support::run::Running::has_output);
    run.write(b"on\n");
    run.close_input();
    assert_eq!(run.wait().text(), "ready\non\n");
}

#[test]
fn row_atomic_prints_only_what_the_success_has_printed() {
    let script = "echo attempt $FTSH_ATTEMPT; test $FTSH_ATTEMPT -ge 3";
    sh("try 5 times atomic backoff none", script).stdout("attempt 3\n").success();
    sh("try 2 times atomic backoff none", "echo never; false").stdout("").failure(1);
}

#[test]
fn row_nothing_that_a_failed_attempt_started_stays() {
    // `Finished` finds what is left with the mark of the run.
    sh("try 2 times backoff none", "setsid sleep 60 & false").failure(1).nothing_left();
    sh("limit 200 ms", "setsid sleep 60 & sleep 60").failure(124).nothing_left();
}

#[test]
fn row_nothing_stays_when_the_tool_is_killed() {
    let run = sh("try 2 times", "echo > ready; setsid sleep 60 & sleep 60").start();
    run.until_lines("ready", 1);
    run.signal(Signal::SIGKILL);
    run.until_gone("sleep");
    run.leave();
}

#[test]
fn row_a_signal_ends_the_command_and_the_tool() {
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let run = sh("try 5 times", "echo >> ready; sleep 60").start();
        run.until_lines("ready", 1);
        run.signal(signal);
        let finished = run.wait();
        finished.killed_by(signal);
        assert_eq!(lines(&finished, "ready"), 1, "{signal}");
    }
}

#[test]
fn row_a_command_that_dies_of_a_signal_is_a_status() {
    let finished = sh("try 2 times backoff none", "kill -9 $$").failure(137);
    let line = line_of(&finished);
    assert!(line.starts_with("ftsh: sh was killed by SIGKILL after 2 attempts in "), "{line}");
}

#[test]
fn row_a_missing_program_and_one_that_cannot_run_have_statuses_of_their_own() {
    ftsh("try 1 time -- nosuchprogram", &[]).failure(127);
    ftsh("try 1 time -- ./data", &[]).file("data", "").failure(126);
}

#[test]
fn row_only_some_failures_are_tried_again() {
    let script = "echo x >> attempts; exit $(cat attempts | wc -l)";
    let run = Ftsh::new().args("try 9 times backoff none while".split(' '));
    let words = ["$error_code .eql. 1", "--", "sh", "-c", script];
    let finished = run.args(words).failure(2);
    assert_eq!(lines(&finished, "attempts"), 2);
}

#[test]
fn row_words_run_at_once_and_no_more_than_wanted() {
    // Each waits for the other, so that both have to run.
    let script = "mkfifo $0.fifo 2> /dev/null; echo {} >> begun; \
                  while test $(wc -l < begun) -lt 2; do sleep 0.01; done";
    sh("forall in a b at most 2", script).success();
    let script = "mkdir alone && rmdir alone";
    sh("forall in a b c d e at most 1", script).success();
}

#[test]
fn row_words_begin_as_they_arrive() {
    let mut run = ftsh("forall from input at most 2", &["--", "sh", "-c", "echo $0 >> begun"])
        .stdin_stays_open()
        .start();
    for (count, word) in ["one", "two words"].into_iter().enumerate() {
        run.write(format!("{word}\n\n").as_bytes());
        run.until_lines("begun", count + 1);
    }
    run.close_input();
    let finished = run.wait();
    finished.expect_code(0);
    assert_eq!(finished.read("begun"), "one\ntwo words\n");
}

#[test]
fn row_words_may_hold_anything_and_end_with_a_nul() {
    let run = ftsh("forall from input by", &["\\0", "at", "most", "1", "--", "printf", "<%s>"]);
    run.stdin("a b\0\0two\nlines\0-x").stdout("<a b><><two\nlines><-x>").success();
    // Lines: the empty ones are no words.
    ftsh("forall from input at most 1 -- printf <%s>", &[])
        .stdin("a\n\n b \nc")
        .stdout("<a>< b ><c>")
        .success();
}

#[test]
fn row_output_of_parallel_commands_does_not_mix() {
    let script = "printf '{} begins '; sleep 0.05; echo and ends";
    let run = sh("forall in a b c output grouped in order", script);
    run.stdout("a begins and ends\nb begins and ends\nc begins and ends\n").success();
    let finished = sh("forall in a b output tagged", script).success();
    let mut lines: Vec<_> = finished.text().lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["a\ta begins and ends", "b\tb begins and ends"]);
}

#[test]
fn row_a_failure_ends_the_others_or_is_counted() {
    let finished = sh("forall in bad good", "test {} = good && sleep 60").failure(1);
    finished.nothing_left();
    assert_eq!(line_of(&finished), "ftsh: bad: sh exited with 1");
    let finished = sh("forall in bad good worse keep going at most 1", "test {} = good").failure(1);
    let line = line_of(&finished);
    assert_eq!(
        line,
        "ftsh: 2 of 3 branches failed; the first, bad: sh -c 'test bad = good' exited with 1"
    );
}

#[test]
fn row_the_first_alternative_to_succeed_wins() {
    sh("forany in a b c in order", "echo {}; test {} = b").stdout("a\nb\n").success();
    let script = "test {} = slow && sleep 60; echo {}";
    sh("forany in slow fast in order hedge after 50 ms", script).stdout("fast\n").success();
    sh("forany in a b", "false").failure(1);
}

#[test]
fn row_a_run_goes_on_after_a_kill() {
    let heads = "--journal run.journal forall in a b c at most 1 try 2 times";
    let script = "echo {} >> done; if test {} = b -a ! -e again; then echo > again; kill -9 $PPID; sleep 60; fi";
    let killed = sh(heads, script).start().wait();
    let words = heads.split(' ').chain(["--", "sh", "-c", script]);
    let finished = Ftsh::after(killed).args(words).success();
    assert_eq!(finished.read("done").lines().next(), Some("a"));
}

#[test]
fn row_a_mistake_is_one_line_and_nothing_runs() {
    for (line, expected) in [
        (
            "try for 10 minutse -- touch ran",
            "try for 10 «minutse»: unknown unit `minutse`; did you mean `minutes`?",
        ),
        (
            "try 3 times touch ran",
            "no `--` before the command: write `ftsh try 3 times -- touch ran`",
        ),
        (
            "forall in a b c sh -c {}",
            "no `--` before the command: write `ftsh forall in a b c -- sh -c {}`",
        ),
        (
            "try 5x -- touch ran",
            "try «5x»: `5x` is neither a number of attempts nor a time, like `5 times` and `5 min",
        ),
        ("try --times 5 touch ran", "try «--times» 5 touch ran: `--times` is neither a nu"),
        (
            "retry 5 times -- touch ran",
            "`retry`: no such file or directory; write a command after a head: \
             `ftsh try 5 times -- COMMAND`",
        ),
        ("timeout 5m -- touch ran", "write a command after a head: `ftsh limit 5 minutes -- "),
        ("-- touch ran", "write a command after a head: `ftsh try 5 times -- touch`"),
        ("try 3 times --", "try 3 times «»: the command is missing after `--`"),
        (
            "limit -- touch ran",
            "«limit»: the time is missing; write `ftsh limit TIME [signal NAME] -- ",
        ),
        (
            "limit 5 -- touch ran",
            "limit «5»: `5` needs a unit; expected `seconds`, `minutes`, `hours` or `days` after",
        ),
        (
            "limit 5 times -- touch ran",
            "limit 5 «times»: `limit` takes a time; a number of attempts belongs to `try`: write \
             `ftsh try [for] LIMIT",
        ),
        ("limit 5 min or 3 times -- touch ran", "limit 5 min or 3 «times»: `limit` takes a time"),
        ("try 3 times limit 5 -- touch ran", "try 3 times limit «5»: `5` needs a unit"),
        ("forall x y -- touch ran", "forall x «y»: unexpected `y`; expected `in` and a list"),
        (
            "forall in a b atmost 2 -- touch ran",
            "forall in a b «atmost» 2: `atmost` is not a clause; write `forall … at most 2`",
        ),
        (
            "forany in a b hedge 5 s -- touch ran",
            "forany in a b «hedge» 5 s: `hedge` is not a clause; write `forany … hedge after 5 s`",
        ),
        (
            "forall in a on nowhere -- touch ran",
            "ftsh: there is no program `ftsh-carry-nowhere` along `PATH`; there are ",
        ),
        ("on", "on «»: the engine is missing; after `on` comes `slurm`, "),
        ("on ssh -- touch ran", "on «ssh»: expected a list of hosts, like "),
        ("forall in a on -- touch ran", "forall in a on «»: the engine is missing; after `on` "),
        ("try 3 times", "no `--` and no command: write `ftsh try 3 times -- COMMAND`"),
        ("limit", "«limit»: the time is missing; write `ftsh limit TIME [signal NAME] -- "),
        ("forany in a at least 2 -- touch ran", "`forany` takes no `at least`"),
        (
            "try -l 20 3 times -- touch ran",
            "try «-l» 20 3 times: `-l` is an option of ftsh; write the option before `try`",
        ),
        ("try 3 times --lock=f touch ran", "`--lock` is an option of ftsh"),
        (
            "forall -- touch ran",
            "forall «»: expected the name of the loop's variable; write `ftsh forall [NAME] in WORD",
        ),
    ] {
        let finished = ftsh(line, &[]).failure(2);
        let said = line_of(&finished);
        assert!(said.contains(expected), "{line}: {said}");
        assert!(!finished.directory.path().join("ran").exists(), "{line}");
    }
}

#[test]
fn the_command_is_a_program_never_a_builtin() {
    // The builtin would succeed.
    for line in ["try 3 times -- cd /", "try 3 times -- source x", "limit 5 s -- exit 0"] {
        let finished = ftsh(line, &[]).failure(127);
        let (head, command) = line.split_once(" -- ").expect("a command");
        let name = command.split(' ').next().unwrap_or_default();
        let told =
            format!("ftsh: {name}: not found along PATH; a script runs the builtin `{name}`: ");
        let said = line_of(&finished);
        assert!(said.starts_with(&told) && said.ends_with("'` [notfound]"), "{said}");
        assert!(said.contains(&format!("`ftsh -c '{head}")) && said.contains(command), "{said}");
    }
    ftsh("forall in a at most 1 -- echo -n", &[])
        .program("echo", "#!/bin/sh\necho own \"$@\"\n")
        .env("PATH", ".:/usr/bin:/bin")
        .stdout("own -n a\n")
        .success();
    for word in ["if", "end", "[", "set", "trap", "wait"] {
        let run = Ftsh::new().args(["try", "1", "time", "--", word, "a=b"]);
        run.program(word, "#!/bin/sh\necho ran $1\n")
            .env("PATH", ".:/usr/bin:/bin")
            .stdout("ran a=b\n")
            .success();
    }
    for word in [
        "accept", "keep", "list", "use", "args", "channel", "case", "when", "limit", "break",
        "finally", "return", "shift",
    ] {
        for arguments in [&["24", "false"][..], &["a", "in", "b"], &["a"], &[]] {
            let run = Ftsh::new().args(["limit", "1", "min", "--", word]).args(arguments);
            let expected = format!("ran {word} {}\n", arguments.join(" "));
            run.program(word, "#!/bin/sh\necho ran ${0##*/} \"$*\"\n")
                .env("PATH", ".:/usr/bin:/bin")
                .stdout(&expected)
                .success();
        }
    }
}

#[test]
fn marks_are_the_words_of_loops() {
    let words = ["--", "sh", "-c", "echo {x} {y} {} $x$y {{}} {{x}} {z} '{}'"];
    let run = ftsh("forall x in 1 at most 1 forany y in a in order", &words);
    run.stdout("1 a a 1a {} {x} {z} a\n").success();
    // Without a mark the word is the last argument; the name of the command may have one.
    ftsh("forall in one at most 1 -- printf %s;", &[]).stdout("one;").success();
    ftsh("forall in printf at most 1 -- {} %s {}", &[]).stdout("printf").success();
    ftsh("try 1 time -- printf %s {}", &[]).stdout("{}").success();
}

#[test]
fn branches_and_alternatives_read_nothing() {
    sh("forall in a at most 1", "cat; echo end").stdin("lost").stdout("end\n").success();
    sh("forany in a", "cat; echo end").stdin("lost").stdout("end\n").success();
    sh("forall from input at most 1", "cat; echo $0").stdin("a\nb\n").stdout("a\nb\n").success();
}

#[test]
fn heads_nest_from_left_to_right() {
    let script = "echo x >> attempts{}; test $(wc -l < attempts{}) -ge 2";
    let finished = sh("forall in a b try 3 times backoff none limit 10 s", script).success();
    assert_eq!((lines(&finished, "attemptsa"), lines(&finished, "attemptsb")), (2, 2));
    // The list is read again by each attempt.
    let script = "echo $0 >> words; test $(wc -l < words) -gt 3";
    let finished = sh("try 3 times backoff none forall from input at most 1 keep going", script)
        .through(["sh", "-c", "printf 'a\\nb\\n' | \"$0\" \"$@\""])
        .success();
    assert_eq!(finished.read("words"), "a\nb\na\nb\na\nb\n");
}

#[test]
fn the_printed_script_does_the_same() {
    let odd = OsString::from_vec(b"odd \xff\r\n'\\\\".to_vec());
    let cases: [(&str, &[&str]); 6] = [
        (
            "try 3 times backoff none",
            &["sh", "-c", "cat; echo $0 $FTSH_ATTEMPT; test $FTSH_ATTEMPT = 2"],
        ),
        ("limit 10 s", &["sh", "-c", "cat; exit 4"]),
        ("forall x in a b.c at most 1 output tagged", &["sh", "-c", "cat; echo {x} {} $x \"$0\""]),
        ("forany from input in order", &["sh", "-c", "cat; echo {} \"$0\"; test {} = b"]),
        ("forall from input by b at most 1", &["echo", "<{}>"]),
        ("try 2 times backoff none forany in x y in order", &["false"]),
    ];
    for (heads, command) in cases {
        let run = |print: bool| {
            let options: &[&str] = if print { &["-p"] } else { &[] };
            let run =
                Ftsh::new().args(options).args(heads.split(' ')).arg("--").args(command).arg(&odd);
            run.stdin("a\nb\n").run()
        };
        let direct = run(false);
        let script = run(true);
        let again = Ftsh::script(script.text()).stdin("a\nb\n").run();
        assert_eq!(again.stdout, direct.stdout, "{}", script.text());
        assert_eq!(code(&again), code(&direct), "{}", script.text());
        // A tidied script stays as it is.
        Ftsh::new().arg("-p").arg("s").file("s", script.text()).stdout(script.text()).success();
    }
}

#[test]
fn options_stand_before_the_first_head() {
    let finished = sh("--summary --results out.tsv forall in a b at most 1", "true").success();
    assert!(finished.errors().contains("summary of forall: succeeded"), "{}", finished.errors());
    assert_eq!(lines(&finished, "out.tsv"), 3);
    let finished = sh("--cron try 1 time", "echo out").stdout("").success();
    assert_eq!(finished.errors(), "");
    sh("--lock=here try 1 time", "true").success();
    let finished = sh("--lock try 1 time", "true").failure(2);
    assert!(line_of(&finished).contains("--lock=FILE"));
    let finished = sh("-l 0 try 1 time", "false").failure(1);
    assert_eq!(finished.errors(), "");
    // A script with the name of a head is run by a path.
    Ftsh::new().file("try", "echo script\n").arg("./try").stdout("script\n").success();
    Ftsh::new().file("try", "echo script\n").args(["try", "--", "true"]).stdout("").success();
}

#[test]
fn help_and_check_know_the_heads() {
    for head in ["try", "limit", "forany", "forall", "on"] {
        let finished = Ftsh::new().args([head, "--help"]).success();
        assert!(finished.text().starts_with(&format!("Usage: ftsh [OPTION ...] {head}")));
    }
    let finished = Ftsh::new().args(["try", "3", "times", "forall", "-h"]).success();
    assert!(finished.text().contains("keep going"));
    let finished = Ftsh::new().args(["forall", "in", "a", "try", "3", "times", "--help"]).success();
    assert!(finished.text().starts_with("Usage: ftsh [OPTION ...] try"));
    let finished = Ftsh::new().args(["try", "3", "times", "ls", "--help"]).failure(2);
    assert!(line_of(&finished).contains("write `ftsh try 3 times -- ls --help`"));
    let finished = ftsh("-n try 3 times -- nosuchprogram", &[]).success();
    assert!(finished.errors().contains("nosuchprogram"), "{}", finished.errors());
    ftsh("-n try 3 tims -- true", &[]).failure(2);
}

#[test]
fn an_attempt_that_finds_the_input_eaten_is_reported_at_level_5() {
    // A script, since the heads keep the input.
    let script = "try 2 times backoff none\ncat > /dev/null\ntest $attempt -eq 2\nend";
    let run =
        Ftsh::script(script).options(["-l", "5"]).through(["sh", "-c", "echo a | \"$0\" \"$@\""]);
    let finished = run.success();
    assert!(finished.errors().contains("same input"), "{}", finished.errors());
}

#[test]
fn a_word_inside_code_is_reported() {
    let warned = |words: &[&str]| {
        let errors = Ftsh::new().args(words).success().errors();
        assert!(errors.is_empty() || errors.lines().count() == 1, "{errors}");
        errors.contains("warning: a value inside the code for `sh` is code as well; pass the value")
    };
    // The name of a file runs a program.
    assert!(warned(&["forall", "in", "x; true", "--", "sh", "-c", "test {}"]));
    assert!(warned(&["forall", "in", "x; true", "--", "env", "sh", "-ec", "test {}"]));
    assert!(warned(&["forall", "from", "input", "--", "sh", "-c", "echo {}"]));
    assert!(!warned(&["forall", "in", "a-1.b", "--", "sh", "-c", "test {}"]));
    assert!(!warned(&["forall", "in", "x; true", "--", "sh", "-c", "test \"$0\"", "{}"]));
    assert!(!warned(&["forall", "in", "a", "--", "sh", "-c", "exit $(({slot} - 1))"]));
}
