//! Costs of the shell itself compared with dash: the table of docs/evidence/performance.md. Run
//! `cargo bench --bench beside_dash`, with parts of names after `--` for some rows. `FTSH` names
//! another build of the shell.
//!
//! Both shells run the same work alternately. Each figure is a ratio of medians: of time, of
//! processor time, and of the peak memory of the shell's process.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

const SHELL: &str = env!("CARGO_BIN_EXE_ftsh");

/// Command that stores the peak memory of the shell that runs the command.
const REPORT_MEMORY: &str = "sh -c 'grep VmHWM /proc/$PPID/status > memory'";

/// Equal work for both shells.
struct Work {
    name: &'static str,
    ours: String,
    theirs: String,
    /// Arguments before the name of the script.
    options: &'static [&'static str],
}

fn work(name: &'static str, ours: impl Into<String>, theirs: impl Into<String>) -> Work {
    Work { name, ours: ours.into(), theirs: theirs.into(), options: &[] }
}

/// Creates a loop with `count` turns.
fn turns(name: &'static str, count: u32, ours: &str, theirs: &str) -> Work {
    work(
        name,
        format!("for i in 1 .to. {count}\n{ours}\nend\n"),
        format!("i=0\nwhile [ $i -lt {count} ]\ndo\ni=$((i+1))\n{theirs}\ndone\n"),
    )
}

fn all() -> Vec<Work> {
    let words = "w ".repeat(1_000_000);
    let mut lines = String::new();
    for i in 0..10_000 {
        let _ = write!(
            lines,
            "echo line {i} of many\nx{i}=a\ncp a{i} b{i} > log\nsort f | uniq\n# a comment\n"
        );
    }
    vec![
        turns("echo", 20_000, "echo $i", "echo $i"),
        turns("echo > /dev/null", 20_000, "echo $i > /dev/null", "echo $i > /dev/null"),
        turns("echo >> f", 20_000, "echo $i >> f", "echo $i >> f"),
        turns(
            "if .exists.",
            20_000,
            "if .exists. script; x=1; end",
            "if [ -e script ]; then x=1; fi",
        ),
        work(
            "read lines of a file",
            "i=0\nwhile $i .lt. 20000\nread l\ni=$i .add. 1\nend < lines\n",
            "i=0\nwhile [ $i -lt 20000 ]\ndo\nread l\ni=$((i+1))\ndone < lines\n",
        ),
        Work { options: &["-n"], ..work("-n of 50,000 lines", lines.clone(), lines) },
        work(
            "a million words in a loop",
            format!("w=\"{words}\"\nfor x in ${{w}}; y=$x; end\n"),
            format!("w=\"{words}\"\nfor x in $w; do y=$x; done\n"),
        ),
        turns("/bin/true > /dev/null", 1_000, "/bin/true > /dev/null", "/bin/true > /dev/null"),
        turns("/bin/true", 1_000, "/bin/true", "/bin/true"),
        turns("/bin/true | /bin/true", 1_000, "/bin/true | /bin/true", "/bin/true | /bin/true"),
        turns("capture of /bin/echo", 1_000, "/bin/echo $i -> v", "v=$(/bin/echo $i)"),
        work(
            "counting",
            "i=0\nwhile $i .lt. 200000\ni=$i .add. 1\nend\n",
            "i=0\nwhile [ $i -lt 200000 ]\ndo\ni=$((i+1))\ndone\n",
        ),
        work(
            "fib(20)",
            "function fib\nif $1 .lt. 2\nreturn $1\nend\n\
             return fib($1 .sub. 1) .add. fib($1 .sub. 2)\nend\nx=fib(20)\n",
            "fib() {\nif [ $1 -lt 2 ]; then r=$1; return; fi\n\
             fib $(($1-1)); set -- $1 $r; fib $(($1-2)); r=$((r+$2))\n}\nfib 20\n",
        ),
        work("start: echo", "echo hi\n", "echo hi\n"),
        work("start: a command", "/bin/true\n", "/bin/true\n"),
    ]
}

/// Costs of a run: time, processor time, and memory in KB.
#[derive(Clone, Copy, Default)]
struct Cost {
    time: Duration,
    processor: Duration,
    memory: u64,
}

fn main() {
    let measures = std::env::args().any(|arg| arg == "--bench");
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    // `cargo test --benches` only checks that the benchmark runs.
    if !measures {
        return;
    }
    let place = tempfile::tempdir().expect("a temporary directory");
    let shell = place.path().join("ftsh");
    let built = std::env::var_os("FTSH").unwrap_or_else(|| SHELL.into());
    fs::copy(built, &shell).expect("a copy of the shell");
    println!("| work | time | processor | memory |\n|---|---|---|---|");
    for work in all() {
        if wanted.is_empty() || wanted.iter().any(|part| work.name.contains(part.as_str())) {
            compare(&work, &shell, place.path());
        }
    }
}

fn compare(work: &Work, shell: &Path, place: &Path) {
    let is_start = work.name.starts_with("start");
    let rounds = if is_start { 400 } else { 9 };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        theirs.push(run(Path::new("dash"), work, &work.theirs, place, !is_start));
        ours.push(run(shell, work, &work.ours, place, !is_start));
    }
    let ratio = |of: fn(&Cost) -> f64| {
        let median = |costs: &[Cost]| {
            let mut all: Vec<f64> = costs.iter().map(of).collect();
            all.sort_by(f64::total_cmp);
            all[all.len() / 2]
        };
        match median(&theirs) {
            0.0 => String::new(),
            theirs => format!("{:.2}", median(&ours) / theirs),
        }
    };
    println!(
        "| {} | {} | {} | {} |",
        work.name,
        ratio(|cost| cost.time.as_secs_f64()),
        ratio(|cost| cost.processor.as_secs_f64()),
        ratio(|cost| cost.memory as f64),
    );
}

fn run(shell: &Path, work: &Work, script: &str, place: &Path, reports_memory: bool) -> Cost {
    let directory = tempfile::tempdir_in(place).expect("a temporary directory");
    let write = |name: &str, text: &str| {
        fs::write(directory.path().join(name), text).expect("a file");
    };
    let checks_only = work.options.contains(&"-n");
    let memory = if reports_memory && !checks_only { REPORT_MEMORY } else { "" };
    write("script", &format!("{script}{memory}\n"));
    write("lines", &"some line of a file\n".repeat(20_000));
    let output = directory.path().join("output");
    let mut command = Command::new(shell);
    command.args(work.options).arg("script").current_dir(&directory);
    command.stdin(Stdio::null()).stdout(fs::File::create(&output).expect("a file"));
    let (before, start) = (processor_time(), Instant::now());
    let status = command.status().expect("the shell starts");
    let (time, processor) = (start.elapsed(), processor_time().saturating_sub(before));
    assert!(status.success(), "{} by {}", work.name, shell.display());
    Cost { time, processor, memory: memory_of(&directory.path().join("memory")) }
}

/// Returns the processor time of all children so far.
fn processor_time() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("figures of the kernel's");
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Duration::from_micros(micros.try_into().unwrap_or_default())
}

/// Returns the memory in a report of the kernel in KB; 0 without a report.
fn memory_of(report: &PathBuf) -> u64 {
    let report = fs::read_to_string(report).unwrap_or_default();
    report.split_whitespace().nth(1).and_then(|figure| figure.parse().ok()).unwrap_or_default()
}
