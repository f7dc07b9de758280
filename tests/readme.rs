//! README's loop in bash has the faults that the page names, and its `try` has none of them.

use std::fs;
use std::path::Path;

use nix::sys::signal::Signal;

use crate::support::Ftsh;
use crate::support::run::{Finished, Running};

/// Returns the first code block of README in a language, with a limit of 200 ms for each attempt.
fn block(language: &str) -> String {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md"));
    let readme = readme.expect("README.md");
    let start = format!("```{language}\n");
    let block = readme.split_once(&start).and_then(|(_, rest)| rest.split_once("```"));
    block.expect("a block").0.replace("timeout 60", "timeout 0.2").replace("1 minute", "200 ms")
}

/// Returns runs of the loop in bash and of the script, in which `sync.sh` and `sleep` are these
/// programs. The sleep of the loop logs its argument.
fn both(sync: &str) -> [Ftsh; 2] {
    [vec!["bash", "loop.sh"], vec!["env"]].map(|wrapper| {
        let run = Ftsh::script(block("ftsh")).file("loop.sh", block("bash"));
        let run = run.program("sync.sh", &format!("#!/bin/sh\n{sync}\n"));
        let run = run.program("bin/sleep", "#!/bin/sh\necho $1 >> delays\n");
        let path = format!("{}:/usr/bin:/bin", run.path("bin").display());
        run.env("PATH", path).env("FTSH_BACKOFF", "fixed from 1 ms").through(wrapper)
    })
}

fn has(run: &Finished, name: &str) -> bool {
    run.directory.path().join(name).exists()
}

#[test]
fn a_process_in_a_session_of_its_own_meets_the_next_attempt_in_bash() {
    let sync = "[ ! -e left ] || ! kill -0 \"$(cat left)\" || echo > beside\n\
                setsid /bin/sleep 30 &\necho $! > left\nwait";
    let [bash, ftsh] = both(sync).map(Ftsh::run);
    assert!(has(&bash, "beside"), "{}", bash.story());
    assert!(!has(&ftsh, "beside"), "{}", ftsh.story());
    ftsh.nothing_left();
}

#[test]
fn a_command_outlives_a_kill_of_bash() {
    let limits = |run: Ftsh| {
        let text = |name| fs::read_to_string(run.path(name)).expect("a file");
        let (bash, ftsh) = (text("loop.sh"), text("script.ftsh"));
        let bash = bash.replace("timeout 0.2", "timeout 30");
        run.file("loop.sh", bash).file("script.ftsh", ftsh.replace("200 ms", "30 s"))
    };
    let [bash, ftsh] = both("echo > begun; exec /bin/sleep 30").map(|run| {
        let run = limits(run).start();
        run.until("the command", |run| run.directory().join("begun").exists());
        run.signal(Signal::SIGKILL);
        // The supervisor of ftsh cleans up.
        run
    });
    ftsh.until_gone("the command of ftsh");
    let [bash, ftsh] = [bash, ftsh].map(Running::wait);
    assert!(!bash.survivors.is_empty(), "{}", bash.story());
    ftsh.nothing_left();
}

#[test]
fn the_status_is_lost_in_bash() {
    let [bash, ftsh] = both("exit 7").map(Ftsh::run);
    bash.expect_code(1);
    ftsh.expect_code(7);
    ftsh.expect_stderr("`./sync.sh` exited with 7");
}

#[test]
fn the_delays_are_the_same_everywhere_in_bash() {
    let [one, _] = both("exit 7").map(Ftsh::run);
    let [other, _] = both("exit 7").map(Ftsh::run);
    assert_eq!(one.read("delays"), "1\n2\n4\n8\n");
    assert_eq!(one.read("delays"), other.read("delays"));
}
