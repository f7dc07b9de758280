//! What an engine's list says.

/// What an engine says of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed<'a> {
    /// What it is called by the engine.
    pub job: &'a str,
    /// What we call it.
    pub name: &'a str,
    /// The machine that it runs on; none while it waits.
    pub node: Option<&'a str>,
}
