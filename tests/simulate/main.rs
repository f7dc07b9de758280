//! Random programs of every construct in a world with many faults.
//!
//! A seed makes a program, a world and its faults. Oracles know the promises that hold in any case.
//! A program that breaks a promise is shrunk, and shown with the command that repeats it.
//!
//! - `FTSH_SIMULATE_SEED=n`: one program in one world, with a complete trace.
//! - `FTSH_SIMULATE_PROGRAMS=n`: number of programs, from the seed `FTSH_SIMULATE_FIRST` or a seed
//!   from the clock. `just simulate n` uses an optimized machine.
//! - `FTSH_SIMULATE_SPANS=file`: appends the spans of the runs, for a collector of traces.

#![allow(unsafe_code)]

mod coverage;
mod dice;
mod elsewhere;
mod liars;
mod oracle;
mod program;
mod resume;
mod run;
mod shrink;
#[path = "../support/spans.rs"]
mod spans;
mod tape;
mod traces;
mod world;

use std::collections::BTreeMap;
use std::env;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use ftsh_syntax::clauses::ROWS;

use crate::coverage::Counts;
use crate::dice::Dice;
use crate::oracle::{Judged, Violation};
use crate::program::{LIBRARY, USED, generate};
use crate::run::{Ran, WORLDS, check, program, trace};
use crate::shrink::shrink;

/// Default number of programs.
const PROGRAMS: u64 = 150;

/// Number of programs that execute every construct.
const ENOUGH: usize = 600;
/// Number of broken promises after which the search ends.
const MOST_VIOLATIONS: usize = 20;
/// Maximum number of lines of a trace.
const LAST: usize = 40;

const SEED: &str = "FTSH_SIMULATE_SEED";
const COUNT: &str = "FTSH_SIMULATE_PROGRAMS";
const FIRST: &str = "FTSH_SIMULATE_FIRST";

/// Counts of all programs together.
#[derive(Default)]
struct Total {
    programs: usize,
    commands: usize,
    faults: BTreeMap<&'static str, usize>,
    constructs: Counts,
    judged: Judged,
    violations: BTreeMap<&'static str, Vec<(u64, Violation)>>,
}

#[test]
fn every_program_keeps_every_promise() {
    if let Some(seed) = number(SEED) {
        return show(seed);
    }
    let count = number(COUNT);
    let chosen = || if count.is_some() { clock() } else { 0 };
    let first = number(FIRST).unwrap_or_else(chosen);
    let began = Instant::now();
    let total = check_all(first, first.saturating_add(count.unwrap_or(PROGRAMS)));
    let Total { programs, commands, faults, constructs, judged, .. } = total;
    let all: usize = faults.values().sum();
    println!("{programs} programs from number {first}, each in {WORLDS} worlds");
    println!("{commands} commands, {all} faults");
    println!("in {:.1} s: {faults:?}", began.elapsed().as_secs_f64());
    println!("in how many runs what was executed: {:?}", constructs.0);
    println!("what was judged: {:?}", judged.0);
    let missing = constructs.missing();
    assert!(programs < ENOUGH || missing.is_empty(), "nothing executed {missing:?}");
    let missing = judged.missing();
    assert!(programs < ENOUGH || missing.is_empty(), "no oracle has judged {missing:?}");
}

/// Other hash seeds and addresses do not change a run.
#[test]
fn another_process_does_the_same() {
    const CHILD: &str = "FTSH_SIMULATE_CHILD";
    let digests =
        (0..50).map(|number| number * WORLDS).map(|seed| trace(&program(seed), seed).digest);
    let digest = digests.fold(0_u64, |sum, digest| sum.rotate_left(1) ^ digest);
    if env::var_os(CHILD).is_some() {
        println!("digest {digest}");
        return;
    }
    let mut child = Command::new(env::current_exe().expect("a path"));
    child.args(["--exact", "another_process_does_the_same", "--nocapture"]).env(CHILD, "1");
    let output = child.output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains(&format!("digest {digest}\n")), "{digest} here, there {said}");
}

impl Total {
    fn add(&mut self, seed: u64, ran: Ran) {
        self.commands += ran.commands;
        self.constructs.add(&ran.constructs);
        self.judged.add(&ran.judged);
        for (fault, count) in ran.faults {
            *self.faults.entry(fault).or_default() += count;
        }
        if let Some(violation) = ran.violation {
            println!("seed {seed} breaks a promise: {}", violation.oracle);
            self.violations.entry(violation.oracle).or_default().push((seed, violation));
        }
    }
}

/// Runs programs, and fails if one of them breaks a promise.
fn check_all(first: u64, end: u64) -> Total {
    let next = AtomicU64::new(first);
    let total = Mutex::new(Total::default());
    let work = || loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= end {
            return;
        }
        run::check_all(number, |seed, ran| {
            let mut total = total.lock().expect("no other thread has panicked");
            total.add(seed, ran);
            if total.violations.values().flatten().count() >= MOST_VIOLATIONS {
                next.store(end, Ordering::Relaxed);
            }
        });
        let mut total = total.lock().expect("no other thread has panicked");
        total.programs += 1;
        if total.programs.is_multiple_of(10_000) {
            println!("{} programs", total.programs);
        }
    };
    thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let total = total.into_inner().expect("no thread has panicked");
    for (oracle, found) in &total.violations {
        println!("{oracle}: {} violations", found.len());
        let (seed, violation) = &found[0];
        println!("{}\n", explain(*seed, violation));
    }
    assert!(total.violations.is_empty(), "see above");
    total
}

/// Describes the broken promise on a shrunk program.
fn explain(seed: u64, violation: &Violation) -> String {
    let small = shrink(&program(seed), seed, violation.oracle);
    let now = trace(&small, seed);
    let what = now.violation.map_or_else(|| violation.what.clone(), |violation| violation.what);
    let ((script, library, _), used) = (small.texts(), small.used_text());
    let last = now.trace.len().saturating_sub(LAST);
    format!(
        "seed {seed}, {}: {what}\n\n{script}\n{LIBRARY}:\n{library}\n{USED}:\n{used}\n{}\n\nrepeat it with\n    \
         {SEED}={seed} cargo test --test simulate every_program -- --nocapture",
        violation.oracle,
        now.trace[last..].join("\n"),
    )
}

/// Prints the trace of the program of a seed.
fn show(seed: u64) {
    let ((script, library, _), used) = (program(seed).texts(), program(seed).used_text());
    let ran = trace(&program(seed), seed);
    println!(
        "{script}\nlibrary:\n{library}\nused:\n{used}\n{}\n{:?}",
        ran.trace.join("\n"),
        ran.faults
    );
    if let Some(violation) = check(&program(seed), seed).violation {
        println!("{}: {}", violation.oracle, violation.what);
        panic!("{}", explain(seed, &violation));
    }
}

fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is to be a number, not `{text}`")))
}

/// Returns a number that differs each time.
fn clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as u64
}

#[test]
fn programs_have_every_clause() {
    let texts: Vec<_> = (0..2000).map(|seed| generate(Dice::new(seed)).texts().0).collect();
    for row in ROWS {
        let words = row.words.join(" ");
        let words_alone = format!(" {words} ");
        let has = |line: &str| {
            line.trim_start().starts_with(row.head) && format!("{line} ").contains(&words_alone)
        };
        let is_there = texts.iter().any(|text| text.lines().any(has));
        assert!(is_there, "no program has `{words}` of `{}`", row.head);
    }
}
