//! Input that later attempts read again, with the real shell: large input, and its rest.

use std::time::Duration;

use crate::support::Ftsh;

/// Runs a script with input from a command of `sh`.
fn fed(by: &str, script: &str) -> Ftsh {
    Ftsh::command(script).through(["sh", "-c", &format!("({by}) | \"$@\""), "sh"])
}

#[test]
fn a_retry_reads_what_the_first_attempt_read() {
    let script = "
        try 3 times every 1 ms atomic
            cat
            sh -c 'echo r >> rounds; test $(wc -l < rounds) = 3'
        end
        echo that was all
        cat";
    for by in ["printf 'a\nb\n'", "sleep 0.1; echo a; sleep 0.1; echo b"] {
        fed(by, script).stdout("a\nb\nthat was all\n").success();
    }
}

#[test]
fn much_input_takes_little_memory() {
    let script = "
        try 2 times every 1 ms atomic
            wc -c
            grep -q VmHWM /proc/self/status
            sh -c 'test -e second || { : > second; exit 1; }'
        end
        grep VmHWM /proc/$PPID/status -> memory
        echo $memory > memory";
    let finished = fed("head -c 100000000 /dev/zero", &script.replace("$PPID", "$$"))
        .limit(Duration::from_secs(60))
        .stdout("100000000\n")
        .success();
    let memory = finished.read("memory");
    let memory: usize =
        memory.split_whitespace().nth(1).and_then(|it| it.parse().ok()).expect("a size");
    assert!(memory < 40_000, "{memory} KiB");
}

#[test]
fn the_rest_goes_to_the_next_reader() {
    let lines = "for i in $(seq 2000); do echo line $i; done";
    let script = "
        try 1 time atomic
            read first
            try 1 time atomic
                read second
            end
            try 1 time atomic
                read third
                failure
            catch
                success
            end
        end
        read x
        echo $first, $second, $x
        try 1 time atomic
            read x
            failure
        catch
            success
        end
        cat > rest
        head -n 1 rest
        wc -l
    ";
    let rest = "line 1, line 2, line 3\nline 4\n0\n";
    fed(lines, script).stdout(rest).success();
}

#[test]
fn a_program_that_replaces_the_shell_reads_the_rest() {
    let script = "
        try 1 time atomic
            read x
        end
        exec cat";
    fed("seq 20000", script)
        .stdout((2..=20000).fold(String::new(), |all, it| format!("{all}{it}\n")))
        .success();
    // Later input as well.
    fed("seq 3; sleep 0.3; echo 4; sleep 0.3; echo 5", script).stdout("2\n3\n4\n5\n").success();
    fed("seq 3; sleep 0.3; echo 4", &script.replace("cat", "head -n 1")).stdout("2\n").success();
    // Without earlier reads, the command has the input itself.
    fed("seq 3; sleep 0.3; echo 4", "try 1 time atomic; /bin/true < /dev/null; end; exec cat")
        .stdout("1\n2\n3\n4\n")
        .success();
}
