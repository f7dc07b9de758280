//! Filters of jq, for the function `json`.
//!
//! The machine requests the results of a filter by an effect, since a single step of a filter can
//! take any time and memory. Drivers call [`results`], the process driver in a process of its own.
//!
//! A filter is executed by the crates `jaq-core`, `jaq-std` and `jaq-json`. The [`Budget`] limits
//! steps and native stack. Filters that read clocks or the environment are replaced.

mod budget;
mod json;
mod natives;
mod nesting;

use bstr::{BStr, BString, ByteSlice};
use jaq_core::load::{self, Arena, File, Loader};
use jaq_core::{Ctx, Vars, compile};
use jaq_json::{Val, read};

use budget::{Budget, Context, ExceededLimit, FilterData, Spare};
use ftsh_machine::effect::FilterCall;
use ftsh_machine::event::Reply;
use ftsh_machine::size;
use ftsh_syntax::slug::Slug;

/// Maximum length of a filter, in bytes. The parser of filters recurses.
const MAX_FILTER_LEN: usize = 8 * 1024;

type Filter = jaq_core::Filter<FilterData>;

/// Checks the syntax and the names of a filter.
///
/// # Errors
///
/// One line for people.
pub fn check(filter: &str) -> Result<(), String> {
    compile(filter).map(|_| ())
}

/// Applies a filter to each JSON value of a text. Returns nothing if the filter takes more than this
/// many steps.
pub fn results(call: &FilterCall, steps: u64) -> Option<Reply> {
    match run(&call.text, call.filter.as_bstr(), steps) {
        Ok(words) => Some(Reply::Words(words)),
        Err(NoResults::OutOfSteps) => None,
        Err(NoResults::Failed(slug, message)) => Some(Reply::Failed(slug, message)),
    }
}

/// Reason why a filter has no results.
#[derive(Debug)]
enum NoResults {
    OutOfSteps,
    Failed(Slug, String),
}

fn run(text: &[u8], filter: &BStr, steps: u64) -> Result<Vec<BString>, NoResults> {
    let compiled = match std::str::from_utf8(filter) {
        Ok(filter) => compile(filter),
        Err(_) => Err("not UTF-8".to_owned()),
    };
    let compiled = compiled.map_err(|why| {
        NoResults::Failed(Slug::Filter, format!("`{filter}` is not a filter of jq: {why}"))
    })?;
    let text = json::checked(text).map_err(not_json)?;
    let (budget, spare) = (Budget::new(steps), Spare::new(filter.len(), natives::all));
    let (mut words, mut length) = (Vec::new(), 0);
    for input in read::parse_many(&text) {
        let input = input.map_err(not_json)?;
        let context = Context::new(&compiled.lut, &spare, &budget);
        for result in compiled.id.run((Ctx::<FilterData>::new(context, Vars::new([])), input)) {
            if budget.cut().is_some() {
                break;
            }
            let value = match result.map_err(jaq_core::Exn::get_err) {
                Ok(value) => value,
                Err(Ok(error)) => return Err(failed(word(&error.into_val())?)),
                Err(Err(_)) => return Err(failed("it calls `halt`")),
            };
            let word = word(&value)?;
            length += word.len();
            words.push(word);
            if length + words.len() * size_of::<BString>() > size::MAX_VALUE_LEN {
                return Err(too_large(words.len(), length));
            }
        }
        match budget.cut() {
            Some(ExceededLimit::Steps) => return Err(NoResults::OutOfSteps),
            Some(ExceededLimit::Stack) => return Err(failed(TOO_DEEP)),
            None => {}
        }
    }
    Ok(words)
}

/// Returns a string as it is, and other values as JSON.
fn word(value: &Val) -> Result<BString, NoResults> {
    if let Val::TStr(text) | Val::BStr(text) = value {
        return Ok(BString::from(&text[..]));
    }
    json::text(value).map(BString::from).map_err(failed)
}

fn too_large(count: usize, length: usize) -> NoResults {
    let (limit, each) = (size::MAX_VALUE_LEN / 1024 / 1024, size_of::<BString>());
    let message = format!(
        "the results of `json` can have at most {limit} MiB together, where each counts {each} bytes \
         more than its text: the first {count} results have {length} bytes of text"
    );
    NoResults::Failed(Slug::LargeValue, message)
}

fn not_json(why: impl std::fmt::Display) -> NoResults {
    NoResults::Failed(Slug::Json, format!("the text of `json` is not JSON: {why}"))
}

fn failed(why: impl std::fmt::Display) -> NoResults {
    NoResults::Failed(Slug::Filter, failure(brief(&why)))
}

/// Reason of the failure of a filter that exhausts the native stack.
pub const TOO_DEEP: &str = "it nests too deeply";

/// Returns the message of a filter's failure.
pub fn failure(why: impl std::fmt::Display) -> String {
    format!("the filter of `json` failed: {why}")
}

/// Returns a message in one line of limited length. Messages of filters contain values.
fn brief(message: &impl std::fmt::Display) -> String {
    let message = message.to_string().replace('\n', " ");
    match message.char_indices().nth(MAX_MESSAGE_LEN) {
        Some((end, _)) => format!("{} …", &message[..end]),
        None => message,
    }
}

/// Maximum number of characters of a filter's message.
const MAX_MESSAGE_LEN: usize = 200;

/// Compiles a filter.
///
/// # Errors
///
/// One line for people.
fn compile(filter: &str) -> Result<Filter, String> {
    if filter.len() > MAX_FILTER_LEN {
        return Err(format!("it has more than {} KiB", MAX_FILTER_LEN / 1024));
    }
    let arena = Arena::default();
    let loader = Loader::new(natives::definitions());
    let modules = loader.load(&arena, File { code: filter, path: () });
    let modules = modules.map_err(|errors| {
        let first = errors.into_iter().next().map(|(file, error)| (file.code, error));
        first.map_or_else(String::new, |(code, error)| load_error(code, error))
    })?;
    let compiler = jaq_core::Compiler::default().with_funs(natives::all());
    compiler.compile(modules).map_err(|errors| {
        let first = errors.into_iter().flat_map(|(_, errors)| errors).next();
        first.map_or_else(String::new, |(name, undefined)| undefined_error(name, &undefined))
    })
}

fn load_error(filter: &str, error: load::Error<&str>) -> String {
    let (expected, found) = match error {
        load::Error::Lex(errors) => match errors.into_iter().next() {
            Some((expected, found)) => (expected.as_str(), found),
            None => return String::new(),
        },
        load::Error::Parse(errors) => match errors.into_iter().next() {
            Some((expected, found)) => (expected.as_str(), found),
            None => return String::new(),
        },
        load::Error::Io(_) => return "`import` and `include` are not available".into(),
    };
    // The rest of the filter, or its place in the filter, is part of its text.
    let at = (found.as_ptr() as usize).checked_sub(filter.as_ptr() as usize);
    match at.and_then(|at| filter.get(at..)).map(str::trim).filter(|rest| !rest.is_empty()) {
        Some(rest) => format!("expected {expected} at `{}`", brief(&rest)),
        None => format!("expected {expected} at its end"),
    }
}

fn undefined_error(name: &str, undefined: &compile::Undefined) -> String {
    match undefined {
        compile::Undefined::Filter(arguments) => {
            format!("there is no filter `{name}` with {arguments} arguments")
        }
        undefined => format!("there is no {} `{name}`", undefined.as_str()),
    }
}
