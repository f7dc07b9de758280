//! A recorded run of many steps whose shell is killed repeatedly, at random moments from the first
//! on, and started again each time. In the end every step was done, and repeated only where its
//! result was unknown.

use std::collections::HashMap;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use crate::support::Ftsh;
use crate::support::rounds;
use crate::support::run::Finished;

const STEPS: usize = 200;

/// Time limit of a kill after the start.
const BEGINNING: Duration = Duration::from_millis(30);
const LONGEST: Duration = Duration::from_millis(100);
/// Increase of the limit after each kill.
const PATIENCE: Duration = Duration::from_millis(20);

/// Minimum number of kills in each round. A typical round has 20 kills, so ten rounds have 200.
const LEAST: u32 = 5;

/// Signals to a shell, with their frequencies.
#[derive(Clone, Copy, Debug)]
enum Blow {
    Supervisor,
    Interpreter,
    Both,
    Sigterm,
}

const BLOWS: [Blow; 6] =
    [Blow::Supervisor, Blow::Interpreter, Blow::Interpreter, Blow::Both, Blow::Both, Blow::Sigterm];

/// Command that appends its arguments to a file, and prints them.
const STEP: &str = "#!/bin/sh\necho $1 >> effects\necho value $1\n";
/// Filter for the output of a step. If the filter is lost, so is the output.
const PASS: &str = "#!/bin/sh\nexec cat\n";

/// Steps in tries, in sequence and in parallel, captured, piped, and in blocks with redirections.
const SCRIPT: &str = "
for i in 1 .to. 40
    try 1000 times every 1 ms
        step $i
    end
end > first
forall i in 41 .to. 90 at most 5
    try 1000 times every 1 ms
        step $i > out.$i
    end
end
list=\"\"
for i in 91 .to. 120
    try 1000 times every 1 ms
        step $i -> value
    end
    list=\"$list, $value\"
end
for i in 121 .to. 140
    try 1000 times every 1 ms
        step $i
    end
end -> all
forall i in 141 .to. 170 at most 5
    try 1000 times every 1 ms
        step $i | pass $i -> value
        try 1000 times every 1 ms
            echo \"$value\" > out.$i
        end
    end
end
while true
    try 1000 times every 1 ms while $error_kind .eq. lost
        read i
    catch
        break
    end
    try 1000 times every 1 ms
        try 1000 times every 1 ms
            step $i > out.$i
        end
    end
end < input
try 1000 times every 1 ms
    echo \"$list\" > second
end
try 1000 times every 1 ms
    echo \"$all\" > third
end
";

#[test]
fn every_step_is_done_despite_kills_of_the_shell() {
    rounds::rounds(&["0"], |round| {
        let number = u64::try_from(round.number).expect("small");
        let (kills, lost) = storm(number);
        eprintln!("storm {number}: {kills} kills, {lost} lost");
        assert!(kills >= LEAST, "{kills} kills are no storm");
    });
}

/// Runs the script to its end, with choices determined by a number. Returns the numbers of kills
/// and of lost commands.
fn storm(number: u64) -> (u32, usize) {
    let mut random = ChaCha8Rng::seed_from_u64(number);
    let input: String = (171..=STEPS).flat_map(|step| [step.to_string(), "\n".into()]).collect();
    let run = Ftsh::script(SCRIPT).options(["--journal=j"]);
    let mut run = run.program("bin/step", STEP).program("bin/pass", PASS).file("input", input);
    let mut kills = 0;
    let finished = loop {
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", run.path("bin").display());
        // The growing limit lets the run end on any machine.
        let longest = LONGEST + PATIENCE * kills;
        let finished = killed(run.env("PATH", path), longest, &mut random);
        finished.check_health();
        if finished.status.and_then(|status| status.code()).is_some() {
            finished.expect_code(0);
            // A resumed run also ends what earlier starts have left.
            finished.nothing_left();
            break finished;
        }
        kills += 1;
        // The shell may have written everything except its exit status.
        if is_over(&finished) {
            break finished;
        }
        run = Ftsh::after(finished).options(["--journal=j", "script.ftsh"]);
    };
    let lost = check(&finished);
    (kills, lost)
}

/// Performs one start, which may end before it is killed.
pub(crate) fn killed(run: Ftsh, longest: Duration, random: &mut ChaCha8Rng) -> Finished {
    let blow = *BLOWS.choose(random).expect("blows");
    let longest = if random.random_bool(0.3) { BEGINNING } else { longest };
    let moment = longest.mul_f64(random.random());
    let run = run.session().start();
    thread::sleep(moment);
    let interpreter = run.interpreter();
    let (of_supervisor, of_interpreter) = match blow {
        // In the first moments, the interpreter does not exist yet.
        Blow::Interpreter if interpreter.is_some() => (None, Some(Signal::SIGKILL)),
        Blow::Supervisor | Blow::Interpreter => (Some(Signal::SIGKILL), None),
        Blow::Both => (Some(Signal::SIGKILL), Some(Signal::SIGKILL)),
        Blow::Sigterm => (Some(Signal::SIGTERM), None),
    };
    // The process id stays valid until the process is reaped.
    if let Some(signal) = of_supervisor {
        run.signal(signal);
    }
    if let (Some(signal), Some(interpreter)) = (of_interpreter, interpreter) {
        let _ = kill(interpreter, signal);
    }
    run.leave()
}

fn is_over(finished: &Finished) -> bool {
    let journal = finished.directory.path().join("j");
    let status = Ftsh::new().arg("--status").arg(journal).run().text();
    status.contains("the run has succeeded") && !status.contains("not reported")
}

/// Checks the results. Returns the number of lost commands.
fn check(finished: &Finished) -> usize {
    let journal = finished.directory.path().join("j");
    let log = Ftsh::new().arg("--replay").arg(journal).args(["-l", "10"]).success().text();
    let mut lost: HashMap<&str, usize> = HashMap::new();
    for line in log.lines().filter(|line| line.contains("was running when the shell ended")) {
        let words = line.split("`step ").nth(1).or_else(|| line.split("`pass ").nth(1));
        let step = words.and_then(|words| words.split('`').next());
        *lost.entry(step.unwrap_or_default()).or_default() += 1;
    }
    let effects = finished.read("effects");
    let mut done: HashMap<&str, usize> = HashMap::new();
    for step in effects.lines() {
        *done.entry(step).or_default() += 1;
    }
    for step in 1..=STEPS {
        let step = step.to_string();
        let times = done.get(&*step).copied().unwrap_or_default();
        let most = 1 + lost.get(&*step).copied().unwrap_or_default();
        assert!((1..=most).contains(&times), "step {step}: {times} times, at most {most}\n{log}");
    }
    let values = |steps: std::ops::RangeInclusive<usize>, before: &str, after: &str| -> String {
        let value = |step: usize| format!("{before}value {step}{after}");
        steps.map(value).collect::<Vec<_>>().concat()
    };
    assert_eq!(finished.read("second"), values(91..=120, ", ", "") + "\n");
    assert_eq!(finished.read("third"), values(121..=140, "", "\n"));
    for step in (41..=90).chain(141..=STEPS) {
        assert_eq!(finished.read(&format!("out.{step}")), format!("value {step}\n"));
    }
    // A lost command may have written or not; completed ones are there, in order.
    let first = finished.read("first");
    let mut lines: Vec<&str> = first.lines().collect();
    assert!(lines.is_sorted_by_key(|line| line[6..].parse::<usize>().expect("a step")), "{first}");
    lines.dedup();
    assert_eq!(lines.join("\n") + "\n", values(1..=40, "", "\n"));
    lost.values().sum()
}
