//! The figures of README.md: run `cargo bench`. Each figure is relative to another measurement of
//! the same run, because machines differ and are rarely quiet.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SHELL: &str = env!("CARGO_BIN_EXE_ftsh");

fn main() {
    // `cargo test --benches` only checks that the benchmark runs.
    let rounds = if std::env::args().any(|arg| arg == "--bench") { 200 } else { 10 };
    // Installed as a copy, because a file that was just linked is mapped in smaller pages, which
    // takes longer.
    let place = tempfile::tempdir().expect("a temporary directory");
    let shell = place.path().join("ftsh");
    std::fs::copy(SHELL, &shell).expect("a copy of the shell");
    start_up(&shell, rounds * 2);
    spawning(&shell, rounds / 2);
    channel(&shell, rounds / 10 + 1);
    deadline(&shell, rounds / 10 + 1);
    daemons(&shell, rounds / 40 + 1);
    killed(&shell, rounds / 10);
    watches(&shell, rounds / 20 + 1);
}

/// Measures many short commands with and without the clauses that watch them, alternately.
fn watches(shell: &Path, rounds: usize) {
    let text = |clauses: &str| {
        format!("forall i in 1 .to. 2000 at most 8\n try 2 times{clauses}; /bin/true; end\nend")
    };
    let (watched, plain) = (text(" stalled 10 minutes memory 1 TB"), text(""));
    let ratios = (0..rounds).map(|_| {
        let plain = timed(&mut script(shell, &plain));
        timed(&mut script(shell, &watched)).as_secs_f64() / plain.as_secs_f64()
    });
    let mut ratios: Vec<f64> = ratios.collect();
    ratios.sort_unstable_by(f64::total_cmp);
    let ratio = ratios[ratios.len() / 2];
    println!("2000 commands with `stalled` and `memory`: {:+.1} % time", 100.0 * (ratio - 1.0));
}

fn timed(command: &mut Command) -> Duration {
    let start = Instant::now();
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().expect("the command starts");
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn script(shell: &Path, text: &str) -> Command {
    let mut command = Command::new(shell);
    command.args(["-t", "1", "-c", text]);
    command
}

/// Measures one `/bin/true` from the start of the shell to its end, for each way to start a shell,
/// alternately.
fn start_up(shell: &Path, rounds: usize) {
    let file = shell.with_file_name("true.ftsh");
    std::fs::write(&file, "/bin/true\n").expect("a temporary file");
    let file = file.to_str().expect("a path of text");
    for (what, ours, theirs) in [
        ("in a file", &[file][..], &[file][..]),
        ("in a file, with options", &["-t", "5", "-l", "20", file], &[file]),
        ("with -c", &["-c", "/bin/true"], &["-c", "/bin/true"]),
    ] {
        let (mut our_times, mut their_times) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            their_times.push(timed(Command::new("dash").args(theirs)));
            our_times.push(timed(Command::new(shell).args(ours)));
        }
        let (ours, theirs) = (millis(median(our_times)), millis(median(their_times)));
        println!(
            "start-up of one /bin/true {what}: {ours:.2} ms, {:.2} times dash's",
            ours / theirs
        );
    }
}

/// Measures a command in a loop against starting it from here. Turns alternate quickly, because the
/// speed of a machine varies. The difference between many and few commands removes the costs of the
/// shell's start.
fn spawning(shell: &Path, rounds: usize) {
    const FEW: usize = 50;
    const MANY: usize = 200;
    let loops = |count: usize| {
        timed(&mut script(shell, &format!("for i in 1 .to. {count}; /bin/true; end")))
    };
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let start = Instant::now();
        for _ in FEW..MANY {
            Command::new("/bin/true").status().expect("/bin/true starts");
        }
        plain.push(start.elapsed());
        ours.push(loops(MANY).saturating_sub(loops(FEW)));
    }
    let each = |times| millis(median(times)) / (MANY - FEW) as f64;
    let (ours, plain) = (each(ours), each(plain));
    println!("a command in a loop: {ours:.3} ms, {:.3} times spawn and wait", ours / plain);
}

/// Measures an attempt through a free channel against an attempt without a channel.
fn channel(shell: &Path, rounds: usize) {
    const ATTEMPTS: usize = 2000;
    let rules = "at most 4 rate 1000000 per second budget 10% breaker 5 failures 30 seconds";
    let directory = shell.with_file_name("channels");
    let run = |through: &str| {
        let text = format!(
            "channel door {rules}; for i in 1 .to. {ATTEMPTS}; try 1 time {through}; x=$i; end; end"
        );
        timed(script(shell, &text).env("FTSH_CHANNELS", &directory))
    };
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        without.push(run(""));
        with.push(run("through door"));
    }
    let more = millis(median(with)) - millis(median(without));
    println!("a free channel: {:.1} µs more for an attempt", more * 1e3 / ATTEMPTS as f64);
}

/// Measures the time from the limit to the end of a shell whose command ends at SIGTERM.
fn deadline(shell: &Path, rounds: usize) {
    let limit = Duration::from_millis(300);
    let over =
        || timed(&mut script(shell, "try for 300 ms; /bin/sleep 1000; end")).saturating_sub(limit);
    let times: Vec<_> = (0..rounds).map(|_| over()).collect();
    let worst = millis(*times.iter().max().expect("a round"));
    println!("after a deadline: {:.1} ms, at worst {worst:.1} ms", millis(median(times)));
}

/// Measures the time from the kill timeout to the end of a shell with 200 daemons that ignore
/// SIGTERM.
fn daemons(shell: &Path, rounds: usize) {
    let text = "try for 3 seconds
        sh -c 'trap \"\" TERM
               i=0; while test $i -lt 200; do setsid sleep 1000 & i=$((i+1)); done; wait'
    end";
    let planned = Duration::from_secs(3 + 1);
    let times: Vec<_> =
        (0..rounds).map(|_| timed(&mut script(shell, text)).saturating_sub(planned)).collect();
    let worst = millis(*times.iter().max().expect("a round"));
    println!(
        "200 daemons after the grace period: {:.0} ms, at worst {worst:.0} ms",
        millis(median(times))
    );
}

/// Measures the time from the `kill -9` of a shell with 20 daemons that ignore SIGTERM to the end
/// of the last process. Each daemon holds the pipe that is read here.
fn killed(shell: &Path, rounds: usize) {
    let text = "forall i in 1 .to. 20
        sh -c 'trap \"\" TERM; setsid sh -c \"echo ready; sleep 1000; :\" & sleep 1000; :'
    end";
    let once = || {
        let mut command = script(shell, text);
        let mut shell =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the shell starts");
        let mut output = BufReader::new(shell.stdout.take().expect("a pipe"));
        for _ in 0..20 {
            output.read_line(&mut String::new()).expect("a line");
        }
        let start = Instant::now();
        shell.kill().expect("it runs");
        output.read_to_end(&mut Vec::new()).expect("an end");
        let took = start.elapsed();
        shell.wait().expect("it has ended");
        took
    };
    let times: Vec<_> = (0..rounds).map(|_| once()).collect();
    let worst = millis(*times.iter().max().expect("a round"));
    println!(
        "20 daemons after kill -9 of the shell: {:.0} ms, at worst {worst:.0} ms",
        millis(median(times))
    );
}
