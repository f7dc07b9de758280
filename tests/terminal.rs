//! Commands at a terminal.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};

use crate::support::terminal::{LONG, User};
use crate::support::{FTSH, has};

#[test]
fn a_command_reads_from_the_terminal() {
    let script =
        "sh -c 'echo 1?; read line; echo got $line'\nsh -c 'echo 2?; read line; echo got $line'";
    let mut user = User::run(script, None);
    for answer in ["one", "two"] {
        user.sees("?");
        user.types(&format!("{answer}\n"));
        user.sees(&format!("got {answer}"));
    }
    assert_eq!(user.ends().code(), Some(0));
}

/// Wrapper that ignores the signals of job control, as tmux leaves them.
const LIKE_TMUX: &str = "trap '' TSTP TTIN TTOU; exec \"$@\"";

#[test]
fn a_command_below_tmux_reads_from_the_terminal() {
    for script in ["head -n 1", "echo a\nhead -n 1", "head -n 1 < /dev/tty | cat"] {
        for _ in 0..4 {
            let mut user = User::run(script, Some(LIKE_TMUX));
            user.types("secret\n");
            // The echo of the terminal, and the output of the command.
            user.sees("secret\r\n");
            user.sees("secret\r\n");
            assert_eq!(user.ends().code(), Some(0));
        }
    }
}

#[test]
fn a_command_without_input_can_read_the_terminal() {
    let ask = "sh -c 'echo password?; read line < /dev/tty; echo got $line'";
    for script in [ask, &format!("forall x in 1\n{ask}\nend"), &format!("echo a | {ask}")] {
        let mut user = User::run(script, None);
        user.sees("password?");
        user.types("secret\n");
        user.sees("got secret");
        assert_eq!(user.ends().code(), Some(0));
    }
}

#[test]
fn a_command_can_prompt_while_another_has_the_terminal() {
    // The other commands take long enough for the first one to stop before the last one starts.
    for others in ["", &" | cat".repeat(30)] {
        let reader = "sh -c 'read line < /dev/tty; echo got $line'";
        let script = format!("try for 1 hour\nsh -c 'sleep 1000 & wait' | {reader}{others}\nend");
        let mut user = User::run(&script, None);
        user.types("text\n");
        user.sees("got text");
        // The shell itself has the terminal again, or the waiting command.
        user.awaits("end of the reader", |user| user.foreground().contains("sleep 1000"));
        assert_eq!(user.interrupts().signal(), Some(libc::SIGINT));
    }
}

/// Script of `sh` that reads an answer from the terminal: `sh ask NAME [THEN]`.
struct Question {
    place: tempfile::TempDir,
}

impl Question {
    fn new(read: &str) -> Self {
        let place = tempfile::tempdir().expect("a directory");
        let text = format!(
            "exec 3>&1 < /dev/tty > /dev/tty\necho $1 asks\n{read}\necho $1 got \"$line\".\neval \"$2\"\n"
        );
        std::fs::write(place.path().join("ask"), text).expect("a file");
        Self { place }
    }

    /// Creates a script that reads its answer byte by byte.
    fn plain() -> Self {
        Self::new("read line")
    }

    fn command(&self) -> String {
        format!("sh {}", self.path("ask"))
    }

    fn path(&self, name: &str) -> String {
        self.place.path().join(name).display().to_string()
    }
}

/// Waits until one command reads from the terminal and `others` wait for the terminal, then
/// answers. Returns the name of the command that got the answer.
fn answers(user: &mut User, question: &Question, others: usize, answer: &str) -> String {
    user.awaits("commands that wait", |user| user.stopped(&question.command()) == others);
    user.awaits("a command that reads", |user| user.foreground().contains("/ask\0"));
    user.types(&format!("{answer}\n"));
    let before = user.sees(&format!(" got {answer}.\r\n"));
    before.lines().last().unwrap_or_default().to_owned()
}

#[test]
fn concurrent_prompts_get_whole_answers_in_turn() {
    let question = Question::plain();
    let (ask, shell) = (question.command(), FTSH);
    for script in [
        format!("forall x in 1 2\n{ask} $x\nend"),
        format!("forall x in 1 2 output grouped\n{ask} $x\nend"),
        format!("forall x in 1 2 output tagged\n{ask} $x\nend"),
        format!("{ask} 1 | {ask} 2"),
        format!("{ask} 1 | cat | {ask} 2"),
        format!("forall x in 1 2\n{shell} -c \"{ask} $x\"\nend"),
        format!("{shell} -c \"{ask} 1\" | {ask} 2"),
        format!("{shell} -c \"forall x in 1 2; {ask} \\$x; end\""),
    ] {
        let mut user = User::run(&script, None);
        let mut asked = [1, 0].map(|others| answers(&mut user, &question, others, "an answer"));
        asked.sort();
        assert_eq!(asked, ["1", "2"], "{script}");
        assert_eq!(user.ends().code(), Some(0), "{script}");
    }
}

#[test]
fn concurrent_reads_get_whole_lines() {
    let question = Question::plain();
    let go = question.path("go");
    mkfifo(Path::new(&go), Mode::S_IRWXU).expect("a fifo");
    let script = format!(
        "forall x in 1 2 3
        if $x .eq. 3
            read go < {go}
            {} 3
        else
            read line < /dev/tty
            echo \"$x got $line.\"
        end
        end",
        question.command()
    );
    let mut user = User::run(&script, None);
    user.awaits("two reads", |user| user.reading() == 2);
    std::fs::write(go, "\n").expect("a fifo");
    user.awaits("one that waits", |user| user.stopped(&question.command()) == 1);
    for answer in ["an answer", "another answer", "a last answer"] {
        user.types(&format!("{answer}\n"));
        user.sees(&format!(" got {answer}."));
    }
    assert_eq!(user.ends().code(), Some(0));
}

#[test]
fn a_password_prompt_works_beside_another_prompt() {
    let question = Question::new("stty -echo; sleep 0.7; read line; stty echo");
    let script = format!("forall x in 1 2 3\n{} $x\nend", question.command());
    let mut user = User::run(&script, None);
    for others in [2, 1, 0] {
        user.awaits("silence", |user| !user.echo_is_on());
        answers(&mut user, &question, others, "a secret");
    }
    // As the commands print it, since the terminal does not echo it.
    assert_eq!(user.shown.matches("a secret").count(), 3, "{:?}", user.shown);
    assert_eq!(user.ends().code(), Some(0));
}

#[test]
fn the_first_answered_alternative_wins() {
    let question = Question::plain();
    let script = format!(
        "forany x in 1 2 in order hedge after 1 ms\n{} $x\nend\necho winner $x",
        question.command()
    );
    let mut user = User::run(&script, None);
    let name = answers(&mut user, &question, 1, "an answer");
    user.sees(&format!("winner {name}\r\n"));
    assert_eq!(user.ends().code(), Some(0));
}

#[test]
fn commands_get_the_terminal_in_order_of_their_requests() {
    let question = Question::plain();
    let go = |x: usize| question.path(&format!("go{x}"));
    for x in [1, 2, 3] {
        mkfifo(Path::new(&go(x)), Mode::S_IRWXU).expect("a fifo");
    }
    let script = format!(
        "forall x in 1 2 3\nsh -c 'read x < {}$1; exec {} $1' sh $x\nend",
        question.path("go"),
        question.command()
    );
    let mut user = User::run(&script, None);
    for (others, x) in [(0, 3), (1, 1), (2, 2)] {
        user.awaits("rest of the shell", User::interpreter_is_asleep);
        let before = user.sleeps_of_interpreter();
        std::fs::write(go(x), "\n").expect("a fifo");
        user.sees(&format!("{x} asks"));
        user.awaits("a command that asks", |user| {
            user.stopped(&question.command()) == others && user.foreground().contains("/ask\0")
        });
        // The next request would be as early if the shell had not noticed this one.
        user.awaits("attention of the shell", |user| {
            user.sleeps_of_interpreter() > before && user.interpreter_is_asleep()
        });
    }
    for (others, x) in [(2, "3"), (1, "1"), (0, "2")] {
        assert_eq!(answers(&mut user, &question, others, "an answer"), x);
    }
    assert_eq!(user.ends().code(), Some(0));
}

#[test]
fn a_command_that_no_longer_reads_releases_the_terminal() {
    let question = Question::plain();
    let (ask, shell) = (question.command(), FTSH);
    let goes_on = "exec sleep 1000";
    for script in [
        format!("forall x in 1 2\n{ask} $x '{goes_on}'\nend"),
        format!("forall x in 1 2\n{shell} -c \"{ask} $x '{goes_on}'\"\nend"),
        // Another process stops this command during a password prompt.
        format!("forall x in 1 2\n{ask} $x 'stty -echo; kill -STOP $$'\nend"),
    ] {
        let mut user = User::run(&script, None);
        user.awaits("commands that wait", |user| user.stopped(&question.command()) == 1);
        user.types("an answer\n");
        user.sees(" got an answer.");
        user.awaits("the other's turn", |user| {
            user.foreground().contains("/ask\0") && user.echo_is_on()
        });
        user.types("another answer\n");
        user.sees(" got another answer.");
        kill(Pid::from_raw(user.pid()), Signal::SIGTERM).expect("a shell");
        assert_eq!(user.ends().signal(), Some(libc::SIGTERM), "{script}");
    }
}

#[test]
fn an_ended_command_leaves_the_queue() {
    let question = Question::plain();
    let ask = question.command();
    // The second command waits when its limit passes.
    let script = format!(
        "forall x in 1 2 3\nif $x .eq. 2\ntry for 1 s; {ask} 2; catch; {ask} 4; end\nelse\n{ask} $x\nend\nend"
    );
    let mut user = User::run(&script, None);
    user.sees("4 asks");
    let mut asked = [2, 1, 0].map(|others| answers(&mut user, &question, others, "an answer"));
    asked.sort();
    assert_eq!(asked, ["1", "3", "4"]);
    assert_eq!(user.ends().code(), Some(0));
}

#[test]
fn an_interrupt_ends_the_command_and_the_script() {
    let wait = "sh -c 'echo ready; exec sleep 1000'";
    let all = format!("forall x in 1 2 3\n{wait}\nend");
    let delay = "try for 1 hour every 1 hour; echo ready; failure; end";
    for line in [wait, &all, delay, "echo ready; sleep 1000"] {
        let mut user = User::run(&format!("try for 1 hour\n{line}\nend\necho wrong"), None);
        user.sees("ready");
        assert_eq!(user.interrupts().signal(), Some(libc::SIGINT), "{line}");
    }
}

#[test]
fn an_interrupt_that_makes_a_command_fail_ends_the_script() {
    // As rsync does.
    let answer = "sh -c 'trap \"exit 20\" INT; echo ready; while :; do sleep 0.01; done'";
    for script in
        [answer.into(), format!("try for 1 hour backoff none; {answer}; catch; echo wrong; end")]
    {
        let mut user = User::run(&format!("{script}\necho wrong"), None);
        user.sees("ready");
        user.types("\x03");
        let (status, rest) = user.ends_after();
        assert_eq!(status.signal(), Some(libc::SIGINT), "{rest}");
        assert!(!rest.contains("wrong"), "{rest}");
    }
}

#[test]
fn an_interrupt_handled_with_success_does_not_end_the_script() {
    // As ping does, at once or later.
    for end in ["exit 0", "done=1"] {
        let script = format!(
            "sh -c 'trap \"echo caught; {end}\" INT; echo ready; until test $done; do sleep 0.01; done; exit 0'\necho next"
        );
        let mut user = User::run(&script, None);
        user.sees("ready");
        user.awaits("its terminal", |user| user.foreground().starts_with("sh\0"));
        user.types("\x03");
        user.sees("caught");
        user.sees("next");
        assert_eq!(user.ends().code(), Some(0));
    }
}

/// Command that continues after keys: forever, or until two keys and some time later.
fn stubborn(trap: &str, modes: &str, end: &str) -> String {
    format!(
        "sh -c 'n=0; trap \"{trap}\" INT QUIT; stty {modes}; echo ready
        while :; do sleep 0.01; if test $n = 2; then {end}; fi; done'"
    )
}

#[test]
fn a_second_key_ends_a_command_that_survived_the_first() {
    let (c, q) = ("\x03", "\x1c");
    for (trap, keys) in
        [("", [c, c]), ("", [q, q]), ("echo caught", [c, c]), ("echo caught", [c, q])]
    {
        for around in [("", ""), ("try for 1 hour\n", "\ncatch\necho wrong\nend")] {
            let script = format!("{}{}{}", around.0, stubborn(trap, "icanon", ":"), around.1);
            let options = ["-t", "1000", "-c", &format!("{script}\necho wrong")];
            let mut user = User::start(&options, &[("TERM", "xterm")], 80, None);
            user.sees("ready");
            user.awaits("its terminal", |user| user.foreground().starts_with("sh\0"));
            user.types(keys[0]);
            user.sees(if trap.is_empty() { "^" } else { "caught" });
            // For the kernel, a key before the first is handled is the same key.
            while !user.has_ended(Duration::from_millis(100)) {
                user.types(keys[1]);
            }
            let (status, rest) = user.ends_after();
            let ends = [libc::SIGINT, libc::SIGQUIT].map(Some);
            assert!(ends.contains(&status.signal()) && !rest.contains("wrong"), "{status} {rest}");
        }
    }
}

#[test]
fn a_program_that_reads_single_keys_gets_all_keys() {
    let script =
        stubborn("echo caught; n=\\$((n + 1))", "-icanon", "sleep 0.5; stty icanon; exit 0");
    let mut user = User::run(&format!("{script}\necho next"), None);
    user.sees("ready");
    user.awaits("its terminal", |user| user.foreground().starts_with("sh\0"));
    for _ in 0..2 {
        user.types("\x03");
        user.sees("caught");
    }
    user.sees("next");
    assert_eq!(user.ends().code(), Some(0));
}

#[test]
fn no_interrupt_is_lost_between_commands() {
    // The key ends the script at any time.
    for round in 0..20 {
        let mut user = User::run("echo ready; while true; /bin/true; end", None);
        user.sees("ready");
        // At another moment each time.
        std::thread::sleep(std::time::Duration::from_micros(137 * round));
        user.types("\x03");
        assert_eq!(user.ends().signal(), Some(libc::SIGINT), "round {round}");
    }
}

#[test]
fn the_terminal_is_restored_after_a_killed_program() {
    let script =
        "try 1 time for 200 ms; sh -c 'stty raw -echo; echo raw; sleep 1000'; catch; end\nread x";
    let mut user = User::run(script, None);
    user.sees("raw");
    user.awaits("restored modes", User::echo_is_on);
    user.types("\n");
    assert_eq!(user.ends().code(), Some(0));
}

#[test]
fn intended_changes_of_the_modes_stay() {
    let mut user = User::run("stty -echo\nsh -c 'echo next; read line'", None);
    user.sees("next");
    assert!(!user.echo_is_on());
    user.types("\n");
    assert_eq!(user.ends().code(), Some(0));
}

#[test]
fn a_script_stops_and_continues_with_its_commands() {
    let place = tempfile::tempdir().expect("a directory");
    for round in 0..3 {
        let go = place.path().join(round.to_string());
        mkfifo(&go, Mode::S_IRWXU).expect("a fifo");
        // Starts nothing meanwhile: a shell cannot stop between the start of its child and `exec`.
        let wait = format!("read go < {}", go.display());
        let line = format!("sh -c 'echo ready; {wait}; echo line: $(head -n 1 < /dev/tty)'");
        let script = match round {
            0 => line,
            1 => format!("forall x in 1\n{line}\nend"),
            _ => {
                let inside = place.path().join("inside");
                std::fs::write(&inside, line).expect("a file");
                format!("{} {}", FTSH, inside.display())
            }
        };
        let wrapper = "set -m; \"$@\"; echo stopped $?; fg; echo ended $?";
        let mut user = User::run(&script, Some(wrapper));
        user.sees("ready");
        user.types("\x1a");
        user.sees("stopped 1");
        std::fs::write(go, "go\n").expect("a fifo");
        user.types("typed\n");
        user.sees("line: typed");
        user.sees("ended 0");
        user.ends();
    }
}

#[test]
fn a_secret_is_not_shown() {
    let standin = "sh -c 'stty -echo; echo secret?; read line; stty echo; echo got $line'";
    let bash = "bash -c 'read -s -p secret? line; echo got $line'";
    for script in [standin, bash] {
        let mut user = User::run(script, None);
        user.sees("secret?");
        user.awaits("silence", |user| !user.echo_is_on());
        user.types("one two\n");
        user.sees("got one two");
        assert_eq!(user.shown.matches("one two").count(), 1, "{:?}", user.shown);
        assert!(user.echo_is_on());
        assert_eq!(user.ends().code(), Some(0));
    }
}

#[test]
fn a_pager_reads_keys_while_its_input_is_a_pipe() {
    let standin = "sh -c 'head -n 3; modes=$(stty -g < /dev/tty)
        stty -icanon -echo < /dev/tty; echo :; dd bs=1 count=1 < /dev/tty 2> /dev/null; stty $modes < /dev/tty'";
    for pager in [standin, "less"] {
        if pager != standin && !has(pager) {
            continue;
        }
        let mut user = User::run(&format!("seq 1000 | {pager}\necho next"), None);
        user.sees(":");
        user.awaits("raw keys", |user| !user.echo_is_on());
        user.types("q");
        user.sees("next");
        assert!(user.echo_is_on());
        assert_eq!(user.ends().code(), Some(0));
    }
}

#[test]
fn an_editor_edits() {
    let place = tempfile::tempdir().expect("a directory");
    for editor in ["vim", "vi"].into_iter().filter(|editor| has(editor)) {
        let file = place.path().join(editor);
        let mut user = User::run(&format!("{editor} -n {}\necho edited", file.display()), None);
        user.awaits("raw keys", |user| !user.echo_is_on());
        user.types("ihello\x1b:wq\r");
        user.sees("edited");
        assert!(user.echo_is_on());
        assert_eq!(user.ends().code(), Some(0));
        assert_eq!(std::fs::read_to_string(file).expect("a file"), "hello\n");
    }
}

#[test]
fn ssh_asks_for_a_passphrase() {
    let place = tempfile::tempdir().expect("a directory");
    let key = place.path().join("key");
    if !has("ssh-keygen") {
        return;
    }
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "open sesame", "-f"])
        .arg(&key)
        .status();
    assert!(made.is_ok_and(|status| status.success()));
    let ask = format!("ssh-keygen -y -f {} < /dev/null -> public; echo $public", key.display());
    let all = format!("try for 1 minute\n{ask}\nend");
    for script in [ask, all] {
        let mut user = User::run(&script, None);
        user.sees("passphrase");
        user.awaits("silence", |user| !user.echo_is_on());
        user.types("open sesame\n");
        user.sees("ssh-ed25519 ");
        assert!(user.echo_is_on());
        assert_eq!(user.ends().code(), Some(0));
    }
}

#[test]
fn a_shell_in_the_background_leaves_the_terminal_alone() {
    let wrapper = "set -m; \"$@\" & wait $!; echo ended $?; read line; echo mine: $line";
    let mut user = User::run("sh -c 'exit 3'", Some(wrapper));
    user.sees("ended 3");
    user.types("typed\n");
    user.sees("mine: typed");
    user.ends();
    // A shell whose command wants to read stops until it is in the foreground.
    let wrapper = "set -m; \"$@\" & while ! jobs | grep -q Stopped; do sleep 0.01; done
        echo stopped; fg > /dev/null; echo ended $?";
    let mut user = User::run("sh -c 'read line; echo got $line'", Some(wrapper));
    user.sees("stopped");
    user.types("typed\n");
    user.sees("got typed");
    user.sees("ended 0");
    user.ends();
}

#[test]
fn a_stopped_terminal_does_not_block_the_shell() {
    let place = tempfile::tempdir().expect("a directory");
    let path = |name: &str| place.path().join(name).display().to_string();
    let (go, done) = (path("go"), path("done"));
    let script = format!(
        "try for 1 hour every 10 ms; /usr/bin/test -e {go}; end
        try for 300 ms or 1 time; /bin/sleep 8321; catch; success; end
        /bin/touch {done}"
    );
    // Including the status line, and for every signal.
    let options = ["-l", "40", "-c", &script];
    let mut user = User::start(&options, &[("TERM", "xterm")], 80, None);
    user.sees("failed: `/usr/bin/test");
    user.stops();
    std::fs::write(&go, "").expect("a file");
    user.awaits("end of the attempt", |_| Path::new(&done).exists());
    assert!(!user.shown.contains("sleep 8321"), "it was stopped: {:?}", user.shown);
    user.types("\x11");
    user.sees("try gave up after 1 attempt in ");
    let (status, seen) = user.ends_after();
    assert_eq!(status.code(), Some(0), "{seen:?}");
    assert!(seen.contains("exit 0 after "), "{seen:?}");
}

#[test]
fn an_unread_terminal_does_not_block_the_shell() {
    let place = tempfile::tempdir().expect("a directory");
    let done = place.path().join("done");
    let script = format!(
        "try for 300 ms or 1 time; /usr/bin/yes; catch; success; end
        try for 300 ms or 1 time; /bin/sleep {}; catch; success; end
        /bin/touch {}",
        "8321 ".repeat(100),
        done.display()
    );
    let mut user = User::start(&["-l", "40", "-c", &script], &[("TERM", "xterm")], 80, None);
    let start = Instant::now();
    while !done.exists() {
        assert!(start.elapsed() < LONG, "it waits for its reader");
        std::thread::sleep(Duration::from_millis(1));
    }
    user.sees("try gave up after 1 attempt in ");
    let (status, seen) = user.ends_after();
    assert_eq!(status.code(), Some(0), "{seen:?}");
}
