//! Interrupting keys, and the reaction of commands at a terminal.

use crate::support::terminal::User;
use crate::terminal::exists;

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
        if !exists(program) {
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
