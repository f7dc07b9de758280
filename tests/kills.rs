//! Kills of the shell's two processes at random moments, from the first on, with all options: no
//! process of theirs is left.

use std::panic::catch_unwind;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use crate::support::Ftsh;
use crate::support::rounds;

/// Number of kills in each round.
const KILLS: usize = 20;

/// Time limit for the start of the first command and the split of the supervisor.
const BEGINNING: Duration = Duration::from_millis(25);
const LONGEST: Duration = Duration::from_millis(80);

/// Options of the shell.
const OPTIONS: [&[&str]; 8] = [
    &[],
    &["--cron"],
    &["--lock=lock"],
    &["--cron", "--lock=lock", "--lock-wait", "1s"],
    &["-f", "log", "-l", "40"],
    &["--summary", "-l", "0"],
    &["-t", "0", "-k", "weak"],
    &["--splay", "3ms"],
];

/// Commands that do not end, started by the event loop or by workers, with daemons.
const SCRIPTS: [&str; 7] = [
    "with sh -c '(setsid sleep 60 &); sleep 60'; sh -c 'sleep 60'; end",
    "sleep 60; sh -c 'sleep 60'",
    "sh -c 'setsid sleep 60 & sleep 60'",
    "forall i in 1 .to. 12; sh -c '(setsid sleep 60 &); sleep 60' > out.$i; end",
    "forall i in 1 .to. 12; cd /tmp; sh -c 'trap : TERM; sleep 60 & sleep 60' -> v; end",
    "while true; sh -c '(setsid sleep 60 &)' >> out; end",
    "sh -c 'while :; do (setsid sleep 60 &); sleep 0.001; done' | cat > out",
];

/// With and without a subreaper.
const WAYS: [&str; 3] = ["0", "0", "1"];

#[test]
fn nothing_outlives_a_kill_at_any_moment() {
    let all = rounds::count() * KILLS;
    let half =
        |half| move || (half..all).step_by(2).filter(|&it| catch_unwind(|| survive(it)).is_err());
    let failed: Vec<usize> = thread::scope(|scope| {
        let halves = [0, 1].map(|it| scope.spawn(move || half(it)().collect::<Vec<_>>()));
        halves.into_iter().flat_map(|half| half.join().expect("no panic")).collect()
    });
    assert!(failed.is_empty(), "{} of {all} kills left something: {failed:?}", failed.len());
}

/// Performs one kill, with choices determined by its number.
fn survive(number: usize) {
    let mut random = ChaCha8Rng::seed_from_u64(number as u64);
    let options = *OPTIONS.choose(&mut random).expect("options");
    let script = *SCRIPTS.choose(&mut random).expect("scripts");
    let way = *WAYS.choose(&mut random).expect("ways");
    let longest = if random.random_bool(0.8) { BEGINNING } else { LONGEST };
    let moment = longest.mul_f64(random.random());
    let (of_interpreter, from_file) = (random.random(), random.random());
    let run = if from_file { Ftsh::script(script) } else { Ftsh::command(script) };
    let run = run.options(options).in_way(way).session().start();
    thread::sleep(moment);
    let interpreter = if of_interpreter { run.interpreter() } else { None };
    kill(interpreter.unwrap_or(run.pid()), Signal::SIGKILL).expect("it lives");
    let what = format!(
        "kill {number}: nothing left after the {} was killed after {moment:?}, with way {way}",
        if interpreter.is_some() { "interpreter" } else { "supervisor" },
    );
    run.until_gone(&what);
    run.wait().killed_by(Signal::SIGKILL).nothing_left();
}
