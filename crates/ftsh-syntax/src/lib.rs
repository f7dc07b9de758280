//! Parser and printer of scripts: source text to a syntax tree and back.
//!
//! ```
//! let script = ftsh_syntax::parse("fetch", "try 3 times; fetch; end").expect("a script");
//! assert_eq!(ftsh_syntax::print(&script), "try 3 times\n    fetch\nend\n");
//! let errors = ftsh_syntax::parse("fetch", "try 3 tmes; fetch; end").expect_err("an error");
//! let text = ftsh_syntax::diagnostic::render_all(&errors);
//! assert!(text.contains("did you mean `times`?"), "{text}");
//! ```

#![forbid(unsafe_code)]

pub mod ast;
pub mod backoff;
pub mod branch_files;
pub mod clauses;
pub mod diagnostic;
pub mod duration;
pub mod engine;
pub mod error;
pub mod hint;
pub mod nearest;
pub mod parse;
pub mod print;
pub mod signal;
pub mod size;
pub mod slug;
pub mod span;
mod spelling;
pub mod uses;
pub mod vocabulary;
pub mod walk;

pub use ast::Script;
pub use error::{SyntaxError, SyntaxErrors};
pub use parse::{
    KnownNames, Unfinished, parse, parse_bytes, parse_bytes_with, parse_with, unfinished,
    unfinished_with,
};
pub use print::print;
pub use span::{Source, Span};

/// Maximum size of a script, in bytes.
pub const MAX_SCRIPT_LENGTH: usize = 64 * 1024 * 1024;
/// Error message for a longer script.
pub const SCRIPT_TOO_LONG: &str = "a script can have at most 64 MiB";
