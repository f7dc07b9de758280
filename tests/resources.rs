//! Too little of something: what a script needs is there, or it fails and says why. Nothing hangs,
//! nothing stays, nothing panics.

use std::fs;
use std::time::Duration;

use crate::support::rounds::count;
use crate::support::run;
use crate::support::skipped::skipped;
use crate::support::{FTSH, Ftsh};

/// Scripts, with their options, that say `one` and nothing else.
const SCRIPTS: [(&str, &[&str]); 11] = [
    ("/bin/echo one", &[]),
    ("/bin/echo one -> v; echo $v", &[]),
    ("echo one | /bin/cat | cat", &[]),
    ("forall x in a b c; /bin/echo on$x > $x; end; echo one", &[]),
    ("cat <<E\none\nE", &[]),
    ("function f; if $1 .gt. 0; f ($1 .sub. 1); end; end; f 100; echo one", &[]),
    ("x=\"${y:-a}\"; if ((1 .add. 1) .eql. 2) .and. $x .eq. a; sh -c 'echo one'; end", &[]),
    ("x=json(1, .); if $x .eql. 1; echo one; end", &[]),
    ("/bin/true; echo one", &["-l", "20", "-f", "log"]),
    ("echo one > f; cat f; sh -c 'exit 0'; failure", &["--cron"]),
    ("/bin/true; echo one", &["--lock=lock"]),
];

/// Returns the shortages, as commands of sh that run before the shell.
fn shortages() -> Vec<String> {
    let size = smallest_address_space();
    let mut all: Vec<_> = [0, 500, 1500, 4000, 12000]
        .map(|more| format!("ulimit -v {}", size + more))
        .into_iter()
        .collect();
    all.extend(["10", "16", "24", "40"].map(|count| format!("ulimit -n {count}")));
    all.extend(["0", "1"].map(|blocks| format!("ulimit -f {blocks}")));
    // Such a stack also holds the environment, whose size differs between machines.
    let small = "env -i PATH=\"$PATH\" FTSH_TEST_RUN=\"$FTSH_TEST_RUN\"";
    all.extend(
        ["16", "64", "300"]
            .map(|kib| format!("set -- {small} sh -c 'ulimit -s {kib}; exec \"$@\"' sh \"$@\"")),
    );
    // No more processes than nobody has: one that is there already counts.
    all.extend(
        ["1", "3"].map(|count| format!("ulimit -p {count} 2> /dev/null || ulimit -u {count}")),
    );
    all
}

/// In KiB, what it takes to load the shell's program at all.
fn smallest_address_space() -> usize {
    let size = fs::metadata(FTSH).expect("the shell").len() as usize / 1024 / 4;
    let starts = |kib: &usize| {
        let limited = format!("ulimit -v {kib}; exec \"$0\" --version");
        let output = run::command("sh").args(["-c", &limited, FTSH]).output();
        // Where the C library can't begin, it says so itself.
        matches!(output.expect("sh").status.code(), Some(0 | 2))
    };
    let mut sizes = std::iter::successors(Some(size), |kib| Some(kib + 250));
    sizes.find(starts).expect("the shell starts")
}

/// Runs a script through `limited`, a command of sh. Its output comes through a pipe: a limit on files
/// is none on what is printed.
fn check(script: &str, options: &[&str], limited: &str) {
    let story = format!("{limited}: ftsh {options:?} {script:?}");
    let wrapper =
        format!("text=$( (set -e; {limited}; exec \"$@\") 2>&1 ); echo \"$text\"; echo $?");
    let wrapper =
        wrapper.replace("2>&1 );", "2>&1 ); status=$?;").replace("echo $?", "echo $status");
    let run = Ftsh::command(script)
        .options(options)
        .through(["sh", "-c", &wrapper, "sh"])
        .unprivileged()
        .limit(Duration::from_secs(30))
        .run();
    run.nothing_left();
    let text = run.text();
    let (errors, status) = text.trim_end().rsplit_once('\n').unwrap_or(("", text.trim_end()));
    let story = format!("{story}\n{status}\n{errors}");
    assert!(!errors.contains("panicked") && !errors.contains("internal error"), "{story}");
    match status {
        // A log that can't be written is errors, and the script goes on.
        "0" => assert!(errors.ends_with("one"), "{story}"),
        // That of a command which wrote too much.
        "153" => assert!(errors.contains("was killed by SIGXFSZ"), "{story}"),
        // Nothing can be kept without a thread, so nothing goes on.
        "137" => assert!(errors.contains("cannot capture the output"), "{story}"),
        "134" => assert!(errors.contains("ftsh: out of memory"), "{story}"),
        // A stack of a few pages has no room for a program beside a large environment.
        "139" => assert!(errors.contains("` was killed by SIGSEGV"), "{story}"),
        _ => {
            assert!(matches!(status, "1" | "2" | "126" | "127"), "{story}");
            assert!(
                errors.contains("ftsh: ") || errors.contains("failed") || errors.contains("one"),
                "{story}"
            );
        }
    }
}

/// Each script with each shortage if `FTSH_TEST_ROUNDS` asks for many; else some of them.
#[test]
fn too_little_of_something_is_a_failure_that_says_so() {
    let every = if count() >= 10 { 1 } else { 6 };
    for (number, shortage) in shortages().iter().enumerate() {
        for (other, (script, options)) in SCRIPTS.iter().enumerate() {
            if (number + other) % every == 0 {
                check(script, options, shortage);
            }
        }
    }
}

#[test]
fn a_disk_that_takes_nothing_is_a_failure_that_says_so() {
    let disk = "unshare -Urm sh -c 'mount -t tmpfs -o size=64k none \"$PWD\" && cd \"$PWD\"";
    let space = std::process::Command::new("unshare").args(["-Urm", "true"]).status();
    if !space.is_ok_and(|status| status.success()) {
        return skipped("namespaces for users who are not root");
    }
    for state in
        ["head -c 1M /dev/zero > fill 2> /dev/null; ", "mount -o remount,ro none \"$PWD\"; "]
    {
        for (script, options) in SCRIPTS {
            let limited = format!("{disk}; {state} exec \"$@\"' sh \"$@\" && exit; exit");
            check(script, options, &limited);
        }
    }
}

#[test]
fn a_device_that_is_full_is_a_failure() {
    for script in
        ["echo one > /dev/full", "/bin/echo one > /dev/full", "echo one | cat > /dev/full"]
    {
        Ftsh::command(script).stderr("o space left on device").failure(1);
    }
}

#[test]
fn a_script_that_never_ends_is_refused() {
    let message = "a script can have at most 64 MiB";
    Ftsh::new().arg("/dev/zero").refused(&["/dev/zero", message]).one_line();
    Ftsh::command("ftsh < /dev/zero").stderr(message).failure(2);
    Ftsh::command("try; source /dev/zero; catch; echo $error_kind; end").stdout("io\n").success();
}

/// With so much address space (KiB) beside the program's own.
fn with_memory(kib: usize, script: &str) -> Ftsh {
    let limit = format!("ulimit -v {}; exec \"$@\"", smallest_address_space() + kib);
    Ftsh::script(script).through(["sh", "-c", &limit, "sh"])
}

/// Says what kind of failure it is to use what `v` holds; reading it as a file is none.
const USES: &str = "
try; w=$v; catch; echo $error_kind; end
try; echo \"$v\" > /dev/null; catch; echo $error_kind; end
head -c 3 -< v
";

#[test]
fn what_is_too_long_for_a_value_or_for_the_memory_is_a_failure() {
    for (memory, bytes) in [(200_000, "200000000"), (50_000, "50000000")] {
        with_memory(memory, &format!("head -c {bytes} /dev/zero | tr '\\0' a -> v\n{USES}"))
            .stdout("expression\nexpression\naaa")
            .success();
    }
    for (memory, message) in [(30_000, "too little memory"), (600_000, "at most 64 MiB")] {
        let grow = "try; x=a; while true; x=\"$x$x\"; end; catch; echo $error; end";
        let finished = with_memory(memory, grow).success();
        assert!(finished.text().contains(message), "{}", finished.story());
    }
    with_memory(30_000, "try; read x < /dev/zero; catch; echo $error_kind; end")
        .stdout("io\n")
        .success();
}

#[test]
fn a_filter_without_memory_is_a_failure() {
    let script = "try; x=json(1, '[range(1e7)] | length'); catch; echo $error_kind; end; echo one";
    with_memory(60_000, script).stdout("expression\none\n").success();
}

#[test]
fn a_long_list_holds_up_neither_limits_nor_memory() {
    let script = "
        yes a | head -c 40000000 | tr '\\n' ' ' -> v
        date +%s%N -> from
        try for 200 ms or 1 time
            for x in $v; y=$x; end
        catch
            echo $error_kind
        end
        date +%s%N -> to
        if ($to .sub. $from) .gt. 2000000000; echo late; end";
    // Twice the text, and what the threads of the C library reserve.
    with_memory(400_000, script).stdout("timeout\n").success();
}

#[test]
fn a_small_stack_is_no_mistake_of_the_script() {
    // On a smaller stack the environment of a CI leaves no room: the kernel kills any program.
    let parentheses = |depth| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
    for limit in ["64", "512"] {
        Ftsh::command(&format!("x={}; echo $x", parentheses(90)))
            .through(["sh", "-c", &format!("ulimit -s {limit}; exec \"$@\""), "sh"])
            .stdout("1\n")
            .success();
    }
}
