//! Abbreviations at the prompt.

use std::fs;

use crate::support::home::{Home, edits, leaves, next_line, sees_prompt};

const CTRL_Z: &str = "\x1a";
const UP: &str = "\x1b[A";

fn home() -> Home {
    let home = Home::new();
    fs::create_dir_all(home.path().join(".config/ftsh")).expect("a directory");
    let file = home.path().join(".config/ftsh/abbreviations");
    fs::write(file, "e echo ex''panded\nt3 try 3 times\n").expect("a file");
    home
}

#[test]
fn abbreviations_are_written_out() {
    let home = home();
    let mut user = home.wide();
    // A blank, also after other text and before more text.
    user.types("success; e one\r");
    user.sees("expanded one\r\n");
    edits(&mut user);
    user.types("x\x01e \r");
    user.sees("expanded x\r\n");
    edits(&mut user);
    // Enter; the long text is shown, and kept in the history.
    user.types("e\r");
    user.sees("\r\necho ex''panded\r\n");
    user.sees("expanded\r\n");
    edits(&mut user);
    user.types(&format!("{UP} two\r"));
    user.sees("expanded two\r\n");
    edits(&mut user);
    // The lines of a structure.
    user.types("t3\r");
    user.sees("try 3 times\r\n");
    user.sees("try…> ");
    user.types("e $attempt\rend\r");
    user.sees("expanded 1\r\n");
    sees_prompt(&mut user, "~");
    leaves(user);
    let history = fs::read_to_string(home.path().join(".local/state/ftsh/history"));
    let history = history.expect("a history");
    assert!(history.lines().any(|line| line == "echo ex''panded"), "{history}");
    assert!(history.lines().all(|line| line != "e"), "{history}");
}

#[test]
fn abbreviations_can_be_typed_literally() {
    let home = home();
    fs::create_dir(home.path().join("bin")).expect("a directory");
    let mut user = home.wide();
    user.types("function e; echo f''unction $1; end\r");
    next_line(&mut user);
    user.types("'e' 1\r");
    user.sees("function 1\r\n");
    edits(&mut user);
    user.types("echo a e b''c\r");
    user.sees("a e bc\r\n");
    edits(&mut user);
    // An expansion can be undone.
    user.types(&format!("e {CTRL_Z} 2\r"));
    user.sees("function 2\r\n");
    sees_prompt(&mut user, "~");
    leaves(user);
}

#[test]
fn errors_in_abbreviations_are_reported() {
    let home = home();
    let file = home.path().join(".config/ftsh/abbreviations");
    fs::write(&file, "alone\n").expect("a file");
    let mut user = home.wide();
    assert!(
        user.shown.contains("abbreviations:1: `alone` has no text after the name\r\n"),
        "{}",
        user.shown
    );
    edits(&mut user);
    leaves(user);
    fs::remove_file(&file).expect("a file");
    nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).expect("a FIFO");
    let user = home.wide();
    assert!(user.shown.contains("abbreviations: not a file"), "{}", user.shown);
    leaves(user);
}
