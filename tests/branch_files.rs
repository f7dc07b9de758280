//! Files that travel with branches to other machines and back. A program named `ssh` plays the machines.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::cluster::with_ssh;
use crate::support::Ftsh;
use crate::support::run::Finished;
use crate::support::skipped::skipped;

/// Plays `ssh` whose first connection breaks in the middle of the files.
const CUT: &str = "#!/bin/sh\nfor word; do line=$word; done\n\
     unset FTSH_SCOPE FTSH_DEADLINE FTSH_KILL_TIMEOUT FTSH_ON\n\
     if mkdir cut 2>/dev/null; then sh -c \"$line\" | stdbuf -o0 head -c 300000\n\
     else exec sh -c \"$line\"; fi\n";
/// Plays `ssh` whose first connection breaks in the middle of the files for the node.
const CUT_IN: &str = "#!/bin/sh\nfor word; do line=$word; done\n\
     unset FTSH_SCOPE FTSH_DEADLINE FTSH_KILL_TIMEOUT FTSH_ON\n\
     if mkdir cut 2>/dev/null; then stdbuf -o0 head -c 1000000 | sh -c \"$line\"\n\
     else exec sh -c \"$line\"; fi\n";
/// Plays `ssh`, and keeps what the node receives in `sent.*`.
const COUNT: &str = "#!/bin/sh\nfor word; do line=$word; done\n\
     unset FTSH_SCOPE FTSH_DEADLINE FTSH_KILL_TIMEOUT FTSH_ON\n\
     mkfifo in.$$; exec 3<&0; tee sent.$$ <&3 > in.$$ &\n\
     exec sh -c \"$line\" < in.$$ 3<&-\n";
/// Plays `ssh` to two hosts: `full` has a full disk for the files of branches.
const FULL: &str = "#!/bin/sh\nfor word; do host=$line line=$word; done\n\
     unset FTSH_SCOPE FTSH_DEADLINE FTSH_KILL_TIMEOUT FTSH_ON\n\
     [ $host = full ] || exec sh -c \"$line\"\n\
     exec unshare -Urm sh -c 'mount -t tmpfs -o size=64k none \"$TMPDIR\" || exit\n\
         head -c 1M /dev/zero > \"$TMPDIR/fill\" 2> /dev/null; exec sh -c \"$0\"' \"$line\"\n";

/// Plays `ssh` whose first connection to end stays open until a file `go` is there.
const HOLD: &str = "#!/bin/sh\nfor word; do line=$word; done\n\
     unset FTSH_SCOPE FTSH_DEADLINE FTSH_KILL_TIMEOUT FTSH_ON\n\
     sh -c \"$line\"\nif mkdir ended; then until [ -e go ]; do sleep 0.05; done; fi\n";

fn script(text: &str) -> Ftsh {
    let run = with_ssh(Ftsh::script(text)).options(["--lease", "1s", "-t", "2"]);
    let place = run.path("tmp");
    fs::create_dir(&place).expect("a directory");
    run.env("TMPDIR", place)
}

fn at(run: &Finished, name: &str) -> PathBuf {
    run.directory.path().join(name)
}

/// Checks that nothing is left of hidden files. A test kills the process that removes the store.
pub(crate) fn nothing_hidden(run: &Finished) {
    let hidden = fs::read_dir(run.directory.path()).expect("a directory").flatten();
    let mut hidden = hidden.filter(|it| it.file_name().to_string_lossy().starts_with(".ftsh"));
    assert!(hidden.next().is_none());
}

#[test]
fn files_travel_to_a_directory_of_the_branch_and_back() {
    let run = script(
        "forall x in a b c on ssh \"h*2\" takes \"in $x\" lib gives \"new/out $x\" lib.$x\n\
         ls\nmkdir new\ncat \"in $x\" > \"new/out $x\"\necho $x >> lib/list\ncp -a lib lib.$x\n\
         echo > other\nend",
    )
    .file("in a", "one\n")
    .file("in b", "two\n")
    .file("in c", "three\n")
    .file("lib/list", "list\n")
    .file("lib/tool", "#!/bin/sh\n")
    .file("lib.a/old", "old\n");
    fs::set_permissions(run.path("lib/tool"), fs::Permissions::from_mode(0o750)).expect("a mode");
    let run = run.success();
    assert_eq!(run.text().lines().filter(|line| *line == "lib").count(), 3, "{}", run.text());
    assert_eq!(run.read("new/out a") + &run.read("new/out c"), "one\nthree\n");
    assert_eq!(run.read("lib/list"), "list\n");
    assert_eq!(run.read("lib.a/list") + &run.read("lib.b/list"), "list\na\nlist\nb\n");
    let mode = fs::metadata(at(&run, "lib.c/tool")).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o750);
    assert!(!at(&run, "lib.a/old").exists() && !at(&run, "other").exists());
    nothing_hidden(&run);
}

#[test]
fn missing_files_fail_the_branch_and_change_nothing() {
    let text = "try\nforall x in a on ssh h takes missing\necho begun\nend\ncatch\n\
                echo \"$error_kind: $error\"\nend";
    script(text)
        .stdout("io: the branch cannot take `missing`: no such file or directory\n")
        .success();
    let text = "try\nforall x in a on ssh h gives out.$x missing.$x\necho new > out.$x\nend\n\
                catch\necho \"$error_kind: $error\"\nend";
    let run = script(text)
        .file("out.a", "old\n")
        .stdout("io: the branch cannot give `missing.a`: no such file or directory\n")
        .success();
    assert_eq!(run.read("out.a"), "old\n");
    let run = script("forall x in a on ssh h gives out.$x\necho new > out.$x\nexit 7\nend")
        .file("out.a", "old\n")
        .failure(7);
    assert_eq!(run.read("out.a"), "old\n");
    nothing_hidden(&run);
}

#[test]
fn a_file_in_the_place_of_a_directory_fails_the_branch_and_changes_nothing() {
    let text = "try\nforall x in a on ssh h gives out.$x lib.$x\necho new > out.$x\n\
                echo new > lib.$x\nend\ncatch\necho \"$error_kind: $error\"\nend";
    let run = script(text)
        .file("out.a", "old\n")
        .file("lib.a/old", "old\n")
        .stdout("io: the branch cannot give `lib.a`: a file cannot replace a directory\n")
        .success();
    assert_eq!(run.read("out.a") + &run.read("lib.a/old"), "old\nold\n");
    nothing_hidden(&run);
}

#[test]
fn a_cut_while_files_come_loses_the_branch() {
    let text = "forall x in a on ssh h retry lost 1 time gives out.$x\n\
                seq 200000 > out.$x\nend";
    let run = script(text).program("bin/ssh", CUT).options(["-l", "10"]).success();
    run.expect_stderr("is unknown: its files did not arrive whole");
    assert_eq!(run.read("out.a").lines().count(), 200_000);
    nothing_hidden(&run);
}

#[test]
fn a_branch_that_does_not_begin_leaves_no_directory() {
    let text = "forall x in a on ssh h takes large\nsh -c 'echo ../branch-*'\nend";
    let run = script(text).program("bin/ssh", CUT_IN).file("large", vec![b'x'; 3 << 20]).success();
    assert_eq!(run.text().matches("../branch-").count(), 1, "{}", run.text());
    nothing_hidden(&run);
}

#[test]
fn a_large_file_crosses_once_for_all_branches_of_a_host() {
    let length = 3 << 20;
    let run = script(
        "forall x in 1 .to. 6 on ssh \"h*3\" takes large gives got.$x\nln large got.$x\nend",
    )
    .program("bin/ssh", COUNT)
    .file("large", vec![b'x'; length])
    .success();
    let sent = fs::read_dir(run.directory.path()).expect("a directory").flatten();
    let sent = sent.filter(|it| it.file_name().to_string_lossy().starts_with("sent."));
    let sent: u64 = sent.map(|it| it.metadata().expect("a file").len()).sum();
    assert!((length as u64..2 * length as u64).contains(&sent), "{sent}");
    assert_eq!(run.read("got.6").len(), length);
    nothing_hidden(&run);
}

#[test]
fn a_signal_to_the_head_leaves_no_file() {
    let run = script(
        "forall x in a b on ssh \"h*2\" takes in gives out.$x\n\
         cp in out.$x\necho r >&2\nsleep 1000\nend",
    )
    .file("in", "x")
    .start();
    run.until("branches that run", |run| run.errors().matches("r\n").count() == 2);
    run.signal(nix::sys::signal::Signal::SIGTERM);
    let run = run.wait();
    assert!(!at(&run, "out.a").exists());
    nothing_hidden(&run);
}

#[test]
fn a_branch_canceled_after_its_record_changes_nothing() {
    let run = script(
        "forall x in a b on ssh \"h*2\" gives out.$x\nsh -c 'echo new > out.$0; [ $0 = a ] && exit\n\
         until [ -e \"$HERE/ended\" ]; do sleep 0.05; done; exit 7' $x\nend",
    )
    .program("bin/ssh", HOLD)
    .file("out.a", "old\n")
    .options(["-l", "20"]);
    let here = run.path("");
    let run = run.env("HERE", here).start();
    run.until("the failure", |run| run.errors().contains("exited with 7"));
    fs::write(run.directory().join("go"), "").expect("a file");
    let run = run.wait();
    run.expect_code(7);
    assert_eq!(run.read("out.a"), "old\n", "{}", run.errors());
    nothing_hidden(&run);
}

#[test]
fn a_node_whose_disk_is_full_is_avoided() {
    let space = std::process::Command::new("unshare").args(["-Urm", "true"]).status();
    if !space.is_ok_and(|status| status.success()) {
        return skipped("namespaces for users who are not root");
    }
    let length = 3 << 20;
    let run = script(
        "forall x in a b on ssh \"full good\" takes large gives got.$x\n\
         cp large got.$x\nend",
    )
    .program("bin/ssh", FULL)
    .options(["-l", "20"])
    .file("large", vec![b'x'; length])
    .success();
    // The first of the hosts was tried.
    run.expect_stderr(
        "full did not run the branch: the branch cannot take `large`: no space left on device",
    );
    assert_eq!((run.read("got.a").len(), run.read("got.b").len()), (length, length));
    nothing_hidden(&run);
}
