//! Hedged `forany`: the next alternative begins before the last one ended.

pub(crate) mod run;
pub(crate) mod state;
