//! Export of spans, on a thread: a file system or a collector may hang.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::courier::{Courier, MAX_REQUEST, REPORT_TIME, Request, RequestKind, TIMEOUT};
use super::http::Url;
use super::otlp::{END_OF_DATA, pairs, start_of_data};
use crate::log::open_to_append;
use ftsh_sys::has_room;
use ftsh_sys::os_error::plain;

/// Path of traces at a collector, and the collector of this machine.
const PATH: &str = "/v1/traces";
const LOCAL: &str = "http://localhost:4318";

/// Number of spans in a line or a request.
const BATCH: usize = 500;
/// Longest time that a span waits for others.
const INTERVAL: Duration = Duration::from_secs(5);
/// Maximum number of spans that wait for the thread. More are dropped.
const MAX_WAITING: usize = 10_000;
/// Pause before another try to hand over a request to a courier that is busy.
const PAUSE: Duration = Duration::from_millis(5);
/// Size of the stack of the thread, and the memory that it needs beyond, rounded up.
const STACK_SIZE: usize = 128 * 1024;
const HEADROOM: usize = 1024 * 1024;

/// Destination of spans.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    target: SpanTarget,
    /// Start of a line or a request.
    start: String,
}

#[derive(Clone, Debug)]
enum SpanTarget {
    /// A file, to which lines are appended.
    File(PathBuf),
    /// A collector, with lines for the headers of requests.
    Collector(Url, Vec<String>),
    /// None, for this reason.
    Nowhere(&'static str),
}

impl Destination {
    /// Returns the destination that a value of `--otlp` names: a file, a URL, or `1` for the one of
    /// the variables of OpenTelemetry. Returns `None` if these refuse traces.
    ///
    /// # Errors
    ///
    /// Fails with a text that is no URL.
    pub(crate) fn new(
        value: &Path,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, String> {
        let is =
            |name, value: &str| variable(name).is_some_and(|it| it.eq_ignore_ascii_case(value));
        let of = |end: &str| {
            let of = |signal| variable(&format!("OTEL_EXPORTER_OTLP{signal}_{end}"));
            of("_TRACES").or_else(|| of(""))
        };
        let headers = of("HEADERS").unwrap_or_default();
        let headers = pairs(&headers).map(|(name, value)| format!("{name}: {value}"));
        let headers = headers.filter(|line| !line.contains(char::is_control)).collect();
        let url = |text: &str| Url::parse(text).ok_or_else(|| text.to_owned());
        let target = match value.to_str() {
            Some("1") if of("PROTOCOL").as_deref() == Some("grpc") => {
                SpanTarget::Nowhere("`OTEL_EXPORTER_OTLP_PROTOCOL` is grpc, use `http/json`")
            }
            Some("1") => match variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") {
                Some(whole) => SpanTarget::Collector(url(&whole)?, headers),
                None => {
                    let base = variable("OTEL_EXPORTER_OTLP_ENDPOINT");
                    let base = url(base.as_deref().unwrap_or(LOCAL))?;
                    SpanTarget::Collector(of_traces(base), headers)
                }
            },
            Some(text) if text.contains("://") => {
                let url = url(text)?;
                let is_bare = matches!(&*url.path, "" | "/");
                SpanTarget::Collector(if is_bare { of_traces(url) } else { url }, headers)
            }
            _ => SpanTarget::File(value.into()),
        };
        if is("OTEL_SDK_DISABLED", "true") || is("OTEL_TRACES_EXPORTER", "none") {
            return Ok(None);
        }
        let more = variable("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
        let start = start_of_data(variable("OTEL_SERVICE_NAME"), &more);
        Ok(Some(Self { target, start }))
    }

    /// Returns the file, if the destination is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        if let SpanTarget::File(path) = &self.target { Some(path) } else { None }
    }
}

/// Returns the URL with the path of traces.
fn of_traces(mut url: Url) -> Url {
    url.path = format!("{}{PATH}", url.path.trim_end_matches('/'));
    url
}

/// Sender of lines or requests, each with some spans.
pub(crate) struct SpanSender {
    destination: Destination,
    courier: Option<Courier>,
    unsent: Unsent,
    /// Time until which the last spans may be sent, once it is known.
    end: Arc<OnceLock<Instant>>,
}

/// Spans that were not sent: their number, and the reason of the first ones.
#[derive(Default)]
pub(crate) struct Unsent(u64, Option<String>);

impl Unsent {
    fn add(&mut self, count: u64, reason: String) {
        self.0 += count;
        self.1.get_or_insert(reason);
    }

    /// Returns a line for people.
    pub(crate) fn line(self) -> Option<String> {
        let spans = if self.0 == 1 { "span was" } else { "spans were" };
        self.1.map(|reason| format!("{} {spans} not sent: {reason}", self.0))
    }
}

impl SpanSender {
    /// Creates a sender. Must be called while there is one thread.
    pub(crate) fn new(destination: Destination) -> Self {
        let needs_courier = matches!(destination.target, SpanTarget::Collector(..));
        let courier = needs_courier.then(Courier::start).and_then(Result::ok);
        Self { destination, courier, unsent: Unsent::default(), end: Arc::default() }
    }

    /// Sends spans.
    pub(crate) fn send(&mut self, spans: &[String]) {
        for batch in spans.chunks(BATCH) {
            self.send_batch(batch);
        }
    }

    fn send_batch(&mut self, spans: &[String]) {
        let Destination { target, start } = &self.destination;
        let mut data = format!("{start}{}{END_OF_DATA}", spans.join(","));
        let sent = match target {
            SpanTarget::File(path) => {
                data.push('\n');
                let written = open_to_append(path).and_then(|mut it| it.write_all(data.as_bytes()));
                written.map_err(|error| format!("`{}`: {}", path.display(), plain(&error)))
            }
            SpanTarget::Collector(..) if data.len() > MAX_REQUEST / 2 && spans.len() > 1 => {
                return spans
                    .chunks(spans.len().div_ceil(2))
                    .for_each(|half| self.send_batch(half));
            }
            SpanTarget::Collector(url, headers) => {
                let json = "Content-Type: application/json".to_owned();
                let headers = headers.iter().cloned().chain([json]).collect();
                let (url, count) = (url.clone(), spans.len() as u64);
                let (request, until) =
                    (Request { url, headers, body: data, count }, Instant::now() + TIMEOUT);
                loop {
                    match &self.courier {
                        Some(courier) if courier.send(RequestKind::Between, &request) => {
                            break Ok(());
                        }
                        Some(_) if Instant::now() < self.until(until) => {
                            std::thread::sleep(PAUSE);
                        }
                        _ => break Err(format!("{} is too slow", request.url.shown())),
                    }
                }
            }
            SpanTarget::Nowhere(reason) => Err((*reason).into()),
        };
        if let Err(reason) = sent {
            self.unsent.add(spans.len() as u64, reason);
        }
    }

    /// Returns a time, or the end if the end is known.
    fn until(&self, time: Instant) -> Instant {
        self.end.get().copied().unwrap_or(time)
    }

    /// Waits until everything is sent, up to the end, or for [`TIMEOUT`]. Returns the spans that were
    /// not sent.
    pub(crate) fn finish(mut self) -> Unsent {
        let until = self.until(Instant::now() + TIMEOUT);
        let finished = self.courier.take().map(|it| it.finish(until));
        let (count, reasons) = finished.unwrap_or_default();
        if let (1.., Some(reason)) = (count, reasons.into_iter().next()) {
            self.unsent.add(count, reason);
        }
        self.unsent
    }
}

/// Export of the spans of a run.
pub(crate) struct Exporter {
    sender: Option<SpanSender>,
    thread: Option<ExportThread>,
    /// Maximum duration of the wait at the end, and the end of the sender.
    limit: Duration,
    end: Arc<OnceLock<Instant>>,
    /// Number of spans given to the thread.
    given: u64,
    dropped: u64,
}

/// Spans that wait for the thread. It wakes for the first span and for a batch, because a wake for
/// each span made commands a tenth slower.
#[derive(Default)]
struct SpanQueue {
    waiting: Mutex<WaitingSpans>,
    changed: Condvar,
}

#[derive(Default)]
struct WaitingSpans {
    spans: Vec<String>,
    /// True if no more come.
    is_over: bool,
}

impl SpanQueue {
    fn lock(&self) -> MutexGuard<'_, WaitingSpans> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a span. Returns false if too many wait.
    fn add(&self, span: String) -> bool {
        let mut waiting = self.lock();
        if waiting.spans.len() >= MAX_WAITING {
            return false;
        }
        waiting.spans.push(span);
        if matches!(waiting.spans.len(), 1 | BATCH) {
            self.changed.notify_one();
        }
        true
    }

    /// Waits for spans. Returns them, and true if no more come.
    fn take(&self) -> (Vec<String>, bool) {
        let mut waiting = self.lock();
        for (least, most_time) in [(1, Duration::MAX), (BATCH, INTERVAL)] {
            let lacks = |it: &mut WaitingSpans| !it.is_over && it.spans.len() < least;
            let waited = self.changed.wait_timeout_while(waiting, most_time, lacks);
            waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        (std::mem::take(&mut waiting.spans), waiting.is_over)
    }

    fn end(&self) {
        self.lock().is_over = true;
        self.changed.notify_one();
    }
}

struct ExportThread {
    queue: Arc<SpanQueue>,
    /// Spans that were not sent, at the end of the thread.
    ended: Receiver<Unsent>,
}

impl Exporter {
    /// Creates an exporter. The thread starts with the first span, in the process that has it.
    pub(crate) fn new(sender: SpanSender, limit: Duration) -> Self {
        let end = Arc::clone(&sender.end);
        Self { sender: Some(sender), thread: None, limit, end, given: 0, dropped: 0 }
    }

    /// Hands spans to the thread. Drops spans that do not fit, as `dropped` others before.
    pub(crate) fn export(&mut self, spans: Vec<String>, dropped: u64) {
        self.dropped += dropped;
        for span in spans {
            if let Some(sender) = self.sender.take() {
                self.thread = start(sender);
            }
            let fits = self.thread.as_ref().is_some_and(|it| it.queue.add(span));
            *(if fits { &mut self.given } else { &mut self.dropped }) += 1;
        }
    }

    /// Waits until all spans are sent, up to the limit. Returns a line for people if some were not.
    pub(crate) fn finish(self) -> Option<String> {
        let mut unsent = Unsent::default();
        if let Some(ExportThread { queue, ended }) = self.thread {
            // The sender, which has the exact number, ends first.
            let _ = self.end.set(Instant::now() + self.limit.saturating_sub(REPORT_TIME));
            queue.end();
            unsent = ended
                .recv_timeout(self.limit)
                .unwrap_or_else(|_| Unsent(self.given, Some("no answer in time".into())));
        }
        if self.dropped > 0 {
            unsent.add(self.dropped, "too many at once".into());
        }
        unsent.line()
    }
}

/// Starts the thread. Returns none if resources are missing.
fn start(mut sender: SpanSender) -> Option<ExportThread> {
    let queue = Arc::new(SpanQueue::default());
    let (spans, (ends, ended)) = (Arc::clone(&queue), mpsc::channel());
    let work = move || {
        loop {
            let (batch, is_over) = spans.take();
            sender.send(&batch);
            if is_over {
                break;
            }
        }
        let _ = ends.send(sender.finish());
    };
    let thread = std::thread::Builder::new().name("spans".into()).stack_size(STACK_SIZE);
    // The process aborts if a new thread finds no memory at its start.
    let has_begun = has_room(STACK_SIZE + HEADROOM) && thread.spawn(work).is_ok();
    has_begun.then_some(ExportThread { queue, ended })
}
