//! `--journal`, `--replay`, `--status` and `--timeline`.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::scripts::{root, scripts};
use crate::supervision::{is_stopped, send, shells};
use crate::support::run::Running;
use crate::support::side_by_side::none;
use crate::support::{Ftsh, expectations};

/// A script with failing tries, canceled branches, captures and queries.
const SCRIPT: &str = "
try 3 times every 10 ms
    sh -c 'exit 3'
catch
    echo $error_kind
end
try 1 time
    forall i in 1 2 3
        try 2 times every 10 ms
            sh -c 'echo $0; test $0 != 2' $i -> x
            if .exists. /
                echo $x > $i.txt
            end
        end
    end
catch
    ls | wc -l
end
try for 200 ms
    /bin/sleep 100 | sh -c 'sleep 100'
end
";

/// Command that reports its start and waits forever.
const WAITS: &str = "x=1\nsh -c 'echo ready > ready; exec sleep 1000'\necho never";

/// Shows a journal in the directory of a run.
fn look(option: &str, journal: &Path) -> Ftsh {
    Ftsh::new().arg(option).arg(journal)
}

/// Checks that the output contains a text.
fn says(look: Ftsh, text: &str) {
    let said = look.success().text();
    assert!(said.contains(text), "{said}");
}

/// Returns the lines of a log without their times.
fn without_times(log: &str) -> Vec<String> {
    let line = |line: &str| line.split_once('[').expect("a line of the log").1.to_owned();
    log.lines().map(line).collect()
}

#[test]
fn the_log_is_had_again_line_by_line_at_any_level() {
    for level in ["10", "20", "30", "40"] {
        let run = Ftsh::command(SCRIPT).options(["--journal=j", "-f", "log", "-l", level]).run();
        let log = fs::read_to_string(run.directory.path().join("log")).expect("a log");
        let again = look("--replay", &run.directory.path().join("j")).args(["-l", level]).success();
        assert_eq!(without_times(&again.text()), without_times(&log), "at level {level}");
        assert_eq!(again.errors(), "");
        assert!(log.lines().count() > 5, "{log}");
    }
}

#[test]
fn the_log_of_then_has_the_times_of_then_and_any_format() {
    let options = ["--journal=j", "-f", "log", "-l", "30", "--log-format=json"];
    let run = Ftsh::command(SCRIPT).options(options).run();
    let log = fs::read_to_string(run.directory.path().join("log")).expect("a log");
    let journal = run.directory.path().join("j");
    let again = look("--replay", &journal).args(["-l", "30", "--log-format=json"]).success().text();
    let parse = |text: &str| -> Vec<serde_json::Value> {
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let (log, again) = (parse(&log), parse(&again));
    assert_eq!(log.len(), again.len());
    for (mut then, mut now) in log.into_iter().zip(again) {
        let (then, now) = (then.as_object_mut().expect("one"), now.as_object_mut().expect("one"));
        let (written, replayed) = (then.remove("time"), now.remove("time"));
        assert_eq!(then, now);
        let day =
            |time: Option<serde_json::Value>| time.expect("a time").to_string()[..11].to_owned();
        assert_eq!(day(written), day(replayed));
    }
}

fn until_it_says(journal: &Path, text: &str) -> String {
    loop {
        let said = look("--status", journal).success().text();
        if said.contains(text) {
            return said;
        }
    }
}

fn waiting() -> Running {
    let run = Ftsh::script(WAITS).options(["--journal=j"]).start();
    run.until_lines("ready", 1);
    run
}

#[test]
fn a_run_in_progress_is_visible_and_not_begun_twice() {
    let run = waiting();
    let journal = run.directory().join("j");
    let said = look("--status", &journal).success().text();
    for text in
        [&format!("status of script.ftsh [{}]", run.pid()), "line 2: running `sh", "is in progress"]
    {
        assert!(said.contains(text), "{said}");
    }
    let refused = Ftsh::command("echo never").options(["--journal".as_ref(), journal.as_os_str()]);
    let refused = refused.stdout("").failure(75);
    refused.one_line();
    refused.expect_stderr(&format!("process {} records a run", run.pid()));
    let skipped = Ftsh::command("echo never").options(["--journal".as_ref(), journal.as_os_str()]);
    let skipped = skipped.options(["--lock-busy", "skip"]).stdout("").success();
    assert_eq!(skipped.errors(), "");
    run.signal(Signal::SIGTERM);
    let _finished = run.wait();
    let said = until_it_says(&journal, "suspended by SIGTERM, at ");
    assert!(said.contains("line 2: running `sh"), "{said}");
}

#[test]
fn a_run_that_was_cut_short_is_there_to_be_looked_at() {
    let run = waiting();
    let journal = run.directory().join("j");
    run.signal(Signal::SIGKILL);
    let _finished = run.wait();
    let said = until_it_says(&journal, "cut short");
    assert!(said.contains("line 2: running `sh"), "{said}");
    let log = look("--replay", &journal).args(["-l", "20"]).success().text();
    assert!(log.lines().count() == 2 && log.ends_with("exec sleep 1000'\n"), "{log}");
    let other = Ftsh::command("echo never").options(["--journal".as_ref(), journal.as_os_str()]);
    other.refused(&["holds a run of `script.ftsh`", "must be resumed first"]);
}

#[test]
fn a_run_that_is_over_makes_room_for_the_next_one() {
    let run = Ftsh::command("echo one; exit 3").options(["--journal=j"]).failure(3);
    let journal = run.directory.path().join("j");
    let mode = fs::metadata(&journal).expect("a journal").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    says(look("--status", &journal), "nothing runs\n  the run has ended with exit status 3\n");
    fs::set_permissions(&journal, Permissions::from_mode(0o644)).expect("permissions");
    Ftsh::command("echo two").env("FTSH_JOURNAL", &journal).stdout("two\n").success();
    says(look("--status", &journal), "the run has succeeded\n");
    says(look("--replay", &journal).args(["-l", "20"]), "start: echo two\n");
    let mode = fs::metadata(&journal).expect("a journal").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn other_files_are_not_overwritten_by_a_journal() {
    let directory = TempDir::new().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    fs::write(path("text"), "echo something else").expect("a file");
    fs::write(path("empty"), "").expect("a file");
    symlink(path("empty"), path("link")).expect("a link");
    fs::write(path("other"), "ftsh journal 77\nand more, of another version").expect("a file");
    let fifo = Ftsh::new().fifo("fifo");
    let cases = [
        (path("text"), "not a journal of ftsh; choose another file (nothing was changed)"),
        (path("link"), "symbolic link"),
        (path("other"), "another version of ftsh"),
        (directory.path().to_owned(), "is a directory"),
        (path("none/j"), "no such file or directory"),
        (fifo.path("fifo"), "it is not a regular file"),
    ];
    for (file, reason) in &cases {
        let run = Ftsh::command("echo never").options(["--journal".as_ref(), file.as_os_str()]);
        run.refused(&[reason]);
    }
    assert_eq!(fs::read(path("text")).expect("a file"), b"echo something else");
    for (file, reason) in
        [(path("text"), "not a journal"), (path("empty"), "no run"), (path("x"), "no such")]
    {
        look("--status", &file).refused(&["can't show", reason]);
        look("--replay", &file).refused(&["can't show", reason]);
    }
    Ftsh::command("true").options(["--journal".as_ref(), path("empty").as_os_str()]).success();
}

#[test]
fn damage_is_reported_and_nothing_is_run() {
    let run = Ftsh::command("true; true; true").options(["--journal=j"]).success();
    let journal = run.directory.path().join("j");
    let mut bytes = fs::read(&journal).expect("a journal");
    bytes[60] ^= 1;
    fs::write(&journal, bytes).expect("a journal");
    look("--replay", &journal).refused(&["damaged at byte"]);
    let again = Ftsh::command("echo never").options(["--journal".as_ref(), journal.as_os_str()]);
    again.refused(&["damaged at byte"]);
}

#[test]
fn a_copy_with_a_gap_is_shown_up_to_the_gap_and_not_resumed() {
    let script = "for i in 1 .to. 200
            try 2 times every 1 ms
                echo $i
            end
        end
        exit 3";
    let run = Ftsh::command(script).options(["--journal=j"]).failure(3);
    let (journal, copy) = (run.directory.path().join("j"), run.directory.path().join("copy"));
    let mut bytes = fs::read(&journal).expect("a journal");
    assert!(bytes.len() > 5000);
    // The copy contains the beginning of an entry and all of the next one.
    bytes[3900..4096].fill(0);
    fs::write(&copy, bytes).expect("a copy");
    for (option, text) in [
        ("--status", "before the gap, the last entry was recorded at "),
        ("--replay", "start: echo 1\n"),
        ("--timeline", "<svg "),
    ] {
        let looked = look(option, &copy).args(["-l20"]).stderr("has a gap at byte 3").success();
        assert!(looked.one_line().text().contains(text), "{}", looked.text());
    }
    let refused = Ftsh::after(run).options(["--journal=copy", "-c", script]);
    let refused = refused.refused(&["has a gap at byte 3", "would run again", "truncate -s 3"]);
    let said = refused.errors();
    let (_, length) = said.split_once("`truncate -s ").expect("what to do");
    let length = length.split(' ').next().and_then(|it| it.parse().ok()).expect("a number");
    let file = fs::OpenOptions::new().write(true).open(&copy).expect("a copy");
    file.set_len(length).expect("it is cut");
    let last = Ftsh::after(refused).options(["--journal=copy", "-c", script]).failure(3);
    assert!(last.text().ends_with("\n199\n200\n"), "{}", last.text());
    assert!(!last.text().contains("\n2\n"), "{}", last.text());
}

#[test]
fn a_picture_shows_the_recorded_run() {
    let run = Ftsh::command(SCRIPT).options(["--journal=j", "--redact=TOKEN", "-l0"]);
    let run = run.env("TOKEN", "test $0").run();
    let path = |name: &str| run.directory.path().join(name);
    let picture = look("--timeline", &path("j")).success().text();
    for text in
        ["<svg ", ">i=1<", "; *** != 2", "attempt failed", "delay", "exited with 3", "</svg>\n"]
    {
        assert!(picture.contains(text), "{text} in {picture}");
    }
    assert!(!picture.contains("test $0"), "{picture}");
    look("--timeline", &path("j")).arg("-o").arg(path("p.svg")).stdout("").success();
    assert_eq!(fs::read_to_string(path("p.svg")).expect("a picture"), picture);
    look("--timeline", &path("j")).arg("-o").arg(path("p.html")).stdout("").success();
    let page = fs::read_to_string(path("p.html")).expect("a page");
    assert!(page.starts_with("<!doctype html>") && page.contains(&picture), "{page}");
    look("--timeline", &path("j")).arg("-o").arg(path("none/p.svg")).refused(&["can't draw into"]);
    look("--timeline", &path("j")).arg("-o").arg(path("p.png")).refused(&["`.png`", "`.svg`"]);
    Ftsh::command("true").options(["-o", "x.svg"]).refused(&["`--timeline`"]);
}

#[test]
fn looks_take_no_script() {
    look("--replay", Path::new("j")).arg("script.ftsh").refused(&["takes no script"]);
    look("--status", Path::new("j")).args(["-c", "true"]).refused(&["takes no script"]);
    for option in ["--replay", "--status", "--timeline", "--journal", "-f", "--results", "--in"] {
        let words = [format!("`{option}` lacks its "), "`-l` looks like an option".to_owned()];
        let words = words.each_ref().map(String::as_str);
        look(option, Path::new("-l")).args(["10", "j"]).refused(&words).one_line();
        let text = format!("{option}=-l");
        if option != "-f" {
            Ftsh::new().args([text.as_str(), "j"]).refused(&words);
        }
    }
    Ftsh::command("true").options(["-f", "./-l", "-l", "20"]).success().read("-l");
}

#[test]
fn views_of_a_journal_hide_secrets() {
    let script = "TOKEN=abcdefgh\nsh -c 'echo $0 >&2; exit 1' abcdefgh";
    let run = Ftsh::command(script).options(["--journal=j", "--redact=TOKEN"]).failure(1);
    let journal = run.directory.path().join("j");
    let log = look("--replay", &journal).args(["-l", "40"]).success().text();
    assert!(log.contains("***") && !log.contains("abcdefgh"), "{log}");
}

#[test]
fn shells_that_a_script_starts_have_no_part_in_it() {
    let script = "ftsh -c 'echo in'\nenv | sh -c \"grep -c FTSH_JOURNAL || true\"";
    Ftsh::command(script).env("FTSH_JOURNAL", "j").stdout("in\n0\n").success();
}

#[test]
fn a_program_may_take_the_shell_s_place() {
    let run = Ftsh::command("exec sh -c 'exit 4'").options(["--journal=j"]).failure(4);
    let journal = run.directory.path().join("j");
    says(look("--status", &journal), "the run has ended with exit status 4\n");
    let script = "try\n exec nothing-like-this\ncatch\n true\nend";
    let run = Ftsh::command(script).options(["--journal=j"]).success();
    says(look("--status", &run.directory.path().join("j")), "the run has succeeded\n");
}

/// Limits the size of files, in blocks of 512 bytes.
fn small_files(ftsh: Ftsh, blocks: u32) -> Ftsh {
    let limit = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
    ftsh.through(["sh", "-c", &limit, "sh"])
}

#[test]
fn without_room_nothing_is_run() {
    // Larger than the available space.
    let script = format!("echo never # {}", "x".repeat(1000));
    let run = small_files(Ftsh::command(&script).options(["--journal=j"]), 1);
    run.refused(&["can't write the journal", "file too large"]);
}

#[test]
fn a_run_whose_journal_is_full_begins_nothing_more() {
    let script = "i=0\nwhile $i .lt. 5000\n i=$i .add. 1\n echo $i >> out\nend";
    let run = small_files(Ftsh::command(script).options(["--journal=j"]), 140).run();
    let errors = run.errors();
    assert!(
        errors.contains("can't write the journal") && errors.contains("the run ends"),
        "{errors}"
    );
    run.killed_by(Signal::SIGTERM);
    let journal = run.directory.path().join("j");
    assert!(look("--status", &journal).success().text().contains("cut short"));
    let out = fs::read_to_string(run.directory.path().join("out")).expect("lines");
    let log = look("--replay", &journal).args(["-l", "20"]).success().text();
    let begun = log.lines().filter(|line| line.contains("start: echo")).count();
    // The work is recorded; at most the last recorded command was not run.
    let done = out.lines().count();
    let end = &log[log.len().saturating_sub(300)..];
    assert!((begun - 1..=begun).contains(&done), "{done} of {begun}: {end}");
}

/// Limits the memory of a shell, in KiB.
fn little_memory(ftsh: Ftsh, most: u32) -> Ftsh {
    // Threads of the C library would reserve much memory.
    let limit = format!("export MALLOC_ARENA_MAX=1; ulimit -v {most}; exec \"$@\"");
    ftsh.through(["sh", "-c", &limit, "sh"])
}

#[test]
fn much_is_recorded_with_little_memory_and_not_looked_at_without() {
    let run = Ftsh::command("head -c 64000000 /dev/zero -> v").options(["--journal=j"]);
    let run = little_memory(run, 150_000).success();
    let journal = run.directory.path().join("j");
    says(look("--status", &journal), "the run has succeeded\n");
    for (most, words) in [(60_000, "out of memory"), (110_000, "too little memory")] {
        let looked = little_memory(look("--status", &journal), most);
        looked.refused(&["can't show", words]).one_line();
    }
    let again = Ftsh::command("echo never").options(["--journal".as_ref(), journal.as_os_str()]);
    little_memory(again, 60_000).refused(&["can't use", "out of memory"]).one_line();
}

/// Returns a directory in memory, if the system has one, because the speed of the disk does not
/// belong to the script.
fn memory() -> TempDir {
    let memory = Path::new("/dev/shm");
    let directory = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() };
    directory.expect("a directory")
}

/// The scripts of `tests/scripts` behave the same while recorded, and can be replayed.
#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn every_script_is_had_again() {
    // The holder of a lock keeps its process id. Recorded values without a size limit have a test of
    // their own.
    let left_out = ["exec_same_process.ftsh", "hundred_megabytes.ftsh"];
    let is_left_out = |path: &PathBuf| left_out.iter().any(|name| path.ends_with(name));
    let all = scripts(&root()).into_iter().filter(|path| !is_left_out(path));
    none(all.collect(), |path| {
        let directory = memory();
        fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).expect("for all");
        let journal = directory.path().join("j");
        let mut troubles = expectations::run_recorded(&path, &journal);
        // Commands that are not run are not recorded.
        if journal.exists() {
            // A loop up to a deadline would make a million lines.
            let is_loop =
                path.file_name().is_some_and(|it| it.to_string_lossy().starts_with("deadline_in_"));
            let level = if is_loop { "10" } else { "40" };
            let again = look("--replay", &journal).args(["-l", level]).run();
            if again.status.and_then(|status| status.code()) != Some(0) {
                troubles += &again.errors();
            }
        }
        (!troubles.is_empty()).then(|| format!("{}\n{troubles}", path.display()))
    });
}

/// Journals recorded by other versions with the same behavior.
#[test]
fn journals_of_then_are_had_again() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/journals");
    let mut journals = 0;
    for entry in fs::read_dir(folder).expect("journals") {
        let path = entry.expect("a readable folder").path();
        if path.extension().is_some_and(|end| end == "journal") {
            let log = fs::read_to_string(path.with_extension("log")).expect("its log");
            let again = look("--replay", &path).args(["-l", "40", "-D"]).success().text();
            assert_eq!(again, log, "{}: see tests/journals/README.md", path.display());
            journals += 1;
        }
    }
    assert!(journals > 0);
}

/// Returns the number of context switches of a process.
fn waits(pid: Pid) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it is there");
    let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.and_then(|count| count.trim().parse().ok()).expect("a number")
}

#[test]
fn a_start_waits_for_a_shell_that_is_about_to_end() {
    let run = waiting();
    let journal = run.directory().join("j");
    let (supervisor, interpreter) = shells(&run);
    // The process cannot clean up yet.
    send(supervisor, Signal::SIGSTOP);
    run.until("a stopped supervisor", |_| is_stopped(supervisor));
    send(interpreter, Signal::SIGKILL);
    let next = Ftsh::command("echo never").options(["--journal".as_ref(), journal.as_os_str()]);
    let next = next.start();
    // Far longer than a reader holds the lock.
    next.until("a long wait", |next| waits(next.pid()) > 100);
    send(supervisor, Signal::SIGCONT);
    let next = next.wait();
    next.check_health();
    assert!(next.status.and_then(|it| it.code()) != Some(75), "{}", next.story());
    run.wait().killed_by(Signal::SIGKILL).nothing_left();
}
