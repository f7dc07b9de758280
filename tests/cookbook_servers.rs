//! Scripts of the cookbook for servers with limits.

use std::process::Command;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use crate::cookbook::{Recipe, count, fails};
use crate::support::Ftsh;
use crate::support::http::Server;

/// Returns a stand-in for curl with these answers in order, and 200 afterwards.
fn curl(answers: &str) -> String {
    format!(
        "echo x >> times
         set -- {answers}
         shift $(($(wc -l < times) - 1)) 2> /dev/null || set --
         printf '%s 0' ${{1:-200}}
         echo body ${{1:-200}} > reply"
    )
}

#[test]
fn an_api_with_a_rate_limit() {
    let recipe = |answers| {
        let recipe = Recipe::new("An API with a rate limit").program("curl", &curl(answers));
        recipe.args(&["http://api.example.org/"])
    };
    let finished = recipe("429 503 429").stdout("body 200\n").success();
    assert_eq!(count(&finished, "calls", "curl"), 4);
    let finished = recipe("429 404").stdout("").failure(1);
    finished.expect_stderr("status 404: asking again won't help");
    assert_eq!(count(&finished, "calls", "curl"), 2);
}

/// Returns the header of a server that names a moment between one and two seconds from now.
fn after_two_seconds() -> String {
    let date = Timestamp::now() + SignedDuration::from_secs(2);
    format!("Retry-After: {}\r\n", date.strftime("%a, %d %b %Y %H:%M:%S GMT"))
}

/// Returns true if curl prints headers by `-w`.
fn curl_prints_headers() -> bool {
    let Ok(output) = Command::new("curl").arg("--version").output() else { return false };
    let version = String::from_utf8_lossy(&output.stdout).replace("curl ", "");
    let mut numbers = version.split('.').map_while(|number| number.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(7), Some(84))
}

#[test]
fn each_form_of_retry_after_defers() {
    if !curl_prints_headers() {
        eprintln!("skipped: there is no curl of version 7.84 or later");
        return;
    }
    let server = Server::start(vec![
        (429, String::new),
        (429, || "Retry-After: 0\r\n".into()),
        (429, || "retry-after: 1\r\n".into()),
        (429, || "Retry-After: Sat, 01 Jan 2000 00:00:00 GMT\r\n".into()),
        (429, after_two_seconds),
        (200, String::new),
    ]);
    let recipe = Recipe::new("An API with a rate limit").args(&[&server.url]);
    let recipe = Recipe(recipe.0.options(["-l", "20"]).env("TZ", "Asia/Tokyo"));
    let finished = recipe.stdout("body 200\n").success();
    let errors = finished.errors();
    assert_eq!(errors.matches("failed: asked to come back later").count(), 5, "{errors}");
    assert_eq!(errors.matches(" failed: ").count(), 5, "{errors}");
    let times = server.times();
    let gap = |at: usize| times[at].duration_since(times[at - 1]).expect("a later request");
    assert!(gap(3) >= Duration::from_secs(1), "{times:?}");
    assert!(gap(5) >= Duration::from_secs(1), "{times:?}");
}

#[test]
fn stay_below_a_servers_limit() {
    let start = Instant::now();
    let recipe = Recipe::new("Stay below a server's limit").program("curl", "");
    let finished = recipe.args(&["http://h/a", "http://h/b", "http://h/c"]).success();
    assert_eq!(count(&finished, "calls", "curl -sSfO http://h/"), 3);
    assert!(start.elapsed() >= Duration::from_millis(400));
}

/// Leaves a daemon.
const LEAVES: &str = "setsid sleep 60 > /dev/null 2>&1 &";

#[test]
fn a_build_step_that_leaves_nothing() {
    let run = Ftsh::new().args(["--end-with-caller", "--no-leftovers"]);
    Recipe::of("A build step that leaves nothing", run).program("make", LEAVES).success();
}

#[test]
fn a_wrapper_for_other_programs_commands() {
    let recipe = || {
        let run = Ftsh::new().arg("--end-with-caller");
        let recipe = Recipe::of("A wrapper for other programs' commands", run);
        recipe.program("tool", &format!("{LEAVES}\necho \"$2\"; exit $3"))
    };
    recipe().args(&["--", "tool", "-x", "a  b", "0"]).stdout("a  b\n").success();
    recipe().args(&["--", "tool", "-x", "a", "7"]).failure(7);
}

#[test]
fn a_test_against_a_database() {
    let recipe = |server: &str, test: &str| {
        let recipe = Recipe::new("A test against a real database").args(&["--", "sh", "-c", test]);
        let recipe = recipe.program("initdb", "mkdir -p \"$PGHOST/data\"");
        let recipe = recipe.program("pg_isready", "test -s \"$PGHOST/ready\"");
        recipe.program("postgres", &format!("{LEAVES}\necho > \"$PGHOST/ready\"\n{server}"))
    };
    recipe("exec sleep 60", "echo tested $PGUSER").stdout("tested test\n").success();
    recipe("exec sleep 60", "exit 3").failure(3);
    let finished = recipe("echo no room; exit 4", "sleep 60").stdout("").failure(4);
    finished.expect_stderr("no room");
}

#[test]
fn a_tunnel() {
    let recipe = Recipe::new("A tunnel").program("ssh", &fails(1, "exec sleep 60"));
    let recipe = recipe.program("pg_isready", "test $(wc -l < times) -gt 1");
    let finished = recipe.program("pg_dump", "echo dump").args(&["host", "site"]).success();
    assert_eq!(finished.read("site.sql"), "dump\n");
    assert_eq!(count(&finished, "calls", "ssh -N -o"), 2);
}

#[test]
fn a_watchdog() {
    let recipe = |free: u32, command: &str| {
        let df = format!("echo / 9 9; echo disk 9 9 {free}");
        Recipe::new("A watchdog").program("df", &df).args(&["--", "/", "sh", "-c", command])
    };
    recipe(600, "echo done").stdout("done\n").success();
    recipe(600, "exit 7").failure(7);
    let finished = recipe(20, &format!("{LEAVES}\nsleep 60")).stdout("").failure(1);
    finished.expect_stderr("only 20 MB are free in /");
}
