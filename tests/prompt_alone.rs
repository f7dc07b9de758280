//! The prompt when its user isn't the only one, and things aren't as they should be.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::home::{CTRL_D, Home, edits, leaves};

#[test]
fn a_prompt_that_is_asked_tells_what_it_does() {
    let home = Home::new();
    for (term, no_colour) in [("xterm", ""), ("xterm", "1"), ("dumb", "")] {
        let mut user = home.prompt(&[("TERM", term), ("NO_COLOR", no_colour)], 100, None);
        let shell = Pid::from_raw(user.pid());
        for round in 1..=3 {
            kill(shell, Signal::SIGUSR1).expect("a shell");
            user.sees(&format!("ftsh: status of prompt [{shell}] after "));
            user.sees("  nothing runs\r\n");
            user.sees("> ");
            if term == "xterm" && round == 1 {
                edits(&mut user);
                user.types("echo a''b");
                user.sees("b");
            }
        }
        if term == "dumb" {
            user.types(CTRL_D);
            assert_eq!(user.ends().code(), Some(0));
        } else {
            // What was typed before is still there.
            edits(&mut user);
            user.types("''c\r");
            user.sees("abc\r\n");
            leaves(user);
        }
    }
}
