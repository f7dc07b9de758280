//! Scripts of the cookbook about the end of a run: containers, partial success, and resumable runs.

use nix::sys::signal::Signal;

use crate::cookbook::{Recipe, count, script};
use crate::support::run::Finished;
use crate::support::{FTSH, Ftsh};

#[test]
fn a_backup_with_warnings() {
    let recipe = |restic: &str| {
        Recipe::new("A backup with warnings").program("restic", restic).args(&["/srv"])
    };
    let finished = recipe("exit 0").stdout("there is a snapshot, complete\n").success();
    assert_eq!(count(&finished, "calls", "restic"), 1);
    let note = "there is a snapshot, without some files that could not be read\n";
    let restic = "echo x >> times; test $(wc -l < times) -gt 2 || exit 1; exit 3";
    let finished = recipe(restic).stdout(note).success();
    assert_eq!(count(&finished, "calls", "restic backup --quiet /srv"), 3);
    let text = script("A backup with warnings").replace("for 2 hours", "2 times");
    // SIGQUIT has the number 3 as well.
    let run = Recipe::running(text, Ftsh::new()).program("restic", "kill -QUIT $$");
    run.args(&["/srv"]).stdout("").failure(131);
}

#[test]
fn replace_a_hung_run() {
    let fetch = "echo x >> asked; test $(wc -l < asked) -gt 1 || exec sleep 100";
    let recipe = Recipe::new("Replace a hung run").program("fetch-prices", fetch);
    let run = recipe.0.env("FTSH_LOCK_DIR", "locks").start();
    run.until_lines("asked", 1);
    let place = run.directory();
    let next = std::process::Command::new(FTSH)
        .arg("script.ftsh")
        .current_dir(place)
        .env("FTSH_LOCK_DIR", place.join("locks"))
        .env("PATH", format!("{}:/usr/bin:/bin", place.join("bin").display()))
        .output()
        .expect("a run");
    assert!(next.status.success() && next.stderr.is_empty(), "{next:?}");
    let finished = run.wait();
    finished.killed_by(Signal::SIGTERM).nothing_left();
    assert_eq!(count(&finished, "asked", "x"), 2);
}

#[test]
fn a_build_server() {
    let buildctl = "case $1 in
        ping) kill -0 $(cat server);;
        start) sleep 5 > /dev/null 2>&1 & echo $! > server;;
        build) echo x >> built; test $(wc -l < built) -gt 1;;
        esac";
    let recipe = Recipe::new("A build server").program("buildctl", buildctl).args(&["all"]);
    let finished = recipe.0.run();
    finished.expect_code(0);
    assert_eq!(count(&finished, "calls", "buildctl start"), 1);
    assert_eq!(count(&finished, "calls", "buildctl build all"), 2);
}

#[test]
fn roll_back() {
    let recipe = |text: String, curl: &str| {
        let run = Ftsh::new().file("old/version", "old\n").file("new/version", "new\n");
        let recipe = Recipe::running(text.replacen('\n', "\nln -s old current\n", 1), run);
        recipe.program("systemctl", "").program("curl", curl).args(&["new"])
    };
    let text = script("Roll back");
    let text = || text.clone();
    let version = "current/version";
    let finished = recipe(text(), "").success();
    assert_eq!(finished.read(version), "new\n");
    let finished = recipe(text().replace("for 1 minute", "3 times"), "exit 22").failure(22);
    assert_eq!(finished.read(version), "old\n");
    assert_eq!(count(&finished, "calls", "systemctl restart shop"), 2);
    let run = recipe(text(), "echo > asked; exec sleep 100").0.start();
    run.until_lines("asked", 1);
    run.signal(Signal::SIGTERM);
    let finished = run.wait();
    finished.killed_by(Signal::SIGTERM).nothing_left();
    assert_eq!(finished.read(version), "old\n");
}

/// A client whose containers outlive it.
const DOCKER: &str = "case $1 in
    run) test ! -e \"running-$5\" || exit 9; echo > \"running-$5\"; test $6 = quick || exec sleep 100; rm \"running-$5\" ;;
    rm) rm \"running-$3\" ;;
    esac";

#[test]
fn a_limit_for_a_container() {
    let text = script("A limit for a container").replace("1 hour", "300 ms");
    let recipe = |image: &str| {
        let run = Recipe::running(text.clone(), Ftsh::new()).program("docker", DOCKER);
        run.args(&[image])
    };
    let finished = recipe("slow").failure(124);
    let calls = |start: &str| count(&finished, "calls", start);
    assert_eq!((calls("docker run"), calls("docker rm --force report-")), (3, 3));
    let left = std::fs::read_dir(finished.directory.path()).expect("a directory").filter(|entry| {
        entry.as_ref().expect("an entry").file_name().to_string_lossy().starts_with("running-")
    });
    assert_eq!(left.count(), 0);
    let finished = Recipe::new("A limit for a container").program("docker", DOCKER);
    assert_eq!(count(&finished.args(&["quick"]).success(), "calls", "docker run"), 1);
}

#[test]
fn a_command_in_a_pod() {
    let kubectl = "echo x >> times; test $(wc -l < times) -gt 1 || exit 124";
    let recipe = Recipe::new("A command in a pod").program("kubectl", kubectl).args(&["pod"]);
    let call = "kubectl exec pod -- timeout --kill-after=10 300 reindex";
    assert_eq!(count(&recipe.success(), "calls", call), 2);
}

#[test]
fn a_job_in_a_container() {
    let fetch = "echo part; trap '' TERM; echo > begun; while true; do sleep 0.1; done";
    let recipe = Recipe::new("A job in a container").program("fetch", fetch);
    let run = recipe.0.options(["-t", "1"]).start();
    run.until_lines("begun", 1);
    run.signal(Signal::SIGTERM);
    let finished = run.wait();
    finished.killed_by(Signal::SIGTERM).nothing_left();
    assert!(!finished.directory.path().join("data.part").exists(), "its `finally` has run");
}

#[test]
fn begin_again_after_a_kill_only() {
    let recipe = |batch: &str| {
        let recipe = Recipe::new("Begin again after a kill only").file("batch.ftsh", batch);
        recipe.program("ftsh", &format!("exec '{FTSH}' \"$@\""))
    };
    let killed = "sh -c 'echo x >> runs'
        try 5 times backoff none
            sh -c 'test -e been || { echo > been; kill -9 $PPID; exec sleep 100; }'
        end";
    let finished = recipe(killed).success();
    assert_eq!(finished.read("runs"), "x\n", "the run went on");
    assert_eq!(count(&finished, "calls", "ftsh"), 2);
    let finished = recipe("sh -c 'kill -9 $$'").failure(137);
    assert_eq!(count(&finished, "calls", "ftsh"), 1, "a script that failed isn't begun again");
}

/// A stand-in that reports its start and waits the first time.
const STAYS: &str = "test -e been || { echo > been; echo > stays; exec sleep 100; }";

/// Runs a recipe with a journal, kills its shell while a stand-in waits, and starts the recipe
/// again.
fn twice(recipe: impl Fn(Ftsh) -> Recipe, first: Ftsh) -> Finished {
    let run = recipe(first).0.options(["--journal=j"]).start();
    run.until_lines("stays", 1);
    run.signal(Signal::SIGKILL);
    let finished = recipe(Ftsh::after(run.leave())).0.options(["--journal=j"]).success();
    finished.nothing_left();
    finished
}

#[test]
fn a_job_that_a_reboot_interrupts() {
    let recipe = |run: Ftsh| {
        let recipe = Recipe::of("A job that a reboot interrupts", run).args(&["."]);
        let dump = format!("test $2 != orders || {STAYS}\necho data of $2");
        recipe.program("pg_dump", &dump).program("rsync", "")
    };
    let finished = twice(recipe, Ftsh::new());
    let dumps = |table| count(&finished, "calls", &format!("pg_dump -t {table}"));
    assert_eq!([dumps("customers"), dumps("orders"), dumps("payments")], [1, 2, 1]);
    assert_eq!(count(&finished, "calls", "rsync"), 1);
    assert_eq!(finished.read("orders.sql"), "data of orders\n");
}

#[test]
fn a_service_that_goes_on() {
    let recipe = |run: Ftsh| {
        let rsync = format!("case $2 in b:*) {STAYS};; esac");
        Recipe::of("A service that resumes", run).program("rsync", &rsync)
    };
    let finished = twice(recipe, Ftsh::new());
    assert_eq!(count(&finished, "calls", "rsync -a b:/srv/ /backup/b/"), 2);
}

#[test]
fn a_batch_that_may_be_interrupted() {
    let recipe = |run: Ftsh| {
        let convert = format!("case $1 in */x17.raw) {STAYS};; esac\ncp \"$1\" \"$2\"");
        Recipe::of("A batch that may be interrupted", run).program("convert", &convert)
    };
    let files = (0..40).fold(Ftsh::new().file("out/of the way", ""), |run, number| {
        run.file(&format!("in/x{number}.raw"), number.to_string())
    });
    let finished = twice(recipe, files);
    for number in 0..40 {
        assert_eq!(finished.read(&format!("out/x{number}.raw")), number.to_string());
    }
    let calls = count(&finished, "calls", "convert");
    assert!((41..=48).contains(&calls), "{calls} calls");
}

#[test]
fn only_what_failed() {
    let convert = "case $1 in */b.raw) test -e mended;; esac && cp \"$1\" \"$2\"";
    let recipe = |run: Ftsh| Recipe::of("Only what failed", run).program("convert", convert);
    let files = ["a", "b", "c"]
        .iter()
        .fold(Ftsh::new().file("out/x", ""), |run, name| run.file(&format!("in/{name}.raw"), name));
    let finished = recipe(files).failure(1);
    finished.expect_stdout(b"in/b.raw: line 4: `convert in/b.raw out/b.raw.part` exited with 1\n");
    let again = recipe(Ftsh::after(finished).file("mended", "").file("in/d.raw", "d")).success();
    assert_eq!(
        ["a", "b", "c", "d"].map(|name| again.read(&format!("out/{name}.raw"))),
        ["a", "b", "c", "d"]
    );
    assert_eq!(count(&again, "calls", "convert in/a.raw out/a.raw.part"), 1);
}

#[test]
fn a_gpu_for_each_job() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let jobs = names.iter().fold(Ftsh::new(), |run, job| run.file(&format!("jobs/{job}.json"), ""));
    // A GPU that is in use is a directory.
    let train = "gpu=gpu$CUDA_VISIBLE_DEVICES; echo $gpu >> gpus
        mkdir $gpu && sleep 0.05 && rmdir $gpu";
    let finished = Recipe::of("A GPU for each job", jobs).program("train", train).success();
    let gpus = finished.read("gpus");
    assert_eq!(gpus.lines().count(), names.len());
    assert!(gpus.lines().all(|gpu| ["gpu0", "gpu1", "gpu2", "gpu3"].contains(&gpu)), "{gpus}");
}
