//! Reports about runs to other programs: pings of a monitor, metrics, and requests of HTTP.

mod courier;
mod http;
mod metrics;
mod pings;

pub(crate) use self::courier::{Courier, TIMEOUT};
pub(crate) use self::http::{CURL, Url};
pub(crate) use self::metrics::Metrics;
pub(crate) use self::pings::Pings;
