//! Spans of traces, read from the JSON of OTLP.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

/// A finished span.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SpanRow {
    pub trace: String,
    pub id: String,
    pub parent: Option<String>,
    pub name: String,
    pub start: u64,
    pub end: u64,
    /// Attributes as text.
    pub attributes: BTreeMap<String, String>,
    /// Lengths of the delays, in seconds.
    pub delays: Vec<f64>,
    /// True if the status is an error.
    pub is_error: bool,
}

impl SpanRow {
    /// Reads a span.
    pub(crate) fn of(json: &Value) -> Result<Self, String> {
        let wrong = |what: &str| format!("{what}: {json}");
        let text = |key: &str| json[key].as_str().map(ToOwned::to_owned).ok_or_else(|| wrong(key));
        let nanoseconds = |key| text(key)?.parse().map_err(|_| wrong(key));
        let id = |key: &str, length: usize| {
            let id = text(key)?;
            let is_hex = id.len() == length && id.bytes().all(|it| it.is_ascii_hexdigit());
            let is_zero = id.bytes().all(|it| it == b'0');
            if is_hex && !is_zero { Ok(id) } else { Err(wrong(key)) }
        };
        let error = attributes(json).remove("error.type");
        let is_error = json["status"]["code"] == 2;
        if is_error != error.is_some() || json["kind"] != 1 {
            return Err(wrong("status and kind"));
        }
        let events = json["events"].as_array().into_iter().flatten();
        let delay = |event: &Value| event["attributes"][0]["value"]["doubleValue"].as_f64();
        Ok(Self {
            trace: id("traceId", 32)?,
            id: id("spanId", 16)?,
            parent: json.get("parentSpanId").map(|_| id("parentSpanId", 16)).transpose()?,
            name: text("name")?,
            start: nanoseconds("startTimeUnixNano")?,
            end: nanoseconds("endTimeUnixNano")?,
            attributes: attributes(json),
            delays: events.map(delay).collect::<Option<_>>().ok_or_else(|| wrong("delays"))?,
            is_error,
        })
    }

    /// Returns an attribute as text, empty if missing.
    #[allow(dead_code, reason = "the simulator compares whole spans")]
    pub(crate) fn attribute(&self, key: &str) -> &str {
        self.attributes.get(key).map_or("", String::as_str)
    }
}

fn attributes(json: &Value) -> BTreeMap<String, String> {
    let all = json["attributes"].as_array().into_iter().flatten();
    let pairs = all.filter_map(|it| {
        let (_, value) = it["value"].as_object()?.iter().next()?;
        let value = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        Some((it["key"].as_str()?.to_owned(), value))
    });
    pairs.collect()
}

/// Reads the lines of a file, each with `TracesData`, and checks that the spans nest.
#[allow(dead_code, reason = "the simulator has no files")]
pub(crate) fn read(path: &Path) -> Vec<SpanRow> {
    let text = fs::read_to_string(path).expect("a file with spans");
    let mut rows = Vec::new();
    for line in text.lines() {
        let data: Value = serde_json::from_str(line).expect("a line of JSON");
        let spans = data["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array();
        rows.extend(spans.expect("spans").iter().map(|span| SpanRow::of(span).expect("a span")));
    }
    rows
}

/// Checks that the spans are one trace with one root, and that each is inside of its parent.
pub(crate) fn check(rows: &[SpanRow]) -> Result<(), String> {
    let by_id: BTreeMap<&str, &SpanRow> = rows.iter().map(|row| (&*row.id, row)).collect();
    if by_id.len() != rows.len() {
        return Err(format!("{} ids for {} spans", by_id.len(), rows.len()));
    }
    let mut roots = 0;
    for row in rows {
        let parent = row.parent.as_deref().and_then(|parent| by_id.get(parent));
        let Some(parent) = parent else {
            roots += 1;
            continue;
        };
        if parent.trace != row.trace || row.start < parent.start || row.end > parent.end {
            return Err(format!("{row:?}\nis not inside of\n{parent:?}"));
        }
    }
    if roots == 1 { Ok(()) } else { Err(format!("{roots} roots: {rows:#?}")) }
}
