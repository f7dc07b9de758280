//! Functions of paths.

use bstr::ByteSlice;

use super::function::{Function, FunctionContext};
use crate::size;
use crate::values::{Suspend, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("basename", &[("basename(/var/log/mail.log.gz)", &["mail.log.gz"])], |context| {
        piece(context, basename)
    }),
    Function::new("dirname", &[("dirname(/var/log/mail.log.gz)", &["/var/log"])], |context| {
        piece(context, dirname)
    }),
    Function::new("suffix", &[("suffix(/var/log/mail.log.gz)", &[".gz"])], |context| {
        piece(context, |path| stem_and_suffix(path).1)
    }),
    Function::new("stem", &[("stem(/var/log/mail.log.gz)", &["mail.log"])], |context| {
        piece(context, |path| stem_and_suffix(path).0)
    }),
];

/// Returns a copy of a piece of the argument.
fn piece(context: &mut FunctionContext, piece: fn(&[u8]) -> &[u8]) -> Result<Value, Suspend> {
    Ok(Value::from(size::copy(piece(&context.text(0)?))?))
}

/// Removes slashes at the end of a path, except for the root.
fn trimmed(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(path.len().min(1), |at| at + 1);
    &path[..end]
}

fn basename(path: &[u8]) -> &[u8] {
    match trimmed(path) {
        b"/" => b"/",
        path => &path[path.rfind_byte(b'/').map_or(0, |slash| slash + 1)..],
    }
}

fn dirname(path: &[u8]) -> &[u8] {
    let path = trimmed(path);
    match path.rfind_byte(b'/') {
        None => b".",
        Some(slash) => match trimmed(&path[..slash]) {
            b"" => b"/",
            directory => directory,
        },
    }
}

/// Splits the file name of a path before its last point. Points at the beginning of the name, or at
/// its end, belong to the stem.
fn stem_and_suffix(path: &[u8]) -> (&[u8], &[u8]) {
    let name = basename(path);
    let begins = name.iter().take_while(|byte| **byte == b'.').count();
    match name[begins..].rfind_byte(b'.') {
        Some(point) if begins + point + 1 < name.len() => name.split_at(begins + point),
        _ => (name, b""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_pieces() {
        for (path, directory, name, stem, suffix) in [
            ("a/b.tar.gz", "a", "b.tar.gz", "b.tar", ".gz"),
            ("/a/b", "/a", "b", "b", ""),
            ("a", ".", "a", "a", ""),
            ("/a", "/", "a", "a", ""),
            ("a//b//", "a", "b", "b", ""),
            ("/", "/", "/", "/", ""),
            ("//", "/", "/", "/", ""),
            ("//a", "/", "a", "a", ""),
            ("", ".", "", "", ""),
            (".bashrc", ".", ".bashrc", ".bashrc", ""),
            (".a.b", ".", ".a.b", ".a", ".b"),
            ("a.", ".", "a.", "a.", ""),
            ("..", ".", "..", "..", ""),
            ("a.d/b", "a.d", "b", "b", ""),
        ] {
            let bytes = path.as_bytes();
            assert_eq!(dirname(bytes).as_bstr(), directory, "{path}");
            assert_eq!(basename(bytes).as_bstr(), name, "{path}");
            let (front, back) = stem_and_suffix(bytes);
            assert_eq!((front.as_bstr(), back.as_bstr()), (stem.into(), suffix.into()), "{path}");
        }
        assert_eq!(stem_and_suffix(b"d/\xff\n.\xfe"), (&b"\xff\n"[..], &b".\xfe"[..]));
    }
}
