//! From source text to a syntax tree and back.

#![forbid(unsafe_code)]

pub mod ast;
pub mod backoff;
pub mod clauses;
pub mod diagnostic;
pub mod duration;
pub mod engine;
pub mod error;
pub mod hint;
pub mod nearest;
pub mod parse;
pub mod print;
pub mod slug;
pub mod span;
mod spelling;
pub mod vocabulary;

pub use ast::Script;
pub use error::{SyntaxError, SyntaxErrors};
pub use parse::{
    Among, Unfinished, parse, parse_among, parse_bytes, parse_bytes_among, unfinished,
    unfinished_among,
};
pub use print::print;
pub use span::{Source, Span};

/// How many bytes a script can have.
pub const LONGEST: usize = 64 * 1024 * 1024;
/// Why a longer one isn't read.
pub const TOO_LONG: &str = "a script can have at most 64 MiB";
