//! The backoff laboratory: experiments with the shell's own policies.
//!
//! A scenario takes its options and gives a [`Report`](common::Report); the command line shows it
//! as text, CSV or JSON and as a picture.

pub mod cli;
pub mod common;
pub mod rehearsal;
pub mod scenario;
pub mod world;
