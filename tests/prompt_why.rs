//! The explanation of a failure at the prompt, and the key for a retry.

use crate::support::home::{CTRL_C, Home, edits, leaves, next_line, sees_prompt};
use crate::support::terminal::User;

const ALT_R: &str = "\x1br";

/// Returns the output of `why` up to the next prompt, with `T` for the times of attempts in
/// milliseconds.
fn why(user: &mut User) -> String {
    edits(user);
    user.types("why\r");
    next_line(user);
    let output = sees_prompt(user, "~");
    output.split_inclusive('\n').map(without_begin).collect()
}

fn without_begin(line: &str) -> String {
    let parts = line.split_once(" after ").filter(|(head, _)| head.starts_with("  attempt "));
    let parts = parts.and_then(|(head, rest)| Some((head, rest.split_once(" ms: ")?.1)));
    parts.map_or_else(|| line.into(), |(head, what)| format!("{head} after T: {what}"))
}

#[test]
fn why_lists_the_attempts() {
    let home = Home::new();
    let secret = [("FTSH_REDACT_NAMES", "TOKEN"), ("TOKEN", "hunter2")];
    let mut user = home.prompt(&secret, 100, None);
    assert!(why(&mut user).contains("Nothing has failed yet."));
    user.types("try 30 times backoff fixed from 1 ms; sh -c \"exit $attempt # $TOKEN\"; end\r");
    user.sees("[exit 30]");
    assert!(!sees_prompt(&mut user, "~").contains("lists each attempt"), "its user knows");
    let output = why(&mut user);
    for line in [
        "exited with 30",
        "in the `try` at line 1: 30 attempts in ",
        "  attempt 1 after T: `sh -c 'exit 1 # ***'` exited with 1; then 1 ms of waiting",
        "  … 20 attempts left out …",
        "  attempt 30 after ",
        "`help exit` explains",
    ] {
        assert!(output.contains(line), "no {line:?} in {output}");
    }
    assert_eq!(output.matches("  attempt ").count(), 10, "{output}");
    assert!(!output.contains("hunter2"));
    // A success does not change the last failure.
    user.types("echo a''b\r");
    user.sees("ab\r\n");
    sees_prompt(&mut user, "~");
    assert!(why(&mut user).contains("  attempt 30 after "));
    leaves(user);
}

#[test]
fn why_knows_of_interrupts_limits_and_branches() {
    let home = Home::new();
    let mut user = home.wide();
    user.types("try for 1 hour every 30 minutes; sh -c 'exit 9'; end\r");
    user.sees("attempt 2 ");
    user.types(CTRL_C);
    user.sees("[SIGINT]");
    sees_prompt(&mut user, "~");
    let output = why(&mut user);
    assert!(output.contains("interrupted by SIGINT\r\n"), "{output}");
    assert!(
        output.contains("  attempt 1 after T: `sh -c 'exit 9'` exited with 9; then "),
        "{output}"
    );
    user.types("try for 100 ms; sh -c 'exec sleep 1000'; end\r");
    user.sees("[timeout]");
    sees_prompt(&mut user, "~");
    let output = why(&mut user);
    assert!(
        output.contains("  attempt 1 after T: `sh -c 'exec sleep 1000'` ran out of time after 1"),
        "{output}"
    );
    assert!(output.contains("`help timeout` explains"), "{output}");
    user.types(
        "forall x in a b c d e keep going; try 2 times backoff none; sh -c 'exit 3'; end; end\r",
    );
    user.sees("[exit 3]");
    sees_prompt(&mut user, "~");
    let output = why(&mut user);
    assert_eq!(output.matches(", the `try` at line 1:\r\n").count(), 3, "{output}");
    assert!(output.contains("  … more tries left out …"), "{output}");
    leaves(user);
}

#[test]
fn a_function_can_replace_why() {
    let home = Home::new();
    let mut user = home.prompt(&[], 40, None);
    user.types("sh -c 'exit 7' a-long-word another-long-word another-long-word\r");
    user.sees("[exit 7]");
    sees_prompt(&mut user, "~");
    let output = why(&mut user);
    assert!(output.lines().all(|line| line.chars().count() < 40), "{output}");
    user.types("why not\r");
    user.sees("why: not found");
    sees_prompt(&mut user, "~");
    user.types("function why; echo be''cause; end; why\r");
    user.sees("because\r\n");
    sees_prompt(&mut user, "~");
    assert!(why(&mut user).contains("because\r\n"));
    leaves(user);
}

#[test]
fn a_key_puts_the_failed_command_into_a_try() {
    let home = Home::new();
    let mut user = home.wide();
    user.types(ALT_R); // nothing has failed
    user.types("test -e nothing; echo wro''ng\r");
    assert!(!sees_prompt(&mut user, "~").contains("Alt-R"), "it said no");
    user.types(
        "sh -c 'test -e it || {{ : > it; exit 7; }}; echo do''ne'\r"
            .replace("{{", "{")
            .replace("}}", "}")
            .as_str(),
    );
    user.sees("  Alt-R puts the command into a `try`, which repeats it until it succeeds");
    sees_prompt(&mut user, "~");
    edits(&mut user);
    std::fs::remove_file(home.path().join("it")).expect("a file");
    user.types(ALT_R);
    user.sees("try");
    user.types("\r");
    user.sees("done\r\n");
    sees_prompt(&mut user, "~");
    // The key takes the present line, if there is one. The hint is not repeated.
    edits(&mut user);
    user.types("echo li''ne");
    user.types(ALT_R);
    user.types("\r");
    user.sees("line\r\n");
    user.types("sh -c 'exit 7'\r");
    assert!(!sees_prompt(&mut user, "~").contains("Alt-R"));
    user.types("try 2 times backoff none; sh -c 'exit 7'; end\r");
    user.sees("  `why` lists each attempt");
    leaves(user);
    let text = std::fs::read_to_string(home.path().join(".local/state/ftsh/history"));
    let text = text.expect("a history");
    assert!(text.contains("try for 5 minutes\\n  echo li''ne\\nend"), "{text}");
}
