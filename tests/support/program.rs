//! The program under test.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::ops::Deref;
use std::path::Path;
use std::sync::OnceLock;

/// Path of the program under test: the value of `FTSH_TEST_PROGRAM`, by default the program that
/// cargo built with the tests.
pub(crate) const FTSH: &Program = &Program;

/// The type of [`FTSH`], which is used like a `&str`.
pub(crate) struct Program;

impl Deref for Program {
    type Target = str;

    fn deref(&self) -> &str {
        static PATH: OnceLock<String> = OnceLock::new();
        PATH.get_or_init(|| match std::env::var("FTSH_TEST_PROGRAM") {
            // Tests run the program in other directories.
            Ok(path) => std::fs::canonicalize(&path)
                .ok()
                .and_then(|path| path.into_os_string().into_string().ok())
                .unwrap_or_else(|| panic!("FTSH_TEST_PROGRAM: there is no program `{path}`")),
            Err(_) => env!("CARGO_BIN_EXE_ftsh").to_owned(),
        })
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self)
    }
}

impl AsRef<OsStr> for Program {
    fn as_ref(&self) -> &OsStr {
        OsStr::new(&**self)
    }
}

impl AsRef<Path> for Program {
    fn as_ref(&self) -> &Path {
        Path::new(&**self)
    }
}

/// Variables on which the expected output depends, besides the program's own `FTSH_*`.
const EXPECTED: [&str; 6] = ["COLUMNS", "EDITOR", "LINES", "NO_COLOR", "TERM", "TZ"];

/// Returns the environment of the tests, as a CI or a user sets it, without variables on which
/// expected output depends.
pub(crate) fn caller_environment() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| {
        let name = name.to_string_lossy();
        let belongs_to = |prefix| name.starts_with(prefix);
        !["FTSH_", "SLURM_", "XDG_"].into_iter().any(belongs_to) && !EXPECTED.contains(&&*name)
    })
}
