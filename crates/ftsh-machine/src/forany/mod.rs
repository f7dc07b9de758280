//! Hedged `forany`: the next alternative begins before the last one ended.

pub(crate) mod hedge;
pub(crate) mod hedging;
