//! Carriers: programs that run branches elsewhere. `ftsh-carry-fake` plays one, and its engine.

use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};

use crate::branch_files::nothing_hidden;
use crate::support::run::{Finished, command};
use crate::support::{FTSH, Ftsh};

const FAKE: &str = include_str!("support/ftsh-carry-fake");

/// Returns a run of a script that finds the carrier.
fn script(text: &str) -> Ftsh {
    carried(Ftsh::script(text))
}

fn carried(run: Ftsh) -> Ftsh {
    let run = run.program("bin/ftsh-carry-fake", FAKE);
    let path = path(&run.path("bin"));
    run.env("PATH", path)
}

/// Checks that nothing runs any more, and that the engine lists no job.
fn nothing_left(run: &Finished) {
    run.nothing_left();
    let jobs = std::fs::read_dir(run.directory.path().join("jobs")).expect("a list of jobs");
    let jobs: Vec<_> = jobs.flatten().map(|job| job.file_name()).collect();
    assert!(jobs.is_empty(), "{jobs:?}: {}", run.story());
}

#[test]
fn branches_run_elsewhere_and_print_here() {
    let run = script(
        "y=outside\nforall x in 1 2 3 on fake \"a=b  c\" output grouped in order\n\
         echo $x $y\nsh -c 'echo error $0 >&2; ! env | grep CARRY' $x\nend",
    )
    .stdout("1 outside\n2 outside\n3 outside\n")
    .stderr("error 1")
    .stderr("error 3")
    .success();
    assert!(run.read("calls").contains("run a=b c avoid= host=\n"), "{}", run.story());
    nothing_left(&run);
    let run = script("forall x in 1 2 3 on fake output grouped in order\necho $x\nend")
        .stdout("1\n2\n3\n")
        .success();
    nothing_left(&run);
    // A client that takes five seconds to end is given up, as on a stalled disk.
    let in_time = run.elapsed < Duration::from_secs(5);
    assert!(!in_time || !run.read("calls").contains("cancel"), "{}", run.story());
}

#[test]
fn the_prefix_hands_words_on() {
    let run = carried(Ftsh::new().args(["on", "fake", "a=b", "c", "--", "echo", "hi"]));
    let run = run.stdout("hi\n").success();
    assert!(run.read("calls").starts_with("run a=b c avoid="), "{}", run.story());
}

#[test]
fn statuses_of_carriers_are_not_believed() {
    let run = script("forall x in a on fake exits-9\necho $x\nend").stdout("a\n").success();
    nothing_left(&run);
    let run = script("forall x in a on fake exits-9\nsh -c 'exit 7'\nend").failure(7);
    nothing_left(&run);
    // The command runs on, the carrier says 0, and the branch is lost.
    let text = "try\nforall x in a on fake cuts\nsh -c 'echo b >> begun; exec sleep 1000'\nend\n\
                catch\necho $error_kind\nend";
    let options = ["-t", "1", "--lease", "1s"];
    let run = script(text).options(options).stdout("lost\n").success();
    nothing_left(&run);
}

#[test]
fn a_lost_branch_starts_over_alone() {
    let text = "forall x in a on fake cuts retry lost 1 time\necho b >> begun\n\
                if .not. .exists. died\ntouch died\nsleep 1000\nend\nend";
    let run = script(text).options(["-t", "1", "--lease", "1s"]).success();
    assert_eq!(run.read("begun"), "b\nb\n", "{}", run.story());
    nothing_left(&run);
}

#[test]
fn joined_and_dropped_streams_are_refused_soon() {
    let start = Instant::now();
    let run = script("forall x in a on fake joins\necho $x\nend")
        .stderr("it joins standard output and standard error of the node")
        .failure(75);
    assert!(start.elapsed() < Duration::from_secs(5), "{}", run.story());
    nothing_left(&run);
    for (word, stream) in [("drops-errors", "standard error"), ("drops-output", "standard output")]
    {
        let text =
            format!("try for 4 seconds or 1 time\nforall x in a on fake {word}\necho $x\nend\nend");
        let run = script(&text)
            .options(["-l", "10"])
            .stderr(&format!("{stream} of the node does not arrive"))
            .failure(124);
        nothing_left(&run);
    }
}

#[test]
fn refusals_say_what_to_do_next() {
    let text = "try\nforall x in a on fake refuse-request\ntrue\nend\ncatch\n\
                echo $error_kind $error_code ${error}\nend";
    let run = script(text)
        .stdout("engine 75 fake did not run the branch: there is no such thing\n")
        .success();
    nothing_left(&run);
    let run = script("forall x in a on fake refuse-node\necho $x\nend")
        .options(["-l", "20"])
        .stderr("n1 did not run the branch: it is full")
        .success();
    assert!(run.read("calls").contains("avoid=n1 host="), "{}", run.story());
    for (word, reason) in [("refuse-engine", "the controller is away"), ("breaks", "it broke")] {
        let text = format!("forall x in a on fake {word}\necho $x\nend");
        let run = script(&text).options(["-l", "10"]).stdout("a\n").stderr(reason).success();
        nothing_left(&run);
    }
}

#[test]
fn a_job_that_the_queue_forgets_is_submitted_again() {
    let run = script("forall x in a on fake queued\necho $x\nend").file("has-list", "");
    let run = run.stdout("a\n").success();
    assert!(run.read("calls").matches("list 1\n").count() >= 2, "{}", run.story());
    nothing_left(&run);
}

#[test]
fn the_carrier_names_the_node() {
    let run =
        script("forall x in a on fake named\ntrue\nend").options(["--results", "r"]).success();
    assert!(run.read("r").contains(",\"node\":\"n-ftsh-"), "{}", run.read("r"));
    // Hosts are chosen here, and are not handed on as a word.
    let text = "forall x in 1 2 3 on fake 'x hosts=h1,h2*2'\ntrue\nend";
    let run = script(text).options(["--results", "r"]).success();
    assert!(run.read("calls").contains("run x avoid= host=h2\n"), "{}", run.read("calls"));
    assert!(run.read("r").contains(",\"node\":\"h1\""), "{}", run.read("r"));
}

#[test]
fn a_second_start_of_a_job_does_nothing() {
    let text = "forall x in a on fake twice\necho b >> begun\nsleep 500 ms\necho $x\nend";
    let run = script(text).stdout("a\n").success();
    assert_eq!((&*run.read("begun"), &*run.read("second-status")), ("b\n", "0\n"));
    assert_eq!(run.read("second"), "");
    nothing_left(&run);
}

#[test]
fn limits_and_signals_cancel_jobs() {
    let text = "forall x in a b on fake queued\ntrue\nend";
    let run = script(&format!("try for 1 second or 1 time\n{text}\nend")).failure(124);
    nothing_left(&run);
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let run = script(text).env("FTSH_CARRY_HOST", "outer").start();
        run.until_lines("waiting", 1);
        run.signal(signal);
        run.until_gone("the end of all");
        let run = run.wait();
        nothing_left(run.killed_by(signal));
        // No variables of a carrier around this shell, and no blocked signals.
        let calls = run.read("calls");
        let calls: Vec<_> = calls.lines().filter(|call| call.starts_with("cancel ")).collect();
        let clean = |call: &&str| call.ends_with(" host= SigBlk:\t0000000000000000");
        assert!(!calls.is_empty() && calls.iter().all(clean), "{calls:?}");
    }
}

/// The supervisor calls `cancel`, as the shell is killed.
#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn a_cancel_that_hangs_is_killed_with_its_processes() {
    let run = script("forall x in a on fake 'queued cancel-hangs'\ntrue\nend").start();
    run.until_lines("waiting", 1);
    run.signal(Signal::SIGKILL);
    run.until_gone("the end of all");
    run.wait().killed_by(Signal::SIGKILL);
}

/// The client of an engine creates the job after SIGTERM, once `cancel` has ended or a second later.
#[test]
fn a_job_is_canceled_after_its_client() {
    let text = "forall x in a b on fake creates-late\ntrue\nend";
    let run = script(&format!("try for 1 second or 1 time\n{text}\nend")).failure(124);
    nothing_left(&run);
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let run = script(text).start();
        run.until_lines("waiting", 2);
        run.signal(signal);
        run.until_gone("the end of all");
        nothing_left(run.wait().killed_by(signal));
    }
}

/// The supervisor is gone as well, so the next shell cancels the job, with a `PATH` of its own.
#[test]
fn the_next_shell_cancels_jobs_of_a_killed_one() {
    let run = script("forall x in a on fake queued\ntrue\nend").start();
    run.until_lines("waiting", 1);
    let interpreter = run.interpreter().expect("an interpreter");
    kill(run.pid(), Signal::SIGKILL).expect("it lives");
    let _ = kill(interpreter, Signal::SIGKILL);
    // The next shell looks once for jobs of shells that have ended.
    run.eventually("the end of the interpreter", |run| {
        run.processes().iter().all(|process| process.pid != interpreter.as_raw())
    });
    let finished = run.leave();
    let text = "while test -n \"$(sh -c 'ls jobs')\"\nsleep 10 ms\nend";
    let next = Ftsh::after(finished).options(["-c", text]).success();
    nothing_left(&next);
}

#[test]
fn a_carrier_that_stays_is_ended() {
    let run = script("forall x in a on fake stays\necho $x\nend").stdout("a\n").success();
    nothing_left(&run);
}

#[test]
fn processes_of_carriers_that_failed_are_killed() {
    let run = script("forall x in a on fake leaves\necho $x\nend").stdout("a\n").success();
    nothing_left(&run);
}

#[test]
fn a_carrier_that_prints_after_the_report_is_ended() {
    let run = script("forall x in a on fake drips\necho $x\nend").stdout("a\n").success();
    nothing_left(&run);
}

#[test]
fn a_limit_ends_a_carrier_that_prints_after_the_report() {
    let text = "try for 2 seconds or 1 time\nforall x in a on fake drips\ntrue\nend\nend";
    let run = script(text).failure(124);
    nothing_left(&run);
}

#[test]
fn a_job_that_cannot_be_canceled_is_named_and_canceled_at_the_end() {
    let run = script("forall x in a on fake 'refuse-request cancel-fails'\ntrue\nend")
        .options(["-l", "10"])
        .stderr("`ftsh-carry-fake cancel ftsh-")
        .stderr("failed: it is away")
        .failure(75);
    nothing_left(&run);
}

#[test]
fn files_travel_by_a_carrier_that_loses_a_branch() {
    // The first start is cut off before its end, or all but its result arrives. Each start appends
    // the file at the coordinator to `begun`.
    for (word, first) in [("cuts", "exec sleep 1000"), ("loses-report", "exit")] {
        let text = format!(
            "forall x in a on fake {word} retry lost 1 time takes \"in $x\" gives out.$x dir.$x\n\
             sh -c 'mkdir dir.$0; cat \"$HERE/out.$0\" >> \"$HERE/begun\"\n\
             cat \"in $0\" \"$HERE/begun\" > out.$0; cp out.$0 dir.$0/copy\n\
             if ! mkdir \"$HERE/died\"; then exit 0; fi; : > dir.$0/first; {first}' $x\nend"
        );
        let run = script(&text)
            .options(["-t", "1", "--lease", "1s", "-l", "10"])
            .file("in a", "taken\n")
            .file("out.a", "old\n")
            .file("dir.a/old", "old\n");
        let (here, files) = (run.path(""), run.path("tmp"));
        std::fs::create_dir(&files).expect("a directory");
        let run = run.env("HERE", here).env("TMPDIR", &files).start();
        run.until_gone("the end of all");
        assert_eq!(entries(&files), [""; 0], "files of branches on the node");
        let run = run.wait();
        run.expect_code(0);
        run.expect_stderr(" is unknown: ");
        assert_eq!(run.read("out.a"), "taken\nold\nold\n", "{}", run.story());
        assert_eq!(run.read("dir.a/copy"), run.read("out.a"));
        assert_eq!(entries(&run.directory.path().join("dir.a")), ["copy"]);
        nothing_hidden(&run);
        nothing_left(&run);
    }
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a directory").flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Makes a run find a carrier that the documents write, and the programs of the carrier's site.
fn of_the_documents(run: Ftsh, name: &str) -> Ftsh {
    const PAGE: &str = include_str!("../docs/operate/carriers.md");
    let (_, text) = PAGE.split_once(&format!("```sh ftsh-carry-{name}\n")).expect("a carrier");
    let (text, _) = text.split_once("```").expect("its end");
    assert!(text.lines().count() <= 60);
    let run = run.program(&format!("bin/ftsh-carry-{name}"), text);
    let run = run.program("bin/labkill", include_str!("carriers/labkill"));
    let run = run.program("bin/labps", include_str!("carriers/labps"));
    let run = run.program("bin/labrun", include_str!("carriers/labrun"));
    let run = run.program("bin/labsub", include_str!("carriers/labsub"));
    let lab = run.path("lab");
    std::fs::create_dir(&lab).expect("a directory");
    let path = path(&run.path("bin"));
    run.env("LAB", lab).env("PATH", path)
}

/// The carriers that the documents write work as they are.
#[test]
fn the_carriers_of_the_documents_work() {
    for name in ["lab", "labsub"] {
        let words = ["on", name, "--queue", "day", "--", "printf", "%s|", "a b", "$x"];
        let run = of_the_documents(Ftsh::new().args(words), name).start();
        run.until_gone("the job");
        let run = run.wait();
        run.expect_code(0);
        run.expect_stdout(b"a b|$x|");
    }
}

#[test]
fn the_carriers_of_the_documents_send_files() {
    for name in ["lab", "labsub"] {
        let text = format!(
            "forall x in 1 2 3 on {name} '--queue day' takes \"in $x\" lib gives \"new/out $x\"\n\
             mkdir new\ncat \"in $x\" lib/large > \"new/out $x\"\necho > other\nend"
        );
        let large = (0..300_000).map(|number| format!("{number}\n")).collect::<Vec<_>>().concat();
        let run = of_the_documents(Ftsh::script(text), name);
        let run = run.file("in 1", "one\n").file("in 2", "two\n").file("in 3", "three\n");
        let run = run.file("lib/large", &large).start();
        run.until_gone("the jobs");
        let run = run.wait();
        run.expect_code(0);
        for (x, content) in [(1, "one\n"), (2, "two\n"), (3, "three\n")] {
            let given = run.read(&format!("new/out {x}"));
            assert!(given == format!("{content}{large}"), "{} bytes by {name}", given.len());
        }
        assert!(!run.directory.path().join("other").exists());
        nothing_hidden(&run);
    }
}

/// Returns a path with a folder and the folder of the program under test.
fn path(folder: &Path) -> String {
    let own = Path::new(FTSH).parent().expect("the binary is in a directory");
    let path = std::env::var("PATH").expect("a path");
    format!("{}:{}:{path}", folder.display(), own.display())
}

/// On stand-ins for a site's programs: whole streams, unchanged words, nothing left after `cancel`.
#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn the_carriers_of_the_documents_keep_the_contract() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/carriers");
    let mut page = command(folder.join("page"));
    let checked = page.env("PATH", path(&folder)).output().expect("a shell");
    let text = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{text}{}", String::from_utf8_lossy(&checked.stderr));
}

#[test]
fn a_missing_carrier_is_an_error_before_the_run() {
    script("echo begun\nforall x in a on fakes\ntrue\nend")
        .refused(&["there is no program `ftsh-carry-fakes` along `PATH`; did you mean `on fake`?"]);
    script("echo begun\nforall x in a on fake hosts=\ntrue\nend").refused(&["expected hosts"]);
    let text = "echo begun\nforall x in a\ntrue\nend";
    let missing = "--on, FTSH_ON: there is no program `ftsh-carry-fakes`";
    script(text).options(["--on", "fakes x"]).refused(&[missing]);
    script("echo a").env("FTSH_ON", "fakes x").stdout("a\n").success();
    // Behind `in`, `on` is a word.
    script("for x in on off\necho $x\nend").stdout("on\noff\n").success();
}
