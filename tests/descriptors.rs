//! Lack of descriptors: requests wait for their turn.

use std::time::Duration;

use crate::support::Ftsh;

/// Returns a run with a limit on open files.
fn with_limit(limit: usize, script: &str) -> Ftsh {
    let set = format!("ulimit -n {limit}; exec \"$@\"");
    let run = Ftsh::command(script).through(["sh", "-c", &set, "sh"]);
    run.limit(Duration::from_secs(60))
}

#[test]
fn branches_wait_for_descriptors() {
    let bodies = [
        "/bin/echo $i -> v\n if $v .ne. $i\n failure\n end",
        "sleep 0.01 -> v",
        "cat <<< $i -> v",
        "/bin/echo $i | cat | cat -> v",
        "cat < /etc/passwd > /dev/null 2>&1",
        // A branch holds variables while it waits for further descriptors.
        "/bin/echo $i -> v\n cat <<< $v -> w\n /bin/echo x ->> w\n if $w .ne. \"${i}\nx\"\n failure\n end",
    ];
    for body in bodies {
        let script = format!("forall i in 1 .to. 100\n {body}\nend\n");
        with_limit(64, &script).success();
    }
}

/// A held attempt keeps its descriptors until its output is printed, which needs some more.
#[test]
fn held_attempts_wait_for_descriptors() {
    let script = "forall n in 1 .to. 100
        try 1 time atomic
            sh -c 'echo $0; echo e$0 >&2' $n
        end
    end";
    for limit in [256, 64, 40] {
        with_limit(limit, script).success();
    }
}

#[test]
fn foralls_in_foralls_wait_for_descriptors() {
    let script = "forall i in 1 .to. 10
        forall j in 1 .to. 6
            cat <<< $j | cat | cat -> v
        end
    end -> all
    echo done";
    for limit in [64, 40] {
        with_limit(limit, script).stdout("done\n").success();
    }
}

#[test]
fn a_stage_with_branches_waits_for_descriptors() {
    let script = "function f
        forall i in 1 .to. 30
            /bin/echo $i | cat -> v
            /bin/echo $v
        end
    end
    f | cat | wc -l -> count
    echo $count";
    with_limit(64, script).stdout("30\n").success();
}

/// Limits: the promised minimum, a few more, and enough for several structures at once.
const FEW: [usize; 3] = [28, 32, 40];

#[test]
fn nested_structures_wait_for_descriptors() {
    let functions = "function one; /bin/echo a | cat -> x; cat <<< $x; end
        function deep; /bin/echo a | cat | cat; end
        function deeper; deep | cat | cat; end
        function captures; one -> y; echo $y; end
        function reads; cat | cat; end\n";
    let bodies = [
        "one | cat -> v",
        "captures | cat -> v",
        "captures -> v",
        "deeper | cat | cat -> v",
        "deep | reads -> v",
        "try 3 times; deep | cat -> v; end",
        "forall j in 1 2 3; one | cat -> w; echo $w; end -> w; sort -u -< w -> v",
        "forall j in 1 2 3; /bin/echo a | cat | cat; end -> w; sort -u -< w | cat -> v",
    ];
    for limit in FEW {
        for body in bodies {
            let script = format!(
                "{functions}forall i in 1 .to. 12\n{body}\nif $v .ne. a; failure; end\nend"
            );
            with_limit(limit, &script).success();
        }
    }
}

#[test]
fn readers_of_a_pipe_are_served_before_writers() {
    // More output than a pipe holds, from branches that hold descriptors while they write.
    let script = "function writes
        forall i in 1 .to. 20
            head -c 30000 /dev/zero -> v
            cat -< v
        end
    end
    function reads
        cat -> all
        wc -c -< all -> count
        echo $count
    end
    writes | reads | reads_on -> count
    echo $count";
    let script = format!("function reads_on; read x; cat <<< $x -> y; echo $y; end\n{script}");
    for limit in [28, 32, 40] {
        with_limit(limit, &script).stdout("600000\n").success();
    }
}

#[test]
fn branches_that_need_each_other_do_not_wait_for_descriptors() {
    let script = "mkfifo fifo
        forall i in 1 2 3
            if $i .eql. 1
                cat fifo -> v
                echo $v
            else
                if $i .eql. 2
                    /bin/echo one | cat > fifo
                else
                    /bin/echo x -> w
                end
            end
        end";
    for limit in FEW {
        with_limit(limit, script).stdout("one\n").success();
    }
}

#[test]
fn exec_receives_the_content_of_variables() {
    let captures: Vec<_> = (1..30).map(|i| format!("/bin/echo {i} -> v{i}\n")).collect();
    let script = format!("{}exec cat -< v1 2>&1", captures.concat());
    with_limit(28, &script).stdout("1\n").success();
}

#[test]
fn late_output_of_a_daemon_is_not_lost() {
    let script = "sh -c '(until [ -e go ]; do sleep 0.01; done; echo late; : > done) &' -> v
        forall i in 1 .to. 20
            /bin/echo $i -> w
            cat <<< $w | cat -> x
        end
        : > go
        sh -c 'until [ -e done ]; do sleep 0.01; done'
        echo $v";
    let script = script.replace(": > go", "sh -c ': > go'");
    for limit in FEW {
        with_limit(limit, &script).stdout("late\n").success();
    }
}

#[test]
fn an_impossible_number_of_descriptors_is_a_failure() {
    // Far fewer than eight stages hold at once, and more than a start takes anywhere.
    let script = "function f; /bin/echo a -> x; cat <<< $x; end
        f | f | f | f | f | f | f | f | cat -> v";
    with_limit(22, script).stderr("`ulimit -n`").failure(1);
}

#[test]
fn a_deadline_holds_while_branches_wait() {
    let script = "try for 300 ms
        forall i in 1 .to. 100
            value=before
            sleep 1000 | cat -> value
        end
    catch
        # Time is up.
        /bin/echo $error_kind -> kind
        echo $kind
    end";
    with_limit(64, script).stdout("timeout\n").success();
}

#[test]
fn a_variable_of_a_command_that_never_started_is_empty() {
    let script = "forall i in 1 .to. 100
        try for 200 ms
            sleep 1000 -> v
        catch
            if \"$v\" .ne. \"\"
                failure
            end
        end
    end";
    with_limit(40, script).success();
}

#[test]
fn too_few_descriptors_are_an_error() {
    for limit in [10, 12] {
        with_limit(limit, "/bin/echo hello")
            .refused(&["oo many open files", "`ulimit -n`"])
            .one_line();
    }
}
