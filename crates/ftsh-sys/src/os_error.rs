//! Texts of system errors.

use std::io;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_no_number() {
        let text = |number| plain(&io::Error::from_raw_os_error(number));
        assert_eq!(text(libc::ENOENT), "no such file or directory");
        assert_eq!(text(libc::EMFILE), "too many open files (see `ulimit -n`)");
        assert!(!text(9999).contains("os error"));
        assert_eq!(plain(&io::Error::other("As it is (os error 2)")), "As it is (os error 2)");
    }
}
