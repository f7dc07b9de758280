//! Environment variables for child processes: the tag of their scope, the validity of their time
//! limit, and their kill timeout.

mod kill_timeout;
mod limit_grants;
mod passed_deadline;
mod scope_tag;

pub use self::kill_timeout::KillTimeout;
pub(crate) use self::limit_grants::LimitGrants;
pub use self::limit_grants::remove_expired_limit;
pub(crate) use self::passed_deadline::LimitTexts;
pub use self::passed_deadline::{LimitClocks, PassedDeadline};
pub(crate) use self::scope_tag::{ScopeTag, Tagger};
