//! The backoff laboratory: experiments with the shell's own policies.
//!
//! A scenario takes options and returns a [`Report`](common::Report). The command line shows the
//! report as text, CSV or JSON, and as a picture.

pub mod cli;
pub mod common;
pub mod rehearsal;
pub mod scenario;
pub mod world;
