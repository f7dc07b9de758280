//! The shell's prompt at a terminal.

use std::fs;
use std::os::unix::process::ExitStatusExt;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::home::{CTRL_C, CTRL_D, Home, edits, leaves, next_line, sees_prompt};
use crate::support::processes::with_argument;

const CTRL_Z: &str = "\x1a";
const UP: &str = "\x1b[A";
const RED: &str = "\x1b[31m";

#[test]
fn statements_share_a_session_that_survives_failures() {
    let home = Home::new();
    let mut user = home.wide();
    user.types("x=1\recho a$x''b\r");
    user.sees("a1b\r\n");
    user.types("x=2; sh -c 'exit 7'; x=3\r");
    user.sees("exited with 7");
    user.sees("[exit 7]");
    user.types("echo c$x''d $error_code; mkdir sub; cd sub\r");
    user.sees("c2d 7\r\n");
    sees_prompt(&mut user, "~/sub");
    user.types("for n in 1\r  sh -c 'exit 8'\rend\r");
    user.sees("line 2: `sh -c 'exit 8'` exited with 8\r\n");
    assert!(!sees_prompt(&mut user, "~/sub").contains("before that"));
    user.types("if \"tru\"; echo a; end\r");
    user.sees("`tru` is neither true nor false");
    user.types("echo `date`\r");
    user.sees("--> prompt:1:");
    user.types("function f\recho o''ld\rend\rf\r");
    user.sees("old\r\n");
    user.types("function f; echo n''ew; end; f\r");
    user.sees("new\r\n");
    user.types("echo -n par''tial\r");
    user.sees("partial\x1b[2m⏎");
    user.types("exit 3\r");
    assert_eq!(user.ends().code(), Some(3));
}

#[test]
fn the_prompt_shows_the_open_structure() {
    let home = Home::new();
    let mut user = home.wide();
    user.types("try for 1 minute\r");
    user.sees("try…> ");
    user.types("if true\r");
    user.sees("if…> ");
    user.types("echo 'in\r");
    user.sees("'…> ");
    user.types("side' |\r");
    user.sees("|…> ");
    user.types("cat <<E\r");
    user.sees("<<…> ");
    user.types("docu''ment\rE\r");
    user.sees("if…> ");
    user.types("end\r");
    user.sees("try…> ");
    edits(&mut user);
    user.types(CTRL_D);
    user.sees("this `try` has no `end`");
    user.types("try\r");
    user.sees("try…> ");
    edits(&mut user);
    user.types(CTRL_C);
    next_line(&mut user);
    // Pasted text runs after Enter.
    user.types("\x1b[200~for x in 1 2\n  echo n${x}n\nend\n\x1b[201~\r");
    user.sees("n1n\r\nn2n\r\n");
    leaves(user);
}

#[test]
fn an_interrupt_cancels_the_statement_and_comes_back() {
    let home = Home::new();
    let mut user = home.wide();
    let all = "forall x in 1 2; sh -c 'echo rea''dy; exec sleep 1000'; end\r";
    let one = "try for 1 hour; sh -c 'echo rea''dy; exec sleep 1000'; end\r";
    for line in [one, all, "try for 2 hours every 1 hour; echo rea''dy; failure; end\r"] {
        user.types(line);
        user.sees("ready\r\n");
        user.types(CTRL_C);
        user.sees("[SIGINT]");
        user.types("echo ali''ve\r");
        user.sees("alive\r\n");
    }
    edits(&mut user);
    user.types(&format!("echo wro''ng{CTRL_C}"));
    next_line(&mut user);
    user.types("echo ri''ght\r");
    assert!(!user.sees("right\r\n").contains("wrong"));
    // Programs type the next line at once.
    edits(&mut user);
    user.types(&format!("echo wro''ng{CTRL_C}echo la''ter\r"));
    assert!(!user.sees("later\r\n").contains("wrong"));
    leaves(user);
}

#[test]
fn background_processes_outlive_a_statement_but_not_a_signal() {
    let home = Home::new();
    let mark = format!("10{}.5", std::process::id());
    let mut user = home.wide();
    let daemon = |to: &str| format!("sh -c 'setsid sleep {mark} > /dev/null 2>&1 < {to} & :'\r");
    user.types(&daemon("/dev/null"));
    user.types("try; sh -c 'exit 7'; catch; echo sh''ell: $$; end\r");
    user.sees("shell: ");
    let shell: i32 = user.sees("\r\n").parse().expect("a process");
    user.awaits("daemon", |_| with_argument(&mark).len() == 1);
    sees_prompt(&mut user, "~");
    kill(Pid::from_raw(shell), Signal::SIGTERM).expect("a shell");
    assert_eq!(user.ends().signal(), Some(libc::SIGTERM));
    assert!(with_argument(&mark).is_empty());
}

#[test]
fn a_signal_ends_the_shell_while_the_terminal_is_stopped() {
    let home = Home::new();
    let mut user = home.wide();
    user.types("echo sh''ell: $$; try 5 times every 1 hour; test -e nothing; end\r");
    user.sees("shell: ");
    let shell: i32 = user.sees("\r\n").parse().expect("a process");
    user.sees("attempt 2 of 5 in ");
    user.stops();
    kill(Pid::from_raw(shell), Signal::SIGTERM).expect("a shell");
    assert_eq!(user.ends().signal(), Some(libc::SIGTERM));
}

#[test]
fn a_killed_prompt_leaves_nothing_but_a_usable_terminal() {
    let home = Home::new();
    let mark = format!("10{}.25", std::process::id());
    for place in ["prompt", "statement"] {
        let mut user = home.prompt(&[], 100, Some("\"$@\"; echo ended $?; read x"));
        user.types(&format!("sh -c 'setsid sleep {mark} > /dev/null 2>&1 & echo $PPID: pid'\r"));
        let seen = user.sees(": pid\r\n");
        let interpreter = seen.rsplit(['\n', '\r']).next().expect("a line");
        let interpreter = interpreter.parse().expect("a process");
        user.awaits("daemon", |_| with_argument(&mark).len() == 1);
        sees_prompt(&mut user, "~");
        user.awaits("raw modes", |user| !user.echo_is_on());
        if place == "statement" {
            user.types("sh -c 'stty raw -echo; echo rea''dy; exec sleep 1000'\r");
            user.sees("ready");
        }
        kill(Pid::from_raw(interpreter), Signal::SIGKILL).expect("a shell");
        user.sees("ended 137");
        assert!(user.echo_is_on());
        assert!(with_argument(&mark).is_empty());
        user.types("\n");
        user.ends();
    }
}

#[test]
fn commands_own_the_terminal_and_give_it_back() {
    let home = Home::new();
    let mut user = home.wide();
    // As a full-screen program does.
    let screen = "sh -c 'm=$(stty -g); stty raw -echo; printf ke\"\"y?; dd bs=1 count=1 of=key 2> /dev/null; stty $m'\r";
    user.types(screen);
    user.sees("key?");
    user.types(CTRL_C); // a key like any other there
    sees_prompt(&mut user, "~");
    user.types("sh -c 'od -An -tx1 key; echo fi''ne; read x; echo got $x'\r");
    user.sees(" 03\r\nfine\r\n");
    user.types("this\r");
    user.sees("got this\r\n");
    // A stop by the user stops the shell if a parent can continue it, and has no effect otherwise.
    user.types("sh -c 'echo rea''dy; read x; echo got $x'\r");
    user.sees("ready\r\n");
    user.awaits("a read", |user| user.reading() == 1);
    user.types(CTRL_Z);
    user.types("that\r");
    user.sees("got that\r\n");
    leaves(user);
    let mut user = home.prompt(&[], 100, Some("set -m; \"$@\"; echo stopped $?; fg; echo left $?"));
    user.types("sh -c 'echo rea''dy; read x; echo got $x'\r");
    user.sees("ready\r\n");
    user.awaits("a read", |user| user.reading() == 1);
    user.types(CTRL_Z);
    user.sees("stopped 1");
    user.types("that\r");
    user.sees("got that\r\n");
    sees_prompt(&mut user, "~");
    edits(&mut user);
    user.types(&format!("{CTRL_Z}echo sti''ll\r"));
    user.sees("still\r\n");
    edits(&mut user);
    user.types(CTRL_D);
    user.sees("left 0");
    user.ends();
}

#[test]
fn jobs_work_where_their_signals_were_ignored() {
    let home = Home::new();
    let like_tmux = r#"bash -c 'trap "" TSTP TTIN TTOU; exec "$@"' bash "$@""#;
    let wrapper = format!("set -m; {like_tmux}; echo stopped $?; fg; echo left $?");
    let mut user = home.prompt(&[], 100, Some(&wrapper));
    for _ in 0..4 {
        sees_prompt(&mut user, "~");
        user.types("cat; echo s''een\r");
        user.awaits("a reader", |user| user.foreground().starts_with("cat"));
        user.types("text\r");
        user.sees("text\r\ntext");
        user.types(CTRL_D);
        user.sees("seen\r\n");
    }
    sees_prompt(&mut user, "~");
    user.types("cat\r");
    user.awaits("a reader", |user| user.foreground().starts_with("cat"));
    user.types(CTRL_Z);
    user.sees("stopped 148");
    user.awaits("the reader again", |user| user.foreground().starts_with("cat"));
    user.types(CTRL_C);
    sees_prompt(&mut user, "~");
    user.types(CTRL_D);
    user.sees("left 0");
    user.ends();
}

#[test]
fn prompts_share_their_history() {
    let home = Home::new();
    let mut user = home.wide();
    user.types("echo fi''rst\r");
    user.sees("first\r\n");
    user.types("  echo se''cret\r");
    user.sees("secret\r\n");
    leaves(user);
    let (mut one, mut two) = (home.wide(), home.wide());
    for user in [&mut one, &mut two] {
        user.types(&format!("{UP}{UP}\r"));
        user.sees("first\r\n");
    }
    one.types("echo o''ne\r");
    one.sees("one\r\n");
    two.types("try\recho t''wo\rend\r");
    two.sees("two\r\n");
    leaves(one);
    leaves(two);
    let file = home.path().join(".local/state/ftsh/history");
    let text = fs::read_to_string(file).expect("a history");
    for line in ["echo fi''rst", "echo o''ne", "try\\necho t''wo\\nend"] {
        assert!(text.lines().any(|it| it == line), "{text}");
    }
    assert!(!text.contains("se''cret"));
    // Found by a part, and hinted at by its beginning.
    let mut user = home.wide();
    user.types("\x12o''n\r");
    user.sees("one\r\n");
    edits(&mut user);
    user.types("echo o");
    user.sees("\x1b[2m''ne\x1b[0m");
    user.types("\x1b[C\r");
    user.sees("one\r\n");
    leaves(user);
}

#[test]
fn tab_completes_and_colours_warn() {
    let home = Home::new();
    fs::write(home.path().join("odd $name"), "odd con\ntent\n").expect("a file");
    let mut user = home.wide();
    user.types("cat od\t\r");
    user.sees("odd con\r\ntent\r\n");
    edits(&mut user);
    user.types("try 5 ti\t");
    user.sees("times");
    user.types(CTRL_C);
    next_line(&mut user);
    user.types("nosuchthing");
    user.sees(&format!("{RED}nosuchthing"));
    user.types(CTRL_C);
    next_line(&mut user);
    user.types("try; ec");
    user.sees("\x1b[1;4mtry");
    user.types(CTRL_C);
    next_line(&mut user);
    leaves(user);
}

#[test]
fn no_colour_means_none() {
    let home = Home::new();
    let mut user = home.prompt(&[("NO_COLOR", "1")], 100, None);
    user.types("nosuchthing 'x'\recho 'do''ne'\r");
    let seen = user.sees("done\r\n");
    let colours = seen.split("\x1b[").skip(1).filter(|sequence| {
        sequence.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m')
    });
    assert_eq!(colours.count(), 0, "{seen:?}");
    user.types("help try\r");
    assert!(!user.sees("see `help backoff`").contains("\x1b[1m"));
    // The line is not a statement.
    user.types("help ==\r");
    user.sees("if the texts are equal");
    leaves(user);
}

#[test]
fn a_dumb_terminal_gets_plain_text() {
    let home = Home::new();
    let mut user = home.prompt(&[("TERM", "dumb")], 100, None);
    user.types("try\n");
    let mut seen = user.sees("try…> ");
    user.types("sh -c 'echo rea''dy; exec sleep 1000'\nend\n");
    seen += &user.sees("ready\r\n");
    user.types(CTRL_C);
    seen += &user.sees("[SIGINT] ~> ");
    user.types(&format!("echo wro''ng{CTRL_C}"));
    seen += &user.sees("> ");
    user.types("echo ri''ght\n");
    seen += &user.sees("right\r\n");
    user.types("help keys\n");
    seen += &user.sees("Ctrl-D leaves");
    seen += &user.sees("> ");
    assert!(!seen.contains('\x1b') && !seen.contains("wrong\r"), "{seen:?}");
    user.types(CTRL_D);
    assert_eq!(user.ends().code(), Some(0));
}

#[test]
fn a_narrow_terminal_is_enough() {
    let home = Home::new();
    let mut user = home.prompt(&[], 40, None);
    user.types("help\r");
    user.sees("Commands run one after the other");
    let seen = user.sees("variables\r\n");
    let plain = seen.replace("\x1b[1m", "").replace("\x1b[0m", "");
    assert!(plain.lines().all(|line| line.chars().count() <= 40), "{plain}");
    user.types("mkdir a-long-name-of-a-directory; cd a-long-name-of-a-directory\r");
    sees_prompt(&mut user, "…/a-long-name-of-a-directory");
    user.types("FTSH_PROMPT='\\W\\q'\r");
    user.sees("FTSH_PROMPT can't be used: unknown sequence `\\q`");
    user.types("FTSH_PROMPT='in \\W: '\r");
    user.sees("in a-long-name-of-a-directory: ");
    leaves(user);
}

#[test]
fn a_piped_script_is_no_talk() {
    crate::support::Ftsh::new().stdin("echo a\nhelp\n").stdout("a\n").failure(127);
}

#[test]
fn a_prompt_keeps_nothing_back() {
    let home = Home::new();
    let mut user = home.prompt(&[], 80, Some("FTSH_CRON=1 \"$@\"; \"$@\" --cron"));
    user.types("\x04");
    user.sees("`--cron` needs a script");
}
