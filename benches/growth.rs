//! Growth of costs with the size of the work: run `cargo bench --bench growth`, with parts of names
//! after `--` for some rows. `FTSH` names another build of the shell.
//!
//! Each figure is the processor time per item in microseconds, without the costs of an empty
//! script. Costs with a constant figure grow linearly.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

const SHELL: &str = env!("CARGO_BIN_EXE_ftsh");

/// Work of variable size.
struct Growth {
    what: &'static str,
    sizes: &'static [u32],
    script: fn(u32) -> String,
    options: &'static [&'static str],
}

const SIZES: &[u32] = &[10, 100, 1_000, 10_000, 100_000];

const ALL: &[Growth] = &[
    Growth {
        what: "branches that compute",
        sizes: SIZES,
        script: |size| format!("forall i in 1 .to. {size}; x=$i; end\n"),
        options: &[],
    },
    Growth {
        what: "branches that sleep",
        sizes: SIZES,
        script: |size| format!("forall i in 1 .to. {size}; sleep 1; end\n"),
        options: &[],
    },
    Growth {
        what: "branches with a command",
        sizes: &[10, 100, 1_000, 10_000],
        script: |size| format!("forall i in 1 .to. {size}; /bin/true; end\n"),
        options: &[],
    },
    Growth {
        what: "turns of a loop",
        sizes: SIZES,
        script: |size| format!("for i in 1 .to. {size}; x=$i; end\n"),
        options: &[],
    },
    Growth {
        what: "words of a list",
        sizes: SIZES,
        script: |size| {
            format!("w=\"{}\"\nfor x in ${{w}}; y=$x; end\n", "w ".repeat(size as usize))
        },
        options: &[],
    },
    Growth {
        what: "variables",
        sizes: SIZES,
        script: |size| lines(size, |i| format!("v{i}={i}\n")),
        options: &[],
    },
    Growth {
        what: "functions",
        sizes: SIZES,
        script: |size| lines(size, |i| format!("function f{i}\nx={i}\nend\nf{i}\n")),
        options: &[],
    },
    Growth {
        what: "nested structures",
        sizes: &[10, 30, 100],
        script: |size| {
            let depth = size as usize;
            format!("{}x=1\n{}", "try 1 time\n".repeat(depth), "end\n".repeat(depth))
        },
        options: &[],
    },
    Growth {
        what: "calls in one another",
        sizes: &[10, 100, 900],
        script: |size| {
            format!("function f\nif $1 .gt. 0\nn=$1 .sub. 1\nf $n\nend\nend\nf {size}\n")
        },
        options: &[],
    },
    Growth {
        what: "lines to check",
        sizes: SIZES,
        script: |size| lines(size, |i| format!("cp a{i} b{i} > log\n")),
        options: &["-n"],
    },
    Growth {
        what: "attempts in the log",
        sizes: &[10, 100, 1_000, 10_000],
        script: |size| {
            format!("for i in 1 .to. {size}\ntry 1 time\nfailure\ncatch\nx=1\nend\nend\n")
        },
        options: &["-l", "40", "-f", "log"],
    },
];

fn lines(count: u32, line: impl Fn(u32) -> String) -> String {
    (0..count).map(line).collect()
}

fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    // `cargo test --benches` only checks that the benchmark runs.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let place = tempfile::tempdir().expect("a temporary directory");
    let shell = place.path().join("ftsh");
    let built = std::env::var_os("FTSH").unwrap_or_else(|| SHELL.into());
    fs::copy(built, &shell).expect("a copy of the shell");
    let is_wanted =
        |what: &str| wanted.is_empty() || wanted.iter().any(|part| what.contains(part.as_str()));
    for growth in ALL.iter().filter(|growth| is_wanted(growth.what)) {
        grow(growth, &shell, place.path());
    }
    if is_wanted("memory") {
        memory(&shell, place.path());
    }
    if is_wanted("cancel") {
        cancel(&shell, place.path());
    }
}

fn grow(growth: &Growth, shell: &Path, place: &Path) {
    let idle = best(shell, place, growth.options, "x=1\n");
    let mut row = format!("| {} |", growth.what);
    for &size in growth.sizes {
        let took = best(shell, place, growth.options, &(growth.script)(size)).saturating_sub(idle);
        let _ = write!(row, " {size}: {:.2} |", took.as_secs_f64() * 1e6 / f64::from(size));
    }
    println!("{row}");
}

/// Returns the least processor time of some runs, because other work on the machine only adds time.
fn best(shell: &Path, place: &Path, options: &[&str], script: &str) -> Duration {
    let file = place.join("script");
    fs::write(&file, script).expect("a file");
    let run = || {
        let before = processor_time();
        let mut command = Command::new(shell);
        let command = command.args(["-t", "1"]).args(options).arg(&file).current_dir(place);
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
        assert!(status.expect("the shell starts").success(), "{script:.200}");
        processor_time().saturating_sub(before)
    };
    (0..5).map(|_| run()).min().unwrap_or_default()
}

/// Returns the processor time of all children so far.
fn processor_time() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("figures of the kernel's");
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Duration::from_micros(micros.try_into().unwrap_or_default())
}

/// Measures the memory of a branch that sleeps.
fn memory(shell: &Path, place: &Path) {
    let most = |branches: u32| {
        let sleep = format!("forall i in 1 .to. {branches}; sleep 1; end\n");
        let tell = "sh -c 'grep VmHWM /proc/$PPID/status'\n";
        let output = Command::new(shell).args(["-c", &(sleep + tell)]).current_dir(place).output();
        let output = String::from_utf8(output.expect("the shell starts").stdout).expect("text");
        let figure = output.split_whitespace().nth(1).and_then(|it| it.parse::<u64>().ok());
        figure.expect("a figure")
    };
    let idle = most(1);
    for branches in [1_000, 10_000, 100_000] {
        let held = (most(branches) - idle) * 1024 / u64::from(branches);
        println!("{branches} branches that sleep: {held} bytes each");
    }
}

/// Measures the time to cancel a thousand commands.
fn cancel(shell: &Path, place: &Path) {
    let text = "try for 3 seconds; forall i in 1 .to. 1000; /bin/sleep 1000; end; end";
    let run = || {
        let start = Instant::now();
        let mut command = Command::new(shell);
        let command = command.args(["-t", "1", "-c", text]).current_dir(place);
        command.stderr(Stdio::null()).status().expect("the shell starts");
        start.elapsed().saturating_sub(Duration::from_secs(3))
    };
    let mut times: Vec<_> = (0..5).map(|_| run()).collect();
    times.sort_unstable();
    println!("1000 commands are ended in {:.0} ms", times[2].as_secs_f64() * 1e3);
}
