//! Lint, language server, highlighting and completion of ftsh scripts.

pub mod abbreviations;
pub mod candidate;
pub mod complete;
mod disk_files;
pub mod durations;
pub mod files;
pub mod help;
pub mod highlight;
pub mod known;
pub mod lexemes;
pub mod lint;
pub mod lsp;
mod meaning;
pub mod tokens;

pub use disk_files::DiskFiles;
