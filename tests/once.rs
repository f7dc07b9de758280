//! `once in` with real files: kills at random moments, several shells, and files that cannot be written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::thread;
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, kill};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::support::rounds;
use crate::support::{FTSH, Ftsh};

const SCRIPT: &str = "
    forall n in 1 .to. 60 at most 4 once in done
        sh -c 'echo \"$0\" >> ran' $n
    end";

/// Number of kills of one batch.
const KILLS: usize = 4;

/// Returns how often each line stands in a text.
fn counts(text: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    text.lines().for_each(|line| *counts.entry(line.to_owned()).or_default() += 1);
    counts
}

#[test]
fn recorded_words_never_run_again_after_a_kill() {
    for round in 0..rounds::count() {
        let mut random = ChaCha8Rng::seed_from_u64(round as u64);
        let directory = tempfile::tempdir().expect("a directory");
        let read = |name| fs::read_to_string(directory.path().join(name)).unwrap_or_default();
        let script = format!("cd {}\n{SCRIPT}", directory.path().display());
        let mut recorded = BTreeMap::new();
        for number in 0..=KILLS {
            let run = Ftsh::command(&script).session();
            if number == KILLS {
                run.success();
            } else {
                let run = run.start();
                let before = recorded.len();
                run.until("a word was recorded", |run| {
                    read("done").lines().count() > before || run.processes().is_empty()
                });
                thread::sleep(Duration::from_micros(random.random_range(0..30_000)));
                let interpreter = run.interpreter();
                for pid in [Some(run.pid()), interpreter].into_iter().flatten() {
                    // The run may be over.
                    let _ = kill(pid, Signal::SIGKILL);
                }
                run.until_gone("all processes have ended");
                run.leave();
            }
            // The part of a line that a kill left is no record.
            let done = read("done");
            let whole = done.rfind('\n').map_or("", |end| &done[..end]);
            let ran = counts(&read("ran"));
            for (word, times) in &recorded {
                assert_eq!(ran[word], *times, "{word} ran again in round {round}, kill {number}");
            }
            recorded = whole.lines().map(|word| (word.to_owned(), ran[word])).collect();
        }
        assert_eq!(recorded.len(), 60);
    }
}

#[test]
fn two_shells_share_the_words() {
    let script = "
        forall n in 1 .to. 20 keep going at most 3 once in done
            sh -c 'echo \"$0\" >> ran' $n
        end";
    let both = format!("sh -c '{FTSH} s & {FTSH} s & wait'");
    let finished = Ftsh::command(&both).file("s", script).success();
    let (done, ran) = (finished.read("done"), counts(&finished.read("ran")));
    let words: BTreeSet<&str> = done.lines().collect();
    assert_eq!(words.len(), 20, "{done}");
    // Only words that both shells had begun at the same time may have run twice.
    assert!(ran.len() == 20 && ran.values().all(|times| *times <= 2), "{ran:?}");
    let again = Ftsh::after(finished).options(["--results=r.jsonl"]).arg("s").run();
    assert_eq!(counts(&again.read("ran")), ran);
    let skipped = again.read("r.jsonl").matches(r#""outcome":"skipped""#).count();
    assert_eq!(skipped, 20);
}

#[test]
fn a_resumed_run_makes_the_record_that_a_kill_cut_off() {
    let script = "
        forall n in a b at most 1 once in done
            echo $n >> ran
        end";
    let run = Ftsh::script(script).options(["--journal=j"]).file("done", "");
    let done = File::open(run.path("done")).expect("a file");
    let inode = format!(":{} ", done.metadata().expect("an inode").ino());
    let lock = Flock::lock(done, FlockArg::LockShared).map_err(|(_, error)| error);
    let lock = lock.expect("a lock");
    let run = run.start();
    run.until("the record waits for the lock", |_| {
        let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
        locks.lines().any(|line| line.contains("->") && line.contains(&inode))
    });
    for pid in [Some(run.pid()), run.interpreter()].into_iter().flatten() {
        // The interpreter may have ended with the supervisor.
        let _ = kill(pid, Signal::SIGKILL);
    }
    let killed = run.leave();
    drop(lock);
    assert_eq!((killed.read("ran"), killed.read("done")), ("a\n".into(), String::new()));
    let again = Ftsh::after(killed).options(["--journal=j", "script.ftsh"]).success();
    // The branch had succeeded, and does not run again.
    assert_eq!((again.read("ran"), again.read("done")), ("a\nb\n".into(), "a\nb\n".into()));
}

#[test]
fn a_word_without_a_record_has_failed() {
    let script = "
        try
            forall n in a b keep going once in done
                x=1
            end
        catch
            echo ${failed[@]}
            echo \"$error_kind: ${failed_errors[1]}\"
        end";
    // The output is a file as well.
    let limited = "text=$( (ulimit -f 0; exec \"$@\") 2>&1 ); echo \"$text\"";
    let full = Ftsh::command(script).through(["sh", "-c", limited, "sh"]);
    let text = full.run().text();
    assert!(text.contains("\na b\nio: "), "{text}");
    assert!(text.contains("the word was not recorded: done: file too large"), "{text}");
}

#[test]
fn an_unreadable_file_fails_before_any_branch() {
    let script = "echo a > done; chmod 0 done; forall n in a b once in done; echo $n; end";
    let run = Ftsh::command(script).unprivileged().stdout("").failure(1);
    run.expect_stderr("done: permission denied");
}
