//! Few descriptors: what needs some waits its turn.

use std::time::Duration;

use crate::support::Ftsh;

/// Runs a script with a limit on open files.
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
        // A branch holds variables while it waits for more.
        "/bin/echo $i -> v\n cat <<< $v -> w\n /bin/echo x ->> w\n if $w .ne. \"${i}\nx\"\n failure\n end",
    ];
    for body in bodies {
        let script = format!("forall i in 1 .to. 100\n {body}\nend\n");
        with_limit(64, &script).success();
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
fn a_variable_of_a_command_that_never_began_is_empty() {
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
fn too_few_descriptors_are_an_error_that_says_so() {
    for limit in [10, 12] {
        with_limit(limit, "/bin/echo hello")
            .refused(&["oo many open files", "`ulimit -n`"])
            .one_line();
    }
}
