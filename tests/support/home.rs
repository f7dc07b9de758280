//! User at the prompt of the shell.

use std::path::Path;

use tempfile::TempDir;

use super::terminal::User;

pub(crate) const CTRL_C: &str = "\x03";
pub(crate) const CTRL_D: &str = "\x04";

/// Home directory of a user.
pub(crate) struct Home(TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Starts a prompt in the home directory, by default at a terminal with all capabilities.
    pub(crate) fn prompt(
        &self,
        variables: &[(&str, &str)],
        columns: u16,
        wrapper: Option<&str>,
    ) -> User {
        let home = self.path().to_str().expect("a name");
        let mut all = vec![
            ("HOME", home),
            ("XDG_STATE_HOME", ""),
            ("XDG_CONFIG_HOME", ""),
            ("TERM", "xterm"),
            ("LC_ALL", "C.UTF-8"),
            ("FTSH_KILL_TIMEOUT", "30"),
        ];
        all.extend(variables);
        let mut user = User::start(&[], &all, columns, wrapper);
        user.sees("helps, Ctrl-D leaves\r\n");
        user.types("cd\r"); // home
        if all.contains(&("TERM", "dumb")) {
            user.sees("~> ");
        } else {
            next_line(&mut user);
        }
        user
    }

    pub(crate) fn wide(&self) -> User {
        self.prompt(&[], 100, None)
    }
}

/// Waits for the prompt, which shows `place`.
pub(crate) fn sees_prompt(user: &mut User, place: &str) -> String {
    user.sees(&format!("{place}\x1b[0m> "))
}

/// Waits until the shell has switched off the line editing of the terminal.
pub(crate) fn edits(user: &mut User) {
    user.awaits("line editor", |user| !user.echo_is_on());
}

/// Waits until the editor has begun to read a line, which switches on bracketed paste.
/// A prompt alone proves less: it may be drawn again.
pub(crate) fn reads_line(user: &mut User) {
    user.sees("\x1b[?2004h");
}

/// Waits until a line is done, and the editor is ready for the next line.
pub(crate) fn next_line(user: &mut User) {
    user.sees("\x1b[?2004l");
    edits(user);
}

/// Ends the shell by Ctrl-D.
pub(crate) fn leaves(mut user: User) {
    edits(&mut user);
    user.types(CTRL_D);
    assert_eq!(user.ends().code(), Some(0));
}
