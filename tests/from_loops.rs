//! The scripts that loops of bash become, with stand-ins for the programs that they call.

use crate::cookbook::{Recipe, count, fails, script_of};
use crate::support::Ftsh;

fn script(heading: &str) -> String {
    script_of("docs/start/from-bash.md", heading).replace("sleep 30 seconds", "sleep 1 ms")
}

fn recipe(heading: &str) -> Recipe {
    Recipe::running(script(heading), Ftsh::new())
}

#[test]
fn every_loop_is_tried() {
    let text = include_str!("../docs/start/from-bash.md");
    let headings: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(headings.len(), 10);
    for heading in headings {
        let tried = format!("recipe(\"{heading}\")");
        assert!(include_str!("from_loops.rs").contains(&tried), "{heading} isn't tried");
    }
}

#[test]
fn until_it_works() {
    let finished = recipe("Until it works").program("curl", &fails(3, "echo data > \"$3\""));
    let finished = finished.args(&["http://host/"]).success();
    assert_eq!(finished.read("data"), "data\n");
    assert_eq!(count(&finished, "calls", "curl -fsS -o data http://host/"), 4);
}

#[test]
fn wait_for_a_service() {
    let finished = recipe("Wait for a service").program("nc", &fails(2, "")).args(&["db"]);
    assert_eq!(count(&finished.success(), "calls", "nc -z -w 2 db 5432"), 3);
}

#[test]
fn a_function_that_retries() {
    let recipe = |rsync: &str| {
        let recipe = recipe("A function that retries").program("rsync", rsync);
        recipe.program("ssh", "").args(&["shop"])
    };
    let finished = recipe(&fails(1, "")).success();
    assert_eq!(count(&finished, "calls", "ssh shop"), 1);
    let finished = recipe("exit 12").failure(12);
    assert_eq!((count(&finished, "calls", "rsync"), count(&finished, "calls", "ssh")), (5, 0));
}

#[test]
fn a_limit_for_each_attempt() {
    let shorter = script("A limit for each attempt").replace("60 seconds", "100 ms");
    let run = recipe("A limit for each attempt").0.file("script.ftsh", shorter);
    let finished = Recipe(run).program("make", "setsid sleep 60 & sleep 60").failure(124);
    assert_eq!(count(&finished, "calls", "make check"), 3);
}

#[test]
fn wait_until_a_job_is_done() {
    let recipe = |last: &str| {
        let status = format!(
            "echo x >> times; case $(wc -l < times) in 1) echo running;; 2) exit 1;; *) echo {last};; esac"
        );
        let recipe = recipe("Wait until a job is done").program("job-status", &status);
        recipe.program("collect", "").args(&["7"])
    };
    let finished = recipe("done").success();
    assert_eq!(count(&finished, "calls", "job-status 7"), 3);
    assert_eq!(count(&finished, "calls", "collect 7"), 1);
    let finished = recipe("broken").failure(1);
    finished.expect_stderr("job 7 is broken");
    assert_eq!(count(&finished, "calls", "collect"), 0);
}

#[test]
fn one_mirror_after_the_other() {
    let recipe = |wget: &str| {
        let recipe = recipe("One mirror after the other").program("wget", wget);
        recipe.program("gunzip", "").file("index.gz", "old\n").args(&["a", "b"])
    };
    let finished = recipe("case $5 in *//a/*) exit 4;; esac; echo new > \"$4\"").success();
    assert_eq!(finished.read("index.gz"), "new\n");
    assert_eq!(count(&finished, "calls", "wget"), 4);
    let finished = recipe(": > \"$4\"; exit 4").failure(4);
    assert_eq!(finished.read("index.gz"), "old\n");
    assert_eq!(count(&finished, "calls", "gunzip"), 0);
}

#[test]
fn in_the_background_and_wait() {
    let deploy = "case $1 in b) exit 3;; esac; exec sleep 60";
    let finished = recipe("In the background, and wait").program("deploy", deploy);
    finished.args(&["a", "b", "c"]).stdout("").failure(3);
    let finished = recipe("In the background, and wait").program("deploy", "");
    finished.args(&["a", "b"]).stdout("all done\n").success();
}

#[test]
fn some_at_a_time() {
    let convert = "case $1 in bad*) exit 3;; esac; cp \"$1\" \"$2\"";
    let recipe = recipe("Some at a time, three attempts each").program("convert", convert);
    let name = "$(touch pwned).raw";
    let finished = recipe.file(name, "image").file("bad.raw", "").failure(3);
    assert_eq!(finished.read(&format!("{name}.png")), "image");
    assert_eq!(count(&finished, "calls", "convert bad.raw bad.raw.png"), 3);
    assert!(!finished.directory.path().join("pwned").exists());
}

#[test]
fn only_one_at_a_time_from_cron() {
    let recipe = recipe("Only one at a time, from cron");
    // The second of its runs is of the one that fetches, while it does.
    let again = "test -e been || { echo > been; \"$FTSH\" --lock=lock --lock-busy=skip -c fetch; }";
    let run =
        recipe.0.options(["--lock=lock", "--lock-busy=skip"]).env("FTSH", crate::support::FTSH);
    let finished = Recipe(run).program("fetch", again).success();
    assert_eq!(count(&finished, "calls", "fetch"), 1);
}

#[test]
fn clean_up_and_try_again() {
    let recipe = |last: &str| {
        let fetch = format!("ls \"$1\"; echo part > \"$1/part.$$\"\n{last}");
        recipe("Clean up, and try again").program("fetch", &fetch)
    };
    let finished = recipe(&fails(1, "")).success();
    assert_eq!(finished.text(), "", "each begins with nothing");
    let entries = std::fs::read_dir(finished.directory.path().join("data")).expect("data");
    assert_eq!(entries.count(), 1);
    let finished = recipe("exit 5").failure(5);
    assert!(!finished.directory.path().join("data").exists());
}
