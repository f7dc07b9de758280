//! The JSON of OTLP, OpenTelemetry's protocol. Numbers of 64 bits are texts, which keep all digits.

use std::time::Duration;

use serde_json::{Value, json};

/// Returns an attribute with a text.
pub(super) fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

/// Returns an attribute with a number.
pub(super) fn number(key: &str, value: impl Into<i128>) -> Value {
    json!({"key": key, "value": {"intValue": value.into().to_string()}})
}

/// Returns a time since 1970.
pub(super) fn time(since_1970: Duration) -> Value {
    json!(since_1970.as_nanos().to_string())
}

/// Returns the start of a line of `TracesData`, which describes this program. `name` is the name of
/// the service, and `more` has further attributes.
pub(super) fn start_of_data(name: Option<String>, more: &str) -> String {
    let own = [("service.name", "ftsh"), ("service.version", env!("CARGO_PKG_VERSION"))];
    let mut all: Vec<(String, String)> = own.map(|(key, it)| (key.into(), it.into())).into();
    for (key, value) in pairs(more).chain(name.map(|name| ("service.name".into(), name))) {
        all.retain(|(known, _)| *known != key);
        all.push((key, value));
    }
    let attributes: Value = all.iter().map(|(key, value)| text(key, value)).collect();
    let resource = json!({"attributes": attributes});
    let scope = json!({"name": "ftsh", "version": env!("CARGO_PKG_VERSION")});
    format!(
        r#"{{"resourceSpans":[{{"resource":{resource},"scopeSpans":[{{"scope":{scope},"spans":["#
    )
}

/// End of a line of `TracesData`, after spans with commas between them.
pub(super) const END_OF_DATA: &str = "]}]}]}";

/// Parses pairs of a variable of OpenTelemetry, such as `a=b,c=d%20e`.
pub(super) fn pairs(text: &str) -> impl Iterator<Item = (String, String)> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, value)| (decoded(key.trim()), decoded(value.trim())))
}

/// Decodes `%` with two digits.
fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let byte = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(b'%'));
        bytes.extend_from_slice(&part.as_bytes()[if byte.is_some() { 2 } else { 0 }..]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
