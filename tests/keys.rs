//! Interrupting keys, and the reaction of commands at a terminal.

use crate::support::has;
use crate::support::terminal::User;

#[test]
fn an_interrupt_is_handled_though_the_default_is_restored_at_exit() {
    // As python and perl do before they exit, here after an answer of the test.
    let sh = "sh -c 'trap \"echo caught; read answer; trap - INT; exit 0\" INT
        echo ready; while :; do sleep 0.01; done'";
    let python = "python3 -c 'import time\ntry:\n    print(\"ready\", flush=True); time.sleep(1000)\n\
        except KeyboardInterrupt:\n    print(\"caught\", flush=True); input()'";
    let perl = "perl -e '$| = 1; $SIG{INT} = sub { print \"caught\\n\"; <STDIN>; exit 0 };
        print \"ready\\n\"; sleep 1000 while 1'";
    for (program, command) in [("sh", sh), ("python3", python), ("perl", perl)] {
        if !has(program) {
            continue;
        }
        let mut user = User::run(&format!("{command}\necho next"), None);
        user.sees("ready");
        user.awaits("its terminal", |user| !user.foreground().contains("echo next"));
        let sleeps = user.sleeps_of_interpreter();
        user.types("\x03");
        user.sees("caught");
        // The shell looks at the program after the key, and before the program's end.
        user.awaits("a look", |user| user.sleeps_of_interpreter() > sleeps);
        user.types("\n");
        user.sees("next");
        assert_eq!(user.ends().code(), Some(0), "{program}");
    }
}

#[test]
fn a_stop_key_between_a_request_for_the_terminal_and_its_grant_is_kept() {
    if !has("python3") {
        return;
    }
    // The pending signal is that of the key; the stop is a request for the terminal.
    let script = "python3 -c '
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTSTP])
for number in signal.SIGTSTP, signal.SIGTTIN:
    os.kill(os.getpid(), number)
print(\"continued\")
'";
    let wrapper = "set -m; \"$@\"; echo stopped $?; fg; echo ended $?";
    let mut user = User::run(script, Some(wrapper));
    let before = user.sees("stopped 1");
    assert!(!before.contains("continued"), "{before}");
    user.sees("continued");
    user.sees("ended 0");
    user.ends();
}
