//! Scripts of the cookbook for servers with limits.

use std::process::Command;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use crate::cookbook::{Recipe, count};
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
