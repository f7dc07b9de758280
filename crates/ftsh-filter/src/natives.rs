//! Filters that scripts can call, besides the syntax of jq.

use jaq_core::box_iter::{BoxIter, box_once};
use jaq_core::load::parse::Def;
use jaq_core::native::{Fun, bome, run, v};
use jaq_core::{Cv, Error, Exn, ValX};
use jaq_json::{Val, read};
use jaq_std::ValT as _;

use crate::budget::FilterData;
use crate::json;

/// Native filters that are replaced: clocks, environment and time zones, which only an effect may
/// read, filters without a limit, and filters of texts that are no JSON.
const REPLACED: [&str; 7] =
    ["env", "now", "localtime", "strflocaltime", "range", "fromjson", "tojson"];

/// `range` of jq, whose native form makes any number of values in one step. No other definition
/// precedes this one.
const RANGE: &str = "def range($from; $to; $by):
  def up:   if . < $to  then ., (. + $by | up)   else {}[] end;
  def down: if . > $to  then ., (. + $by | down) else {}[] end;
  def on:   if . != $to then ., (. + $by | on)   else {}[] end;
  $from | if $by > 0 then up elif $by < 0 then down else on end;";

/// Formats of jq that jaq leaves to programs.
const FORMATS: &str = r#"
def @csv: map(
    if isstring then "\"" + (split("\"") | join("\"\"")) + "\""
    elif . == null then "" else tostring end
  ) | join(",");
def @tsv: map(
    if isstring then
      split("\\") | join("\\\\") | split("\t") | join("\\t")
      | split("\n") | join("\\n") | split("\r") | join("\\r")
    elif . == null then "" else tostring end
  ) | join("\t");
"#;

/// Returns the filters defined in the language of jq.
pub(crate) fn definitions() -> impl Iterator<Item = Def<&'static str>> {
    let own = |text| jaq_core::load::parse(text, |parser| parser.defs()).unwrap_or_default();
    let theirs = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    own(RANGE).into_iter().chain(theirs).chain(own(FORMATS))
}

/// Returns the native filters.
pub(crate) fn all() -> Vec<Fun<FilterData>> {
    let natives = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    let own = [
        run::<FilterData>(("env", v(0), |_| unavailable("env"))),
        run::<FilterData>(("now", v(0), |_| unavailable("now"))),
        run::<FilterData>(("localtime", v(0), |_| unavailable("localtime"))),
        run::<FilterData>(("strflocaltime", v(1), |_| unavailable("strflocaltime"))),
        run::<FilterData>(("fromjson", v(0), from_json)),
        run::<FilterData>(("tojson", v(0), to_json)),
    ];
    natives.filter(|(name, ..)| !REPLACED.contains(name)).chain(own).collect()
}

fn unavailable<'a>(name: &str) -> BoxIter<'a, ValX<'a, Val>> {
    bome(Err(Error::str(format_args!("`{name}` is not available, since it reads the system"))))
}

fn from_json(cv: Cv<'_, FilterData>) -> BoxIter<'_, ValX<'_, Val>> {
    let fail = |error: &dyn std::fmt::Display| {
        Err(Exn::from(Error::str(format_args!("cannot parse a text as JSON: {error}"))))
    };
    let (_, input) = cv;
    let text = match input.try_as_utf8_bytes().map(json::checked) {
        Ok(Ok(text)) => text,
        Ok(Err(error)) => return box_once(fail(&error)),
        Err(error) => return bome(Err(error)),
    };
    let values: Vec<_> =
        read::parse_many(&text).map(|value| value.or_else(|error| fail(&error))).collect();
    Box::new(values.into_iter())
}

fn to_json(cv: Cv<'_, FilterData>) -> BoxIter<'_, ValX<'_, Val>> {
    let (_, value) = cv;
    bome(json::text(&value).map(Val::utf8_str).map_err(Error::str))
}
