//! All examples are checked and run, with stand-ins for the network.

use std::fs;
use std::path::{Path, PathBuf};

use crate::scripts::scripts;
use crate::support::Ftsh;

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}

/// A run of an example that finds stand-ins for programs in `bin`.
pub(crate) fn example(name: &str) -> Ftsh {
    example_with(&[], name)
}

/// Returns an example with options before those of its first line.
fn example_with(options: &[&str], name: &str) -> Ftsh {
    let ftsh = Ftsh::new().args(options).arg(folder().join(name));
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", ftsh.path("bin").display());
    ftsh.env("PATH", path)
}

#[test]
fn every_example_is_right() {
    let examples = scripts(&folder());
    assert!(examples.len() >= 18);
    for path in examples {
        let checked = Ftsh::new().args(["-n", "--strict"]).arg(&path).stdout("").success();
        assert_eq!(checked.warnings(), "", "an example is no place for warnings");
    }
}

#[test]
fn every_example_has_its_usage() {
    for path in scripts(&folder()) {
        let text = fs::read_to_string(&path).expect("an example");
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let shebang = text.lines().next().expect("a first line");
        assert!(shebang.starts_with("#!/usr/bin/ftsh"), "{name}");
        assert!(text.lines().any(|line| line.starts_with("#  ") && line.contains(name)), "{name}");
    }
}

#[test]
fn hello_shows_what_the_shell_is_for() {
    let finished = example("hello.ftsh").takes(500, 8000).success();
    let text = finished.text();
    for line in
        ["  attempt 3\n", "  it answered\n", "  got it from mirror-c\n", "  job 2 is done\n"]
    {
        assert!(text.contains(line), "{}", finished.story());
    }
    finished.nothing_left();
}

#[test]
fn mirror_goes_on_until_a_mirror_has_the_file() {
    let finished = example("mirror.ftsh")
        .arg("a file.iso")
        .program(
            "bin/wget",
            "#!/bin/sh\necho \"$4\" >> asked\ncase $4 in *.fr.*) echo data > \"$3\";; *) exit 4;; esac\n",
        )
        .stdout("a file.iso came from ftp.fr.debian.org\n")
        .success();
    assert_eq!(finished.read("a file.iso"), "data\n");
    assert!(finished.read("asked").contains("http://ftp.fr.debian.org/a file.iso"));
    Ftsh::new().arg(folder().join("mirror.ftsh")).stderr("usage").failure(2);
}

#[test]
fn fetch_gets_all_or_fails() {
    let wget = "#!/bin/sh\ncase $4 in *missing*) exit 8;; *) echo \"$4\" > \"$3\";; esac\n";
    let finished = example("fetch.ftsh")
        .args(["http://h/a.tar", "http://h/d/b.tar"])
        .program("bin/wget", wget)
        .success();
    assert_eq!(finished.read("a.tar"), "http://h/a.tar\n");
    assert_eq!(finished.read("b.tar"), "http://h/d/b.tar\n");
    example("fetch.ftsh")
        .args(["http://h/a.tar", "http://h/missing"])
        .program("bin/wget", wget)
        .failure(8);
}

#[test]
fn backup_keeps_only_what_was_checked() {
    let finished = example("backup.ftsh")
        .arg("customers")
        .program("bin/pg_dump", "#!/bin/sh\necho \"dump of $1\"\n")
        .program("bin/rsync", "#!/bin/sh\ncp \"$2\" vault\necho \"$3\" > target\n")
        .success();
    assert!(finished.text().contains("is in vault.example.org"));
    assert_eq!(finished.read("target"), "vault.example.org:backups/\n");
    let names: Vec<_> = fs::read_dir(finished.directory.path())
        .expect("the run's directory")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    assert!(
        names.iter().any(|name| name.starts_with("customers-") && name.ends_with(".sql.gz")),
        "{names:?}"
    );
    assert!(!names.iter().any(|name| name.contains(".part")), "{names:?}");
}

#[test]
fn submit_listens_first() {
    let condor = "#!/bin/sh\necho submitted $1\n";
    example("submit.ftsh")
        .arg("job.file")
        .env("FILE_TABLE", "table")
        .file("table", "500\t0\t8000\n")
        .program("bin/condor_submit", condor)
        .stdout("submitted job.file\n")
        .success();
    // The slot is taken: the script waits until the others are done.
    let run = example("submit.ftsh")
        .arg("job.file")
        .env("FILE_TABLE", "table")
        .file("table", "7500\t0\t8000\n")
        .program("bin/cut", "#!/bin/sh\necho x >> looked\nexec /usr/bin/cut \"$@\"\n")
        .program("bin/condor_submit", condor)
        .start();
    run.until_lines("looked", 2);
    fs::write(run.directory().join("table"), "500\t0\t8000\n").expect("the table");
    let finished = run.wait();
    finished.check_health();
    assert_eq!(finished.text(), "submitted job.file\n", "{}", finished.story());
}

#[test]
fn nightly_makes_its_reports() {
    let rsync = "#!/bin/sh\necho data > a.csv\necho data > 'b c.csv'\n";
    let finished = example_with(&["-f", "log"], "nightly.ftsh")
        .arg("data")
        .file("data/keep", "")
        .program("bin/rsync", rsync)
        .program("bin/report", "#!/bin/sh\necho \"report of $1\"\n")
        .stdout("")
        .success();
    assert_eq!(finished.read("data/b c.csv.report"), "report of b c.csv\n");
    let failed = example_with(&["-f", "log"], "nightly.ftsh")
        .arg("data")
        .file("data/keep", "")
        .program("bin/rsync", rsync)
        .program("bin/report", "#!/bin/sh\nexit 9\n")
        .failure(9);
    assert!(failed.text().starts_with("no reports today"), "{}", failed.story());
}

#[test]
fn watch_works_on_what_is_dropped() {
    let run = example("watch.ftsh")
        .args(["inbox", "work"])
        .file("inbox/one two.drop", "first")
        .program("bin/work", "#!/bin/sh\necho \"$1\" >> ../worked\n")
        .start();
    run.until_lines("worked", 1);
    fs::write(run.directory().join("inbox/late.drop"), "second").expect("a file");
    run.until_lines("worked", 2);
    fs::write(run.directory().join("inbox/stop"), "").expect("a file");
    let finished = run.wait();
    finished.check_health();
    finished.expect_code(0);
    assert_eq!(finished.read("worked"), "one two.drop\nlate.drop\n");
    assert_eq!(finished.read("inbox/done/one two.drop"), "first");
    assert_eq!(finished.read("inbox/done/late.drop"), "second");
    let stuck = example("watch.ftsh").args(["inbox", "work"]).file("inbox/a.drop", "");
    let stuck = stuck.program("bin/work", "#!/bin/sh\necho x >> ../worked\n");
    let stuck = stuck.program("bin/mv", "#!/bin/sh\nexit 1\n").failure(1);
    assert_eq!(stuck.read("worked"), "x\n", "what can't be moved isn't worked on again");
}

#[test]
fn deploy_switches_host_by_host() {
    let ssh = "#!/bin/sh\necho \"$1: $2\" >> ssh.log\ncase $2 in readlink*) echo 1.9.0;; esac\n";
    let finished = example("deploy.ftsh")
        .arg("2.1.0")
        .program("bin/rsync", "#!/bin/sh\necho $3 >> copied\n")
        .program("bin/ssh", ssh)
        .program("bin/curl", "#!/bin/sh\nexit 0\n")
        .stdout("web1 runs 2.1.0\nweb2 runs 2.1.0\nweb3 runs 2.1.0\n")
        .success();
    assert_eq!(finished.read("copied").lines().count(), 3);
    assert!(finished.read("ssh.log").contains("web3: ln -sfn releases/2.1.0 current"));
}

#[test]
fn build_tries_the_network_again_and_the_code_once() {
    let git =
        "#!/bin/sh\nmkdir checkout || exit 1\necho x >> clones\n[ $(wc -l < clones) -ge 2 ]\n";
    let make = "#!/bin/sh\necho \"$*\" >> ../made\n[ \"$1\" != \"$BREAK\" ]\n";
    let finished = example("build.ftsh")
        .arg("https://example.org/project.git")
        .program("bin/git", git)
        .program("bin/make", make)
        .stdout("built\n")
        .success();
    assert_eq!(finished.read("clones").lines().count(), 2);
    assert!(finished.read("made").starts_with("fetch\n-j 4\n"));
    let broken = example("build.ftsh")
        .arg("url")
        .env("BREAK", "-j")
        .program("bin/git", git)
        .program("bin/make", make)
        .failure(1);
    assert!(broken.text().starts_with("the build is broken"), "{}", broken.story());
    assert_eq!(broken.read("made"), "fetch\n-j 4\n");
}
