//! Tests of the real binary from outside.

#![allow(unsafe_code)]
// Errors in tests are panics. A builder that is not run would test nothing.
#![allow(clippy::missing_panics_doc, clippy::must_use_candidate, clippy::return_self_not_must_use)]

mod support;

mod atomic;
mod bad_input;
mod branch;
mod bytes;
mod channels;
mod ci;
mod cli;
mod cluster;
mod cookbook;
mod cookbook_elsewhere;
mod cookbook_endings;
mod cron;
mod descriptors;
mod docs;
mod editors;
mod examples;
mod from_loops;
mod fuzzing;
mod generated;
mod hints;
mod idle;
mod imports;
mod journal;
mod keys;
mod kills;
mod lease;
mod leftovers;
mod links;
mod live;
mod lock;
mod log_schema;
mod logging;
mod lsp;
mod nesting;
mod next_start;
mod out_of_memory;
mod packaging;
mod pipelines;
mod prefix;
mod printing;
mod prompt;
mod prompt_abbreviations;
mod prompt_alone;
mod prompt_why;
mod reference;
mod replayed;
mod resources;
mod results;
mod resuming;
mod scripts;
mod secrets;
mod shebang;
mod signals;
mod slugs;
mod slurm;
mod soak;
mod sources;
mod ssh;
mod stalled;
mod start;
mod storm;
mod stress;
mod supervision;
mod survivors;
mod tagged;
mod terminal;
mod tidy;
mod timing;
mod torn;
mod unreadable;
