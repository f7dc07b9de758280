//! The prompt under unusual conditions and beside other prompts.

use std::fs;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};

use crate::support::FTSH;
use crate::support::home::{CTRL_C, CTRL_D, Home, edits, leaves, reads_line, sees_prompt};
use crate::support::terminal::User;

#[test]
fn a_prompt_answers_a_status_request() {
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
            // The text before the interruption is still there.
            edits(&mut user);
            user.types("''c\r");
            user.sees("abc\r\n");
            leaves(user);
        }
    }
}

#[test]
fn a_second_interrupt_brings_the_prompt_back_from_any_command() {
    let home = Home::new();
    let mut user = home.prompt(&[("FTSH_KILL_TIMEOUT", "1000")], 100, None);
    user.types(
        "sh -c 'trap \"echo cau\"\"ght\" INT; echo rea''dy; while :; do sleep 0.01; done'\r",
    );
    user.sees("ready\r\n");
    user.awaits("its terminal", |user| user.foreground().starts_with("sh\0"));
    user.types(CTRL_C);
    user.sees("caught\r\n");
    // The system may merge a signal with a pending one.
    for _ in 0..50 {
        user.types(CTRL_C);
        if user.has_shown("[SIGINT]", Duration::from_millis(200)) {
            break;
        }
    }
    user.sees("[SIGINT]");
    user.types("echo ali''ve\r");
    user.sees("alive\r\n");
    leaves(user);
}

#[test]
fn the_terminal_is_usable_after_every_statement() {
    let home = Home::new();
    let print = "stty -a | tr ' ;' '\\n\\n' | grep -x -e icanon -e echo -e opost | tr '\\n' +\n";
    fs::write(home.path().join("modes"), print).expect("a script");
    for term in ["xterm", "dumb"] {
        let mut user = home.prompt(&[("TERM", term)], 100, None);
        let ready = |user: &mut User| match term {
            "xterm" => reads_line(user),
            _ => drop(user.sees("> ")),
        };
        if term == "xterm" {
            reads_line(&mut user);
        }
        user.types("stty raw -echo\r");
        ready(&mut user);
        user.types("sh modes\r");
        user.sees("opost+icanon+echo+");
        ready(&mut user);
        // Modes that keep the terminal usable were intended.
        user.types("stty intr ^X; stty raw\r");
        ready(&mut user);
        user.types("stty intr ^Y\r");
        ready(&mut user);
        user.types("stty -a\r");
        user.sees("intr = ^Y");
        ready(&mut user);
        user.types("exit 3\r");
        assert_eq!(user.ends().code(), Some(3));
    }
}

#[test]
fn a_shell_whose_first_process_is_killed_leaves_a_usable_terminal() {
    let home = Home::new();
    let variables = [("HOME", home.path().to_str().expect("a name")), ("TERM", "xterm")];
    // A shell with job control takes the terminal but keeps its modes.
    let mut user = User::start(&[], &variables, 80, Some("exec sh -i"));
    user.types(&format!("{FTSH}\n"));
    user.sees("Ctrl-D leaves");
    edits(&mut user);
    user.types("echo sh''ell: $$\r");
    user.sees("shell: ");
    let shell: i32 = user.sees("\r\n").parse().expect("a process");
    sees_prompt(&mut user, "");
    edits(&mut user);
    let children = fs::read_to_string(format!("/proc/{shell}/task/{shell}/children"));
    let interpreter = format!("/proc/{}", children.expect("a shell").trim());
    assert!(Path::new(&interpreter).exists());
    kill(Pid::from_raw(shell), Signal::SIGKILL).expect("a shell");
    user.sees("Killed");
    // Until then, typed input may be consumed.
    user.awaits("end of the interpreter", |_| !Path::new(&interpreter).exists());
    assert!(user.echo_is_on());
    user.types("echo us''able\n");
    user.sees("usable\r\n");
}

#[test]
fn a_history_that_is_no_file_holds_nothing_up() {
    let home = Home::new();
    let state = home.path().join(".local/state/ftsh");
    fs::create_dir_all(&state).expect("a directory");
    mkfifo(&state.join("history"), Mode::S_IRWXU).expect("a fifo");
    let mut user = home.wide();
    assert!(user.shown.contains("the history is not saved: "), "{}", user.shown);
    user.types("echo ali''ve\r");
    user.sees("alive\r\n");
    leaves(user);
}

#[test]
fn fast_input_is_not_redrawn_repeatedly() {
    let home = Home::new();
    let mut typed = String::from("echo");
    for number in 0..2_500 {
        typed.push_str(&format!(" word{number}"));
    }
    for no_colour in ["", "1"] {
        let mut user = home.prompt(&[("NO_COLOR", no_colour)], 100, None);
        let before = user.shown.len();
        user.types_beyond_capacity(&typed);
        user.types_beyond_capacity("; echo do''ne\r");
        user.sees("done\r\n");
        let shown = user.shown.len() - before;
        // A screen for each row, not the whole line; colors depend on the speed of the machine.
        assert!(shown < 60 * typed.len(), "{shown} bytes for {}", typed.len());
        leaves(user);
    }
}

#[test]
fn a_reflowed_line_is_shown_once() {
    let home = Home::new();
    let no_xterm = [("XTERM_VERSION", ""), ("STY", "")];
    let mut user = home.prompt(&no_xterm, 100, None);
    user.types("echo aaaaaaaaa bbbbbbbbb ccccccccc ddddddddd eeeeeeeee ''fff");
    user.sees("fff");
    for (columns, rewound) in
        [(40, "\x1b[1A\r\x1b[J\r\x1b[K"), (100, "\x1b[J\r\n\r\x1b[K\x1b[A\r\x1b[K")]
    {
        user.resizes(columns);
        user.awaits("the line anew", |user| {
            // The editor notices the size only while it waits for a key.
            kill(Pid::from_raw(-user.pid()), Signal::SIGWINCH).expect("a shell");
            user.shown.contains(rewound)
        });
    }
    user.types(" ''ggg\r");
    user.sees(" fff ggg\r\n");
    leaves(user);
}
