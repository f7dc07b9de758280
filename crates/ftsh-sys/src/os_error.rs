//! Texts of system errors.

use std::io;

use nix::errno::Errno;

/// Returns the text of an error without the number that std adds.
pub fn plain(error: &io::Error) -> String {
    let Some(number) = error.raw_os_error() else { return error.to_string() };
    if number == libc::EMFILE {
        return "too many open files (see `ulimit -n`)".into();
    }
    let text = error.to_string();
    let words = text.strip_suffix(&format!(" (os error {number})")).unwrap_or(&text);
    words.to_lowercase()
}

/// Returns the name of a system error, such as `ENOENT`, if the system gave one.
pub fn name(error: &io::Error) -> Option<String> {
    match Errno::from_raw(error.raw_os_error()?) {
        Errno::UnknownErrno => None,
        errno => Some(format!("{errno:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_symbols() {
        let named = |number| name(&io::Error::from_raw_os_error(number));
        assert_eq!(named(libc::ENOSPC).as_deref(), Some("ENOSPC"));
        assert_eq!(named(99_999), None);
        assert_eq!(name(&io::Error::other("no number")), None);
    }

    #[test]
    fn texts_have_no_number() {
        let text = |number| plain(&io::Error::from_raw_os_error(number));
        assert_eq!(text(libc::ENOENT), "no such file or directory");
        assert_eq!(text(libc::EMFILE), "too many open files (see `ulimit -n`)");
        assert!(!text(9999).contains("os error"));
        assert_eq!(plain(&io::Error::other("As it is (os error 2)")), "As it is (os error 2)");
    }
}
