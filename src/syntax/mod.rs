//! From source text to a syntax tree and back.

pub mod ast;
pub mod error;
pub mod parse;
pub mod print;
pub mod span;

pub use ast::Script;
pub use error::SyntaxError;
pub use parse::parse;
pub use print::print;
pub use span::{Source, Span};
