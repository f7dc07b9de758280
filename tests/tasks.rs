//! Examples of whole tasks, with stand-ins for databases, servers and other machines.

use std::fs;
use std::os::unix::fs::symlink;

use crate::examples::{example, folder};
use crate::support::Ftsh;
use crate::support::run::Finished;

/// Default delay between attempts.
const AT_ONCE: &str = "fixed from 1 ms";

/// A run of an example, with short delays of the default policy.
fn task(name: &str) -> Ftsh {
    example(name).env("FTSH_BACKOFF", AT_ONCE)
}

/// Adds a stand-in that appends its words to `calls`.
fn program(run: Ftsh, name: &str, body: &str) -> Ftsh {
    run.program(&format!("bin/{name}"), &format!("#!/bin/sh\necho {name} $* >> calls\n{body}\n"))
}

/// Returns the calls of stand-ins.
fn calls(finished: &Finished) -> Vec<String> {
    finished.read("calls").lines().map(str::to_owned).collect()
}

/// Returns the names in a folder of the run, sorted.
fn names(finished: &Finished, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(finished.directory.path().join(folder)).expect("a folder");
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let mut names: Vec<_> = entries.flatten().map(name).collect();
    names.sort();
    names
}

#[test]
fn a_database_is_dumped_and_old_dumps_go() {
    let run = task("pg-backup.ftsh").args(["shop", "vault:dumps", "--folder=d", "--keep=2"]);
    let run = ["01", "02", "03"]
        .iter()
        .fold(run, |run, day| run.file(&format!("d/shop-2020-01-{day}_000000.dump"), ""));
    let run =
        program(run, "pg_dump", "test -e half || { echo > half; exit 1; }\necho data > \"$3\"");
    let run = program(program(run, "pg_restore", ""), "rsync", "");
    let finished = run.success();
    let dumps = names(&finished, "d");
    assert_eq!(dumps.len(), 2, "{dumps:?}");
    assert_eq!(dumps[0], "shop-2020-01-03_000000.dump");
    assert_eq!(finished.read(&format!("d/{}", dumps[1])), "data\n");
    let calls = calls(&finished);
    assert_eq!(calls.iter().filter(|call| call.starts_with("pg_dump")).count(), 2);
    assert!(calls.last().is_some_and(|call| call.ends_with("d/ vault:dumps/")), "{calls:?}");
}

/// A backup that is locked first, and then ends with a status.
fn locked_first(message: &str, locked: u8, status: u8, create: &str) -> String {
    format!(
        "test $1 = {create} || exit 0
         test -e locked || {{ echo > locked; echo \"{message}\" >&2; exit {locked}; }}
         echo \"a file is gone\" >&2; exit {status}"
    )
}

#[test]
fn a_partial_backup_by_restic_has_its_status() {
    let run = |status| {
        let restic = locked_first("repository is already locked", 1, status, "backup");
        program(task("restic.ftsh").args(["data", "a b"]), "restic", &restic)
    };
    let finished = run(3).failure(3);
    finished.expect_stderr("\npartial: a file is gone\n");
    let expected = [
        "restic backup --quiet --tag nightly data a b",
        "restic backup --quiet --tag nightly data a b",
        "restic forget --quiet --tag nightly --keep-last 3 --prune",
        "restic check --quiet",
    ];
    assert_eq!(calls(&finished), expected);
    let finished = run(12).failure(1);
    finished.expect_stderr("no backup: ");
    assert_eq!(calls(&finished).len(), 2);
}

#[test]
fn warnings_of_borg_have_their_status() {
    let run = |status| {
        let borg = locked_first("Failed to acquire the lock", 2, status, "create");
        program(task("borg.ftsh").args(["data"]), "borg", &borg)
    };
    let finished = run(1).failure(1);
    finished.expect_stderr("\nwarnings: a file is gone\n");
    assert_eq!(calls(&finished).len(), 4);
    let finished = run(2).failure(2);
    assert_eq!(calls(&finished).len(), 2, "no attempt after another error");
}

#[test]
fn a_failed_migration_is_rolled_back() {
    let run = |psql: &str| {
        let run = task("migrate.ftsh").args(["up.sql", "down.sql", "http://host/health"]);
        let run = program(run, "curl", "case $* in *-o*) ;; *) echo up ;; esac");
        program(program(run, "jq", "cat > /dev/null"), "psql", psql)
    };
    let psql = |finished: &Finished| {
        let calls = calls(finished).into_iter();
        calls.filter(|call| call.starts_with("psql")).collect::<Vec<_>>()
    };
    let finished = run("test -e maintenance").stdout("migrated\n").success();
    assert_eq!(psql(&finished), ["psql -q -v ON_ERROR_STOP=1 -f up.sql"]);
    let finished = run("test $5 = down.sql || exit 3").stdout("").failure(3);
    finished.expect_stderr("rolling back: `psql -q -v ON_ERROR_STOP=1 -f up.sql` exited with 3");
    assert_eq!(psql(&finished).len(), 2);
    assert!(!finished.directory.path().join("maintenance").exists());
}

#[test]
fn missing_files_are_listed_and_the_others_kept() {
    let curl = "case $6 in
        */3) printf 404 ;;
        */2) test -e \"$3.asked\" && { echo 2 > \"$3\"; printf 200; } || { echo > \"$3.asked\"; printf 503; } ;;
        *) echo \"$6\" > \"$3\"; printf 200 ;;
        esac";
    let run = program(task("fetch-all.ftsh"), "curl", curl);
    let first = run.args(["http://host", "4", "parts"]).stdout("not fetched: 3\n").failure(1);
    first.expect_stderr("the server has no 3");
    assert_eq!(
        (first.read("parts/1"), first.read("parts/2")),
        ("http://host/1\n".into(), "2\n".into())
    );
    assert_eq!(calls(&first).len(), 5);
    let script = folder().join("fetch-all.ftsh");
    let path = format!("{}:/usr/bin:/bin", first.directory.path().join("bin").display());
    let again = Ftsh::after(first).arg(script).args(["http://host", "4", "parts"]);
    let again = again.env("PATH", path).stdout("not fetched: 3\n").failure(1);
    assert_eq!(calls(&again).len(), 6, "only the missing file is asked for again");
}

#[test]
fn all_hosts_go_back_after_a_failure() {
    let text = fs::read_to_string(folder().join("blue-green.ftsh")).expect("an example");
    let text = text.replace("for 10 seconds every 1 second", "2 times every 1 ms");
    let run = |broken: &str| {
        let run = Ftsh::script(&text).args(["new", "web1", "web2", "web3"]);
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", run.path("bin").display());
        let run = run.env("PATH", path).file(&format!("{broken}/broken"), "");
        for host in ["web1", "web2", "web3"] {
            fs::create_dir_all(run.path(host)).expect("the folder of a host");
            symlink("blue", run.path(host).join("current")).expect("a link");
        }
        let run = program(run, "ssh", "exec sh -eus \"$PWD/$1\" \"$7\"");
        program(run, "rsync", "")
    };
    let live = |finished: &Finished| {
        ["web1", "web2", "web3"].map(|host| {
            let link = finished.directory.path().join(host).join("current");
            fs::read_link(link).expect("a link").to_string_lossy().into_owned()
        })
    };
    let finished = run("other").success();
    assert_eq!(live(&finished), ["green", "green", "green"]);
    assert!(calls(&finished).contains(&"rsync -a --delete new/ web2:/srv/shop/green/".to_owned()));
    assert!(!finished.directory.path().join("web1/previous").exists());
    let finished = run("web3").failure(1);
    assert_eq!(live(&finished), ["blue", "blue", "blue"]);
    finished.expect_stderr("rolling back: ");
    assert!(finished.text().contains("web3: back\n"), "{}", finished.story());
}

#[test]
fn poison_is_put_aside() {
    let convert = "case $1 in *bad) echo unreadable >&2; exit 65;; esac\ncp \"$1\" \"$2\"";
    let run = task("drop-folder.ftsh").args(["drop", "convert"]);
    let run = run.file("drop/in/one two", "data").file("drop/in/bad", "");
    let run = program(run, "convert", convert).start();
    run.until("two files at their places", |run| {
        let is_there = |name: &str| run.directory().join("drop").join(name).exists();
        is_there("done/one two") && is_there("poison/bad.why")
    });
    fs::write(run.directory().join("drop/stop"), "").expect("a file");
    let finished = run.wait();
    finished.check_health();
    finished.expect_code(0);
    finished.nothing_left();
    assert_eq!(finished.read("drop/done/one two"), "data");
    assert!(finished.read("drop/poison/bad.why").contains("unreadable"));
    assert_eq!(names(&finished, "drop/in"), [""; 0]);
    assert_eq!(calls_below(&finished), 2, "each file is worked on once");
}

/// Returns the number of calls in the drop folder.
fn calls_below(finished: &Finished) -> usize {
    finished.read("drop/calls").lines().count()
}

#[test]
fn each_step_of_a_build_is_in_the_report() {
    let run = |make: &str| {
        let run = task("ci.ftsh").args(["--out", "out", "api", "ui"]);
        program(program(run, "make", make), "jq", "echo \"$4: $7\"")
    };
    let steps = |finished: &Finished| {
        let report = finished.read("out/report");
        let mut steps: Vec<_> = report.lines().map(str::to_owned).collect();
        steps.sort();
        steps
    };
    let finished = run("").success();
    let expected = ["all: ", "build: ", "lint: ", "package: ", "test-api: ", "test-ui: ", "unit: "];
    assert_eq!(steps(&finished), expected);
    let finished = run("test $1 != test-ui").failure(1);
    let steps = steps(&finished);
    assert!(steps.iter().any(|step| step.starts_with("test-ui: `make test-ui`")), "{steps:?}");
    assert!(!steps.iter().any(|step| step.starts_with("package")), "{steps:?}");
    assert_eq!(calls(&finished).iter().filter(|call| *call == "make test-ui").count(), 2);
}

#[test]
fn all_pages_or_nothing_is_printed() {
    let run = |second: &str| {
        let answer = "answer() { printf '%s 0' $1 >&2; }";
        let curl = format!(
            "{answer}
             case $4 in
             *page=1) test -e later && answer 200 || {{ echo > later; answer 429; }}; printf 'one\\n2\\n' ;;
             *) answer {second}; printf 'two\\nnull\\n' ;;
             esac"
        );
        let jq = "case $1 in -c) head -n 1;; -r) tail -n 1;; esac";
        let run = task("pages.ftsh").arg("http://host/items?size=1");
        program(program(run, "curl", &curl), "jq", jq)
    };
    let finished = run("200").stdout("one\ntwo\n").success();
    assert_eq!(calls(&finished).iter().filter(|call| call.starts_with("curl")).count(), 3);
    run("404").stdout("").failure(1).expect_stderr("no page at http://host/items?size=1&page=2");
}
