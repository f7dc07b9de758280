//! Reports about runs to other programs: pings of a monitor, metrics, spans of traces, and requests of
//! HTTP.

mod courier;
mod export;
mod http;
mod metrics;
mod otlp;
mod pings;
mod spans;

pub(crate) use self::courier::{Courier, TIMEOUT};
pub(crate) use self::export::{Destination, Exporter, SpanSender};
pub(crate) use self::http::{CURL, Url};
pub(crate) use self::metrics::Metrics;
pub(crate) use self::pings::Pings;
pub use self::spans::Spans;
