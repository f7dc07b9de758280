//! `--ping`: a monitor hears of the start and the end of each run.

use std::fs;
use std::net::TcpListener;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use crate::support::monitor::Monitor;
use crate::support::rounds;
use crate::support::run::{Finished, Running};
use crate::support::{Ftsh, WAYS};

/// Command that reports its start and waits to be killed.
const STAYS: &str = "sh -c 'echo ready > ready; exec sleep 60'";

fn script(text: &str, monitor: &Monitor) -> Ftsh {
    Ftsh::script(text).options(["--ping", &monitor.url])
}

/// A line about a failed ping in the log `log`.
fn trouble(of: &Finished) -> String {
    let log = of.read("log");
    let line = log.lines().find(|line| line.contains("can't send a ping: "));
    let line = line.unwrap_or_else(|| panic!("no line about a ping in {log}"));
    line.split_once("ping: ").expect("a reason").1.to_owned()
}

#[test]
fn a_run_has_a_start_and_an_end() {
    let monitor = Monitor::start();
    script("echo out", &monitor).stdout("out\n").success().nothing_left();
    assert_eq!(monitor.kinds(), ["start", ""]);
    let monitor = Monitor::start();
    script("echo out\nsh -c 'exit 7'", &monitor).failure(7);
    assert_eq!(monitor.kinds(), ["start", "fail"]);
    let reason = "ftsh: script.ftsh:2: `sh -c 'exit 7'` exited with 7\n";
    assert_eq!(monitor.report(), reason);
    // The report is sent even where it is not shown, and withholds no other message.
    for options in [&["-l", "0"][..], &["--log-format", "json"]] {
        let monitor = Monitor::start();
        script("echo out\nsh -c 'exit 7'", &monitor).options(options).failure(7);
        assert_eq!(monitor.report(), reason);
    }
    let monitor = Monitor::start();
    Ftsh::command("exit 3").env("FTSH_PING", &monitor.url).failure(3);
    assert_eq!(
        (monitor.kinds(), monitor.report()),
        (vec!["start".into(), "fail".into()], "ftsh: -c: ended with status 3\n".into())
    );
}

#[test]
fn kinds_come_before_the_query() {
    let monitor = Monitor::start();
    let url = format!("{}?create=1", monitor.url);
    Ftsh::command("true").options(["--ping", &url]).success();
    let targets: Vec<_> = monitor.pings().into_iter().map(|ping| ping.target).collect();
    assert!(targets[0].starts_with("/ping/start?create=1&rid="), "{targets:?}");
    assert!(targets[1].starts_with("/ping?create=1&rid="), "{targets:?}");
}

#[test]
fn a_report_is_the_end_of_the_mail() {
    let monitor = Monitor::start();
    let run = script("echo one; echo two; failure why", &monitor).options(["--cron"]);
    let errors = run.failure(1).errors();
    assert!(errors.contains("printed:\none\ntwo\n"), "{errors}");
    assert_eq!(monitor.report(), errors);
    // A report that is not shown.
    let monitor = Monitor::start();
    let run = script("echo one; echo two; failure why", &monitor).options(["--cron-after", "2"]);
    assert_eq!(run.env("FTSH_LOCK_DIR", "locks").failure(1).errors(), "");
    assert_eq!(monitor.report(), errors);
    let monitor = Monitor::start();
    script("seq 1 100000; failure why", &monitor).options(["--cron"]).failure(1);
    let report = monitor.report();
    assert_eq!(report.len(), 100_000);
    assert!(report.ends_with("\n99999\n100000\n"));
}

#[test]
fn a_run_that_does_not_begin_has_no_start() {
    let of = |run: Ftsh, code: i32| {
        let monitor = Monitor::start();
        let finished = run.env("FTSH_PING", &monitor.url).run();
        finished.expect_code(code);
        let report = monitor.pings().pop().map(|ping| ping.body).unwrap_or_default();
        assert!(code == 0 || finished.errors() == report, "{}{report}", finished.story());
        (monitor.kinds(), report)
    };
    for (run, code, text) in [
        (Ftsh::command("try"), 2, "has no `end`"),
        (Ftsh::new().arg("nosuch.ftsh"), 2, "can't read the script"),
        (Ftsh::command("true").options(["--splay", "soon"]), 2, "`--splay` can't be `soon`"),
        (Ftsh::command("true").options(["--cron-aft"]), 2, "unknown option"),
    ] {
        let (kinds, report) = of(run, code);
        assert_eq!(kinds, ["fail"], "{report}");
        assert!(report.contains(text), "{report}");
    }
    let holder = Ftsh::script(STAYS).options(["--lock=lock"]).start();
    holder.until_lines("ready", 1);
    let lock = format!("--lock={}", holder.directory().join("lock").display());
    let (kinds, report) = of(Ftsh::command("true").options([&lock]), 75);
    assert_eq!(kinds, ["log"]);
    assert!(report.contains("is held by process"), "{report}");
    let (kinds, _) = of(Ftsh::command("true").options([&lock, "--lock-busy=skip"]), 0);
    assert_eq!(kinds, ["log"]);
    holder.signal(Signal::SIGTERM);
    holder.wait().killed_by(Signal::SIGTERM);
}

#[test]
fn what_is_no_run_is_not_reported() {
    let monitor = Monitor::start();
    let run = || Ftsh::script("true").env("FTSH_PING", &monitor.url);
    for options in [&["-n"][..], &["-p"], &["--preview=."]] {
        run().options(options).run().expect_code(0);
    }
    for options in [
        &["-n"][..],
        &["--preview=."],
        &["--durations"],
        &["--durations-forget"],
        &["--storm"],
        &["--lsp"],
        &["--status=j"],
        &["--replay=j"],
        &["--timeline=j"],
        &["--trace=j", "--otlp=o"],
        &["--answer=127.0.0.1"],
    ] {
        run().options(options).options(["--splay", "soon"]).failure(2);
    }
    let usage = Ftsh::script("args file").arg("--help").env("FTSH_PING", &monitor.url).success();
    assert!(usage.text().contains("file"), "{}", usage.story());
    Ftsh::new().arg("-").stdin("").options(["--storm"]).env("FTSH_PING", &monitor.url).run();
    assert_eq!(monitor.kinds(), ["log"; 0]);
}

#[test]
fn one_shell_is_reported() {
    let monitor = Monitor::start();
    let text =
        "ftsh -c true; try 1 time; ftsh -c false; catch; true; end; sh -c 'echo \"<$FTSH_PING>\"'";
    Ftsh::command(text).env("FTSH_PING", &monitor.url).stdout("<>\n").success();
    assert_eq!(monitor.kinds(), ["start", ""]);
}

#[test]
fn a_program_in_place_of_the_shell_is_reported() {
    for (code, kind) in [(0, ""), (3, "fail")] {
        let monitor = Monitor::start();
        script(&format!("exec sh -c 'exit {code}'"), &monitor).run().expect_code(code);
        assert_eq!(monitor.kinds(), ["start", kind]);
    }
}

#[test]
fn signals_are_failures() {
    let monitor = Monitor::start();
    let run = script(STAYS, &monitor).options(["--cron"]).start();
    run.until_lines("ready", 1);
    run.signal(Signal::SIGTERM);
    run.wait().killed_by(Signal::SIGTERM).nothing_left();
    assert_eq!(monitor.kinds(), ["start", "fail"]);
    assert!(monitor.report().contains("ended by SIGTERM"), "{}", monitor.report());
    // The interpreter reports the end of a supervisor, with the output.
    let monitor = Monitor::start();
    let run = script(&format!("echo out; {STAYS}"), &monitor).options(["--cron"]).start();
    run.until_lines("ready", 1);
    kill(run.pid(), Signal::SIGKILL).expect("it lives");
    run.until_gone("after SIGKILL");
    assert_eq!(monitor.kinds(), ["start", "fail"]);
    assert!(monitor.report().ends_with("ended by SIGKILL; it printed:\nout\n"));
}

#[test]
fn bodies_hold_no_secrets() {
    let text = "K=\"tell$(echo tale)\"; echo $K; sh -c \"echo more $K >&2; exit 1\"";
    let monitor = Monitor::start();
    let run = script(text, &monitor).options(["--cron", "--redact", "K"]);
    assert!(run.failure(1).errors().contains("\nmore telltale\n"));
    let report = monitor.report();
    assert!(report.contains("`sh -c 'echo more *** >&2; exit 1'` exited with 1\n"), "{report}");
    // The shell does not hide what commands print, so that output is left out.
    assert!(!report.contains("telltale") && !report.contains("printed"), "{report}");
}

#[test]
fn secrets_of_the_first_start_stay_secret() {
    let text = "echo telltale\ntry for 1 hour every 100 ms\n\
                sh -c 'echo been >> been; test -e end'\nend\nfailure why";
    let options = ["--journal=j", "--cron", "--redact", "K"];
    let run = Ftsh::script(text).env("K", "telltale").options(options).start();
    run.until_lines("been", 1);
    both(&run);
    run.until_gone("after SIGKILL");
    let finished = run.leave();
    fs::write(finished.directory.path().join("end"), "").expect("a file");
    let monitor = Monitor::start();
    let again = ["--ping", &monitor.url, "--journal=j", "--cron", "script.ftsh"];
    let finished = Ftsh::after(finished).args(again).failure(1);
    assert!(finished.errors().contains("\ntelltale\n"), "{}", finished.errors());
    let report = monitor.report();
    assert!(report.contains("why") && !report.contains("telltale"), "{report}");
}

#[test]
fn failed_pings_change_no_status() {
    let run = |url: &str, text: &str| Ftsh::script(text).options(["--ping", url, "-f", "log"]);
    let refused = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = refused.local_addr().expect("an address");
    let url = format!("http://{address}/secret");
    drop(refused);
    let finished = run(&url, "true").stdout("").success();
    assert_eq!(trouble(&finished), format!("http://{address}: connection refused"));
    run(&url, "exit 3").failure(3);
    // Nothing is said without a log of its own.
    let finished = Ftsh::script("true").options(["--ping", &url, "--cron"]).success();
    assert_eq!(finished.errors(), "");
    let finished = Ftsh::script("true").options(["--ping", &url]).success();
    assert!(finished.errors().contains("connection refused"), "{}", finished.errors());
    let monitor = Monitor::answering(404);
    let finished = run(&monitor.url, "true").success();
    assert!(trouble(&finished).ends_with(": the server answered 404"));
    // A server that accepts and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", silent.local_addr().expect("an address"));
    let finished = run(&url, "echo out").stdout("out\n").success();
    assert!(trouble(&finished).ends_with(": no answer in time"));
    finished.nothing_left();
    Ftsh::command("true")
        .options(["--ping", "localhost"])
        .refused(&["`--ping` can't be `localhost`"]);
    Ftsh::command("true")
        .options(["--ping", "http://user:pass@localhost/"])
        .refused(&["only `https://` takes a user"]);
}

#[test]
fn a_late_start_leaves_time_for_the_end() {
    let monitor = Monitor::answering_after(1, 200);
    // The shell ends while the start waits for its answer.
    let finished = script("sleep 1", &monitor).options(["-f", "log"]).success();
    assert!(trouble(&finished).ends_with(": no answer in time"));
    assert_eq!(monitor.kinds(), ["start", ""]);
}

#[test]
fn a_sender_that_has_ended_is_a_line() {
    let monitor = Monitor::start();
    let run =
        script("sh -c 'echo ready > ready; until test -e end; do sleep 0.01; done'", &monitor);
    let run = run.options(["-f", "log"]).start();
    run.until_lines("ready", 1);
    run.until("the start", |_| !monitor.pings().is_empty());
    kill(children(&run)[0], Signal::SIGKILL).expect("a sender");
    fs::write(run.directory().join("end"), "").expect("a file");
    assert_eq!(trouble(&run.wait()), "the sender has ended");
    assert_eq!(monitor.kinds(), ["start"]);
}

#[test]
fn curl_sends_to_https() {
    let curl = "cd \"$(dirname \"$0\")\"; echo \"$@\" >> argv; cat > config\n\
                sed -n 's/^data-binary = \"@\\(.*\\)\"$/\\1/p' config | xargs -r cat > body; printf 200; exit 56";
    let run =
        Ftsh::script("failure \"a \\\"b\\\"\"").program("curl", &format!("#!/bin/sh\n{curl}\n"));
    let path = format!("{}:/usr/bin:/bin", run.path("").display());
    let url = "https://user:pass@monitor.example/ping";
    let finished = run.env("PATH", path).options(["--ping", url, "-f", "log"]).failure(1);
    assert_eq!(finished.read("argv"), "-q -K -\n-q -K -\n");
    // The answer counts, whatever came after it.
    assert!(!finished.read("log").contains("can't send"), "{}", finished.read("log"));
    let config = finished.read("config");
    assert!(
        config.contains("\nurl = \"https://user:pass@monitor.example/ping/fail?rid="),
        "{config}"
    );
    assert_eq!(finished.read("body"), finished.errors());
    let missing =
        Ftsh::script("echo out").env("PATH", "/nosuch").options(["--ping", url, "-f", "log"]);
    let reason = "https://monitor.example: `curl`, which sends to https://, is not installed";
    assert_eq!(trouble(&missing.success()), reason);
    let warned =
        Ftsh::script("echo out").env("PATH", "/nosuch").options(["-n", "--ping", url]).success();
    assert!(warned.errors().contains("[missing-program]"), "{}", warned.errors());
}

#[test]
fn curl_ends_with_the_run() {
    let run = Ftsh::script("true").program("curl", "#!/bin/sh\nexec sleep 60\n");
    let path = format!("{}:/usr/bin:/bin", run.path("").display());
    let options = ["--ping", "https://monitor.example/", "-f", "log"];
    let run = run.env("PATH", path).options(options).start();
    run.until_gone("the end of curl");
    assert_eq!(trouble(&run.leave()), "no answer in time");
}

#[test]
fn a_resumed_run_keeps_its_id() {
    let monitor = Monitor::start();
    let text = "if !(.exists. been); sh -c 'echo > been; echo ready > ready; exec sleep 60'; end";
    let run = script(text, &monitor).options(["--journal=j"]).start();
    run.until_lines("ready", 1);
    both(&run);
    sleepers(&run);
    run.until_gone("after SIGKILL");
    let finished = run.leave();
    let again = ["--ping", &monitor.url, "--journal=j", "script.ftsh"];
    Ftsh::after(finished).args(again).run();
    let kinds = monitor.kinds();
    assert_eq!(kinds[..3], ["start", "fail", "start"]);
    assert_eq!(kinds.len(), 4);
}

/// The children of a shell with pings. The first one sends them, and the second one interprets.
fn children(run: &Running) -> Vec<Pid> {
    let pid = run.pid();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    children.split_whitespace().map(|pid| Pid::from_raw(pid.parse().expect("a number"))).collect()
}

fn interpreter(run: &Running) -> Option<Pid> {
    children(run).get(1).copied()
}

/// Kills both processes of a shell.
fn both(run: &Running) {
    let interpreter = interpreter(run);
    kill(run.pid(), Signal::SIGKILL).expect("it lives");
    // The interpreter may have ended by itself.
    let _ = interpreter.map(|it| kill(it, Signal::SIGKILL));
}

/// Kills the commands of a run.
fn sleepers(run: &Running) {
    let commands = run.processes().into_iter().filter(|it| it.command.contains("sleep 60"));
    for process in commands {
        let _ = kill(Pid::from_raw(process.pid), Signal::SIGKILL);
    }
}

/// Number of kills in each round.
const KILLS: usize = 20;

/// Scripts of a few milliseconds, and one that does not end.
const SCRIPTS: [&str; 5] =
    ["true", "failure", "exec sh -c 'exit 3'", "sh -c 'kill -KILL $PPID'", "sleep 60"];

#[test]
fn each_process_has_one_start_and_one_end_whatever_is_killed() {
    for number in 0..rounds::count() * KILLS {
        survive(number);
    }
}

/// Performs one kill, with choices determined by its number.
fn survive(number: usize) {
    let mut random = ChaCha8Rng::seed_from_u64(number as u64);
    let monitor = Monitor::start();
    let text = *SCRIPTS.choose(&mut random).expect("scripts");
    let options: &[&str] = [&[][..], &["--cron"], &["--lock=l", "--metrics=."]][number % 3];
    let way = WAYS.choose(&mut random).expect("ways");
    let run = script(text, &monitor).options(options).in_way(way).session().start();
    std::thread::sleep(std::time::Duration::from_millis(60).mul_f64(random.random()));
    let victim = random.random_range(0..4);
    match victim {
        0 => both(&run),
        1 => kill(run.pid(), Signal::SIGKILL).expect("it was not waited for"),
        2 => _ = interpreter(&run).map(|it| kill(it, Signal::SIGKILL)),
        // A command, or nothing.
        _ => sleepers(&run),
    }
    if text == "sleep 60" && !run.has_ended() {
        // What survived ends now.
        let _ = kill(run.pid(), Signal::SIGTERM);
    }
    if victim == 0 {
        // Nobody is left to end the commands.
        run.eventually("the end of both", Running::has_ended);
        sleepers(&run);
    }
    let what = format!("kill {number} of `{text}` {options:?}, way {way}, victim {victim}");
    run.until_gone(&what);
    let finished = run.leave();
    let kinds = monitor.kinds();
    let is_success = finished.status.is_some_and(|status| status.success());
    match &kinds.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        // Without a ping if killed before the start.
        [] | ["start", "fail"] => assert!(!is_success, "{what}"),
        // A kill after the end of the script may come before the end of the shell.
        ["start", ""] => assert!(is_success || text == "true", "{what}"),
        others => panic!("{what}: {others:?}"),
    }
}
