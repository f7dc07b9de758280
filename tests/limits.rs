//! Programs labeled by hand: those that hang, and those that work, under `stalled`.
//!
//! By default a few of them run once. By hand, all of them run, in rounds and beside two busy loops:
//! `FTSH_TEST_ROUNDS=100 cargo test --test main -- --ignored limits`.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, SystemTime};

use nix::sys::socket::{Backlog, listen};

use crate::resuming::{VICTIMS, again, killed, recorded};
use crate::support::rounds;
use crate::support::{Ftsh, has};

/// Time of `stalled` in seconds.
const TIME: u64 = 2;

/// Time that workers work in seconds: several times the limit.
const WORK: u64 = 7;

/// Number of labeled programs at once.
const AT_ONCE: usize = 8;

/// Label of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Label {
    /// The program hangs. The attempt has to end.
    Hangs,
    /// The program works, and ends by itself with status 0.
    Works,
}

use Label::{Hangs, Works};

/// Name, label, programs that are needed, and a script of `sh`. `PORT_*` are ports of servers, and
/// `SECONDS` is the time of a worker. A script writes the file `hangs` just before the program
/// hangs.
type Labeled = (&'static str, Label, &'static [&'static str], &'static str);

/// Programs of the default test.
const FEW: &[Labeled] = &[
    ("sleep", Hangs, &[], ": > hangs; exec sleep 600"),
    ("stopped process", Hangs, &[], ": > hangs; kill -STOP $$"),
    (
        "busy loop of a shell",
        Works,
        &[],
        "end=$(($(date +%s) + SECONDS)); while [ $(date +%s) -lt $end ]; do n=$((n + 1)); done",
    ),
    (
        "a byte each half second, by recv",
        Works,
        &["python3"],
        "exec python3 -c 'import socket
s = socket.create_connection((\"127.0.0.1\", PORT_SLOW))
while s.recv(1): pass'",
    ),
];

const MANY: &[Labeled] = &[
    ("tail of nothing", Hangs, &[], ": > hangs; exec tail -f /dev/null"),
    ("reader of a fifo", Hangs, &[], "mkfifo f; exec 3<>f; : > hangs; exec cat <&3"),
    ("writer of a full pipe", Hangs, &[], "mkfifo f; exec 3<>f; : > hangs; exec yes >&3"),
    ("read of a shell", Hangs, &[], "mkfifo f; exec 3<>f; : > hangs; read line <&3"),
    ("shell that waits for a child", Hangs, &[], "sleep 600 & : > hangs; wait"),
    (
        "waiter for a lock",
        Hangs,
        &["flock"],
        "flock lock sleep 600 & sleep 0.1; : > hangs; flock lock true",
    ),
    (
        "stopped gzip",
        Hangs,
        &["gzip"],
        "gzip -c /dev/zero > /dev/null & sleep 0.2; kill -STOP $!; : > hangs; wait",
    ),
    (
        "connection without data",
        Hangs,
        &["curl"],
        ": > hangs; exec curl -s http://127.0.0.1:PORT_SILENT/",
    ),
    (
        "connection that is not accepted",
        Hangs,
        &["curl"],
        ": > hangs; exec curl -s http://127.0.0.1:PORT_FULL/",
    ),
    (
        "recv without data",
        Hangs,
        &["python3"],
        "exec python3 -c 'import socket
connection = socket.create_connection((\"127.0.0.1\", PORT_SILENT))
open(\"hangs\", \"w\")
connection.recv(1)'",
    ),
    (
        "poll once a second",
        Hangs,
        &["python3"],
        "exec python3 -c 'import time
open(\"hangs\", \"w\")
while True: time.sleep(1)'",
    ),
    (
        "wait for a thread",
        Hangs,
        &["python3"],
        "exec python3 -c 'import threading
open(\"hangs\", \"w\")
threading.Event().wait()'",
    ),
    (
        "database behind a lock",
        Hangs,
        &["sqlite3"],
        "sqlite3 d 'create table t(a)'
mkfifo f; exec 3<>f; sqlite3 d <&3 & echo 'begin exclusive;' >&3; sleep 0.3; : > hangs
exec sqlite3 -cmd '.timeout 600000' d 'insert into t values(1)'",
    ),
    ("gzip", Works, &["gzip", "timeout"], "timeout SECONDS gzip -c /dev/zero > /dev/null; true"),
    (
        "sort",
        Works,
        &["timeout"],
        "timeout SECONDS sh -c 'while :; do seq 300000 | sort -R > /dev/null; done'; true",
    ),
    (
        "compiler",
        Works,
        &["gcc", "timeout"],
        "echo 'int f(int a) { return a; }' > a.c; timeout SECONDS sh -c 'while :; do gcc -O2 -c a.c; done'; true",
    ),
    (
        "make -j2",
        Works,
        &["make"],
        "printf 'all: 1 2 3 4 5 6 7 8\\n%%:\\n\\tsleep 1; sleep 0.8\\n' > Makefile; exec make -s -j2",
    ),
    (
        "curl --limit-rate 1k",
        Works,
        &["curl"],
        "exec curl -s --limit-rate 1k http://127.0.0.1:PORT_DATA/ -o data",
    ),
    (
        "a byte each half second, by curl",
        Works,
        &["curl"],
        "curl -s --http0.9 http://127.0.0.1:PORT_SLOW/ -o data; true",
    ),
    (
        "a byte each second, sent",
        Works,
        &["python3"],
        "exec python3 -c 'import socket, time
s = socket.create_connection((\"127.0.0.1\", PORT_SILENT))
for i in range(SECONDS):
    s.send(b\"x\"); time.sleep(1)'",
    ),
    (
        "rsync --bwlimit=1",
        Works,
        &["rsync"],
        "head -c 7000 /dev/urandom > data; exec rsync --bwlimit=1 data copy",
    ),
    (
        "database import",
        Works,
        &["sqlite3", "timeout"],
        "sqlite3 d 'create table t(a)'; timeout SECONDS sh -c 'while :; do seq 20000 > s; sqlite3 d \".import s t\"; done'; true",
    ),
    (
        "thread that computes",
        Works,
        &["python3"],
        "exec python3 -c 'import threading, time
end = time.time() + SECONDS
def work():
    while time.time() < end: pass
t = threading.Thread(target=work); t.start(); t.join()'",
    ),
    ("shell that polls", Works, &[], "for i in 1 2 3 4 5 6 7; do sleep 1; done"),
    (
        "pipeline with a slow source",
        Works,
        &[],
        "for i in 1 2 3 4 5 6 7; do echo $i; sleep 1; done | cat | cat > /dev/null",
    ),
    (
        "file that grows slowly",
        Works,
        &["python3"],
        "exec python3 -c 'import time
with open(\"log\", \"w\") as f:
    for i in range(SECONDS): f.write(\"x\"); f.flush(); time.sleep(1)'",
    ),
    (
        "copies of a file",
        Works,
        &["timeout"],
        "timeout SECONDS sh -c 'while :; do head -c 1000000 /dev/zero > a; cp a b; done'; true",
    ),
];

/// Servers on ports of their own, until the end of the tests.
struct Servers {
    silent: u16,
    slow: u16,
    data: u16,
    full: u16,
    /// Listener that accepts nothing, with the connections that fill its queue.
    _full: (TcpListener, Vec<TcpStream>),
}

impl Servers {
    fn start() -> Self {
        let silent = serve(|mut stream| _ = std::io::copy(&mut stream, &mut std::io::sink()));
        let slow = serve(|mut stream| {
            for _ in 0..2 * WORK {
                if stream.write_all(b"x").is_err() {
                    return;
                }
                thread::sleep(Duration::from_millis(500));
            }
        });
        let data = serve(|mut stream| {
            let _ = stream.read(&mut [0; 4096]);
            let length = 1024 * WORK as usize;
            let head = format!("HTTP/1.0 200 OK\r\nContent-Length: {length}\r\n\r\n");
            let _ = stream.write_all(head.as_bytes());
            let _ = stream.write_all(&vec![b'x'; length]);
        });
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listen(&listener, Backlog::new(0).expect("a length")).expect("a listener");
        let address = listener.local_addr().expect("an address");
        let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(200));
        let waiting = std::iter::repeat_with(connect).map_while(Result::ok).take(8).collect();
        assert!(listener.as_raw_fd() >= 0);
        Self { silent, slow, data, full: address.port(), _full: (listener, waiting) }
    }

    /// Returns the text of a script with its ports.
    fn fill_in(&self, script: &str) -> String {
        let ports = [
            ("PORT_SILENT", self.silent),
            ("PORT_SLOW", self.slow),
            ("PORT_DATA", self.data),
            ("PORT_FULL", self.full),
        ];
        let script = script.replace("SECONDS", &WORK.to_string());
        ports.iter().fold(script, |text, (name, port)| text.replace(name, &port.to_string()))
    }
}

/// Starts a server, which handles each connection in a thread.
fn serve(handle: fn(TcpStream)) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || handle(stream));
        }
    });
    port
}

/// Runs a program under `stalled`. Returns the time from the beginning of a stall to the end, or the
/// reason why the label is wrong.
fn judge(servers: &Servers, (name, label, _, script): &Labeled) -> Result<Duration, String> {
    let script = servers.fill_in(script);
    let text = format!("try stalled {TIME} seconds\n sh program\nend");
    let run = Ftsh::script(&text).options(["-l", "0", "-t", "1"]).file("program", script);
    let begun = SystemTime::now();
    let mark = run.path("hangs");
    let finished = run.limit(Duration::from_secs(60)).run();
    let end = SystemTime::now();
    let code = finished.status.and_then(|status| status.code());
    let since = |begun| end.duration_since(begun).unwrap_or_default();
    match (label, code) {
        (Hangs, Some(124)) => {
            let mark = mark.metadata().and_then(|found| found.modified());
            Ok(since(mark.map_err(|error| format!("{name}: {error}"))?))
        }
        (Works, Some(0)) => Ok(since(begun)),
        _ => Err(format!("{name}: {label:?}, but status {code:?} after {:?}", since(begun))),
    }
}

/// Judgments of several programs.
#[derive(Default)]
struct Judged {
    /// Wrong labels, a line each.
    wrong: String,
    /// Times of stalls, with the names of the programs.
    stalls: Vec<(Duration, &'static str)>,
}

/// Runs programs at once.
fn judge_all(programs: &[&'static Labeled]) -> Judged {
    let servers = &Servers::start();
    let mut judged = Judged::default();
    thread::scope(|scope| {
        let judge = |program| scope.spawn(move || (judge(servers, program), program));
        let all: Vec<_> = programs.iter().copied().map(judge).collect();
        for judgment in all {
            match judgment.join().expect("a judgment") {
                (Ok(time), program) if program.1 == Hangs => judged.stalls.push((time, program.0)),
                (Ok(_), _) => {}
                (Err(why), _) => _ = writeln!(judged.wrong, "{why}"),
            }
        }
    });
    judged
}

#[test]
fn hanging_programs_stall_and_working_ones_do_not() {
    let there: Vec<_> = FEW.iter().filter(|it| it.2.iter().all(|name| has(name))).collect();
    let Judged { wrong, .. } = judge_all(&there);
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_resumed_run_finds_a_stall() {
    // The first start never stalls, since it starts processes.
    let program = "if mkdir been; then echo >> ready; while :; do sleep 0.1; done; fi
echo >> ready
exec sleep 1000";
    let text = "try 1 time stalled 1 second
    try 2 times backoff none while $error_kind .eq. lost
        sh program
    end
end";
    for victim in VICTIMS {
        let before = killed(recorded(text).file("program", program), victim);
        let finished = again(before).limit(Duration::from_secs(60)).failure(124);
        finished.nothing_left().expect_stderr("`sh program` made no progress for 1 s");
        assert_eq!(finished.read("ready"), "\n\n", "{victim:?}");
    }
}

/// Loop that uses a processor until dropped.
struct Busy(Child);

impl Busy {
    fn start() -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
        Self(command.spawn().expect("sh runs"))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "takes minutes: run by hand"]
fn limits_of_all_labeled_programs_by_hand() {
    let _busy = [Busy::start(), Busy::start()];
    let all = || FEW.iter().chain(MANY);
    let there: Vec<_> = all().filter(|it| it.2.iter().all(|name| has(name))).collect();
    let missing = all().filter(|it| !it.2.iter().all(|name| has(name)));
    let missing: Vec<_> = missing.map(|it| it.0).collect();
    eprintln!("{} programs, without {missing:?}", there.len());
    let (hanging, working): (Vec<_>, Vec<_>) = there.into_iter().partition(|it| it.1 == Hangs);
    let mut all = Judged::default();
    for round in 0..rounds::count() {
        // A few at once, so that starting the programs takes no time of its own.
        for programs in hanging.chunks(AT_ONCE).chain(working.chunks(AT_ONCE)) {
            let judged = judge_all(programs);
            eprint!("{}", judged.wrong);
            all.wrong += &judged.wrong;
            if let Some((time, name)) = judged.stalls.iter().max() {
                eprintln!("round {round}: longest time to end a stall {time:?}, {name}");
            }
            all.stalls.extend(judged.stalls);
        }
    }
    all.stalls.sort();
    let at = |part: usize| all.stalls[(all.stalls.len() - 1) * part / 100];
    eprintln!("median {:?}, 90 % within {:?}, longest {:?}", at(50), at(90), at(100));
    assert!(all.wrong.is_empty(), "{}", all.wrong);
    assert!(at(100).0 <= Duration::from_secs(TIME) * 5 / 4, "a stall was found late");
}

/// Program that takes 1 GB of memory a second, and prints its memory in MB after each step.
const ALLOCATOR: &str = "import time
blocks, begun, taken = [], time.time(), 0
while taken < 6000:
    blocks.append(bytearray(b'x') * 20_000_000)
    taken += 20
    print(taken, flush=True)
    time.sleep(max(0, begun + taken / 1000 - time.time()))
";

#[test]
#[ignore = "takes 3 GB of memory: run by hand"]
fn limits_of_an_allocator_of_1_gb_a_second_by_hand() {
    let text = "try memory 2 GB\n python3 program > steps\ncatch\n echo $error_kind\nend";
    let run = Ftsh::script(text).file("program", ALLOCATOR).limit(Duration::from_secs(60));
    let finished = run.stdout("memory\n").success();
    let steps = finished.read("steps");
    let most: u64 = steps.lines().last().and_then(|line| line.parse().ok()).expect("a number");
    eprintln!("ended with {most} MB");
    assert!(most < 3000, "{most} MB");
}
