//! The scripts of the page on CI and containers, with stand-ins for the programs that they call.

use std::fs;
use std::path::Path;

use crate::cookbook::{Recipe, count, fails, script_of};
use crate::docs::examples;
use crate::forge::{items, parsed, text};
use crate::support::{FTSH, Ftsh};

const PAGE: &str = "docs/operate/ci-and-containers.md";

fn recipe(heading: &str) -> Recipe {
    Recipe::running(script_of(PAGE, heading), Ftsh::new())
}

#[test]
fn every_script_is_tried() {
    let tried = include_str!("ci.rs").matches("recipe(\"").count();
    assert!(tried > examples(PAGE).len(), "{tried} recipes are tried");
}

#[test]
fn accept_a_partial_success() {
    let recipe = |rsync: &str| {
        let recipe = recipe("Accept a partial success").program("rsync", rsync);
        Recipe(recipe.0.env("FTSH_BACKOFF", "none"))
    };
    let finished = recipe("exit 24").stdout("copied\n").success();
    assert_eq!(count(&finished, "calls", "rsync"), 1);
    let finished = recipe(&fails(2, "exit 24")).stdout("copied\n").success();
    assert_eq!(count(&finished, "calls", "rsync"), 3);
    recipe("exit 12").stdout("").failure(12);
    // The number of SIGXCPU is 24.
    recipe("kill -XCPU $$").stdout("").failure(128 + 24);
}

#[test]
fn read_json() {
    let recipe = |curl: &str| recipe("Read JSON").program("curl", curl).args(&["http://ci", "7"]);
    let finished = recipe(&fails(
        1,
        "test $(wc -l < times) -gt 3 && echo '{\"state\": \"done\", \"artifacts\": [{\"url\": \"url\"}]}' || echo '{\"state\": \"running\"}'",
    ));
    let finished = finished.stdout("url\n").success();
    assert_eq!(count(&finished, "calls", "curl -fsS -m 5 http://ci/api/builds/7"), 4);
    let finished =
        recipe("echo '{\"state\": \"failed\", \"reason\": \"no disk\"}'").stdout("").failure(1);
    finished.expect_stderr("build 7 failed: no disk");
    assert_eq!(count(&finished, "calls", "curl"), 1);
}

#[test]
fn wait_for_what_does_not_exist_yet() {
    let kubectl = fails(3, "test $1 != wait || test $(wc -l < times) -gt 6");
    let finished = recipe("Wait for what does not exist yet").program("kubectl", &kubectl);
    let finished = finished.args(&["shop"]).stdout("shop is available\n").success();
    assert_eq!(count(&finished, "calls", "kubectl wait deployment/shop"), 2);
    assert_eq!(count(&finished, "calls", "kubectl get deployment/shop -o name"), 5);
}

#[test]
fn resume_what_failed() {
    let recipe = |bad: &str| {
        let body = format!("case $* in {bad}) exit 3;; esac");
        let recipe = recipe("Resume what failed").program("run-suite", &body);
        recipe.file("suites.txt", "a\nb c\nd\n")
    };
    let finished = recipe("'b c'").stdout("").failure(3);
    assert_eq!(finished.read("failed.txt"), "b c\n");
    let finished = recipe("a").file("failed.txt", "b c\n").success();
    assert_eq!(finished.read("calls"), "run-suite b c\n");
    assert!(!finished.directory.path().join("failed.txt").exists());
}

#[test]
fn the_step_of_a_workflow_is_a_script() {
    let text = fs::read_to_string(PAGE).expect("a page");
    let step = text.split("run: |\n").nth(1).expect("a step").split("```").next().expect("its end");
    let lines = step.lines().map(|line| line.strip_prefix("          ").expect("indentation"));
    let script = lines.collect::<Vec<_>>().join("\n");
    let checked = Ftsh::script(script).options(["-t", "7", "-n"]).success();
    assert_eq!(checked.warnings(), "");
}

/// Returns the block of a language below a heading.
fn block(heading: &str, language: &str) -> String {
    let text = fs::read_to_string(PAGE).expect("a page");
    let section = text.split(&format!("## {heading}\n")).nth(1).expect("a heading");
    let block = section.split(&format!("```{language}\n")).nth(1).expect("a block");
    block.split("```").next().expect("an end").to_owned()
}

/// Returns a run of a line of a shell, with stand-ins for `rsync` and `apt-get` that fail at first.
fn line(shell: &[&str], line: &str) -> Ftsh {
    let stand_in = format!("#!/bin/sh\necho ${{0##*/}} $* >> calls\n{}\n", fails(1, ""));
    let run = Ftsh::new().program("bin/rsync", &stand_in).program("bin/apt-get", &stand_in);
    let bin = Path::new(FTSH).parent().expect("a folder");
    let path = format!("{}:{}:/usr/bin:/bin", run.path("bin").display(), bin.display());
    let run = run.env("PATH", path).env("FTSH_BACKOFF", "fixed from 1 ms");
    run.through([shell, &[line]].concat())
}

#[test]
fn the_job_of_gitlab_runs() {
    let job = &parsed(PAGE, &block("A job of GitLab", "yaml"))["deploy"];
    let [deploy, test] = items(&job["script"]) else { panic!("two lines") };
    let timeout = text(&job["variables"]["FTSH_KILL_TIMEOUT"]);
    let deploy = line(&["sh", "-c"], text(deploy)).env("FTSH_KILL_TIMEOUT", timeout);
    assert_eq!(count(&deploy.success(), "calls", "rsync -a build/ deploy@"), 2);
    let script = text(test).strip_prefix("ftsh ").expect("a script");
    let run = line(&["sh", "-c"], text(test));
    run.file(script, "echo tested").stdout("tested\n").success();
}

#[test]
fn each_run_of_the_dockerfile_runs() {
    let mut shell: Vec<String> = ["sh", "-c"].map(String::from).to_vec();
    let mut runs = 0;
    for instruction in block("Retry a step of a Dockerfile", "dockerfile").lines() {
        match instruction.split_once(' ').expect("an instruction") {
            ("SHELL", words) => shell = serde_json::from_str(words).expect("a list"),
            ("RUN", text) => {
                let shell: Vec<_> = shell.iter().map(String::as_str).collect();
                assert_eq!(count(&line(&shell, text).success(), "calls", "apt-get "), 2, "{text}");
                runs += 1;
            }
            (name, _) => assert!(["FROM", "COPY"].contains(&name), "{instruction}"),
        }
    }
    assert_eq!(runs, 2);
}
