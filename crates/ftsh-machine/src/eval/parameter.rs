//! Values of variables, arguments and home directories.

use std::borrow::Cow;
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};

use super::{expand::Expander, expression::not_a_list};
use crate::effect::Query;
use crate::event::Reply;
use crate::outcome::{BranchResults, FailureKind};
use crate::size;
use crate::size::{MAX_VALUE_LEN, ValueTooLong};
use crate::tasks::{Task, branch_results};
use crate::values::{List, Suspend, Value};
use ftsh_syntax::ast::{Expr, ExprKind, Index, Parameter, Substitute, VariableUse, Word, WordPart};
use ftsh_syntax::nearest::slip;
use ftsh_syntax::slug::Slug;

/// Returns the way to the value of a variable that other shells set, or that has a value in some
/// places only.
fn habit(name: &str) -> Option<&'static str> {
    Some(match name {
        "argv" | "args" | "ARGV" => "the arguments are `\"$@\"`, and `args` declares them",
        "argc" | "ARGC" => "the number of arguments is `$#`",
        "RANDOM" => "a random number is `random(0, 32767)`",
        "SECONDS" => "the seconds since 1970 are `now()`, and those of a `try` are `$elapsed`",
        "HOSTNAME" => "the name of the machine is `$(hostname)`",
        "UID" | "EUID" => "the number of the user is `$(id -u)`",
        "status" | "PIPESTATUS" | "pipestatus" => {
            "`catch` has the status in `$error_code`, and `accept` allows others than 0"
        }
        "error" | "error_code" | "error_kind" | "error_command" | "error_line" | "error_output"
        | "error_errno" => "it is set in `catch` and `finally`",
        "attempt" | "elapsed" => "it is set in a `try`",
        "slot" => "it is set in the branches of `forall`",
        _ => return None,
    })
}

impl<'a> Expander<'a> {
    /// Returns the value of a variable without a substitute, unconverted.
    pub(crate) fn plain(&self, variable: &VariableUse) -> Option<&'a Value> {
        match (&variable.parameter, &variable.substitute) {
            (Parameter::Named(name), None | Some((Substitute::Command, _)))
                if variable.index.is_none() =>
            {
                let variable = self.task.variables.get(name)?;
                let shadowed = variable.inherited && !matches!(self.special(name), Ok(None));
                (!shadowed).then_some(&variable.value)
            }
            _ => None,
        }
    }

    /// Returns the value of a variable as text, with its substitute.
    pub(crate) fn variable(&self, variable: &VariableUse) -> Result<Cow<'a, BStr>, Suspend> {
        let value = self.value(variable)?;
        let set = value.as_ref().is_some_and(|value| !value.is_empty());
        match (&variable.substitute, value) {
            (Some((Substitute::Default, parts)), _) if !set => self.parts(parts),
            (Some((Substitute::Alternative, parts)), _) if set => self.parts(parts),
            (Some((Substitute::Alternative, _)), _) => Ok(Cow::default()),
            (Some((Substitute::Command, parts)), None) if !self.config.unset_is_empty => {
                self.parts(parts)
            }
            (Some((Substitute::Required, parts)), _) if !set => {
                let text = self.parts(parts)?.to_string();
                let missing = || format!("{} is missing or empty", named(&variable.parameter));
                let text = if text.is_empty() { missing() } else { text };
                Err(Suspend::Failed(FailureKind::Usage, Slug::Usage, text))
            }
            (_, Some(value)) => Ok(value),
            (_, None) => self.unset(&variable.parameter),
        }
    }

    fn parts(&self, parts: &[WordPart]) -> Result<Cow<'a, BStr>, Suspend> {
        let word =
            Word { span: ftsh_syntax::Span::default(), parts: parts.iter().cloned().collect() };
        self.joined(&word).map(owned)
    }

    fn unset(&self, parameter: &Parameter) -> Result<Cow<'a, BStr>, Suspend> {
        match parameter {
            Parameter::Named(name) if !self.config.unset_is_empty => {
                let advice = match habit(name) {
                    Some(habit) => format!("; {habit}"),
                    None => match slip(name, self.task.variables.iter().map(|(name, _)| &**name)) {
                        Some(meant) => format!(", did you mean `{meant}`?"),
                        None => format!(" (write \"${{{name}:-}}\" if it may be empty)"),
                    },
                };
                let message = format!("the variable `{name}` is not set{advice}");
                Err(Suspend::expression(Slug::UnsetVariable, message))
            }
            _ => Ok(Cow::default()),
        }
    }

    /// Returns the value of a variable without regard to its substitute; `None` if unset.
    pub(crate) fn value(&self, variable: &VariableUse) -> Result<Option<Cow<'a, BStr>>, Suspend> {
        let Some(index) = &variable.index else { return self.parameter(&variable.parameter) };
        let may_be_unset = variable.substitute.is_some() || self.config.unset_is_empty;
        if may_be_unset && self.parameter(&variable.parameter)?.is_none() {
            return Ok(None);
        }
        let list = self.list(variable)?;
        let Index::At(index) = index else {
            let length = list.text_len();
            let is_possible = size::can_allocate(length);
            return if is_possible {
                Ok(Some(owned(list.text())))
            } else {
                Err(size::no_memory(length))
            };
        };
        let position = self.index(index)?;
        match list.at(position) {
            Some(element) => Ok(Some(owned(size::copy(element)?))),
            None if variable.substitute.is_some() => Ok(None),
            None => Err(no_element(&list, position)),
        }
    }

    /// Returns the list of `${name[index]}`.
    pub(crate) fn list(&self, variable: &VariableUse) -> Result<Arc<List>, Suspend> {
        let Parameter::Named(name) = &variable.parameter else {
            return Err(not_a_list("arguments"));
        };
        let is_set = || self.task.variables.get(name).is_some() || self.scalar(name).is_some();
        match (self.named_list(&variable.parameter)?, &variable.index) {
            (Some(list), Some(Index::Slice(from, to))) => {
                self.slice(&list, from.as_deref(), to.as_deref()).map(Arc::new)
            }
            (Some(list), _) => Ok(list),
            (None, _) if is_set() => Err(not_a_list(name)),
            (None, _) => self.unset(&variable.parameter).map(|_| Arc::default()),
        }
    }

    /// Returns the list that a parameter names, unless its value is a text.
    pub(crate) fn named_list(&self, parameter: &Parameter) -> Result<Option<Arc<List>>, Suspend> {
        let Parameter::Named(name) = parameter else { return Ok(None) };
        match self.task.variables.get(name).map(|variable| (&variable.value, variable.inherited)) {
            Some((Value::List(list), _)) => Ok(Some(Arc::clone(list))),
            Some((_, false)) => Ok(None),
            _ => Ok(self.branch_words(name)?.map(Arc::new)),
        }
    }

    /// Returns the elements between two positions, both included. Positions outside of the list are
    /// cut.
    fn slice(&self, list: &List, from: Option<&Expr>, to: Option<&Expr>) -> Result<List, Suspend> {
        let length = list.len() as i64;
        let position = |index: &Expr| match self.index(index)? {
            0 => Err(no_element(list, 0)),
            at @ ..0 => Ok(length.saturating_add(at) + 1),
            at => Ok(at),
        };
        let from = from.map_or(Ok(1), position)?.max(1);
        let to = to.map_or(Ok(length), position)?.min(length);
        let mut slice = List::default();
        for element in (from..=to).filter_map(|at| list.at(at)) {
            slice.push(element)?;
        }
        Ok(slice)
    }

    /// Returns the value of an index.
    fn index(&self, index: &Expr) -> Result<i64, Suspend> {
        let value = match &index.kind {
            ExprKind::Word(word) => Cow::Owned(self.operand(word)?),
            _ => match self.task.call_value(index.span.start) {
                Some(value) => Cow::Borrowed(value),
                None => return Err(Suspend::Call(index.span.start)),
            },
        };
        value.integer().map_err(Suspend::from)
    }

    /// Returns the value of a parameter; `None` if unset.
    pub(crate) fn parameter(
        &self,
        parameter: &Parameter,
    ) -> Result<Option<Cow<'a, BStr>>, Suspend> {
        let args = &self.task.args;
        let number = |number: String| Some(owned(number.into()));
        Ok(match parameter {
            Parameter::Named(name) => return self.named(name),
            Parameter::Positional(index) => {
                args.get(*index as usize).map(|arg| Cow::Borrowed(arg.as_bstr()))
            }
            Parameter::Count => number(args.len().saturating_sub(1).to_string()),
            Parameter::Star | Parameter::At => Some(owned(size::join(args.iter().skip(1), b"")?)),
            Parameter::Pid => number(self.config.pid.to_string()),
        })
    }

    fn named(&self, name: &str) -> Result<Option<Cow<'a, BStr>>, Suspend> {
        match self.task.variables.get(name) {
            Some(variable) if !variable.inherited => {
                let text = self.text(&variable.value)?;
                if matches!(variable.value, Value::Buffer(_)) {
                    // The output of a command is available only now, so a secret is learned here.
                    self.task.variables.secrets.learn(name, &text);
                }
                Ok(Some(text))
            }
            _ if name == "scratch" && self.task.is_atomic() => self.scratch(),
            Some(variable) => match self.special(name)? {
                Some(special) => Ok(Some(owned(special))),
                None => self.text(&variable.value).map(Some),
            },
            None => Ok(self.special(name)?.map(owned)),
        }
    }

    /// Returns the text of a value: its bytes, without the final newline of a command's output.
    pub(crate) fn text<'v>(&self, value: &'v Value) -> Result<Cow<'v, BStr>, Suspend>
    where
        'a: 'v,
    {
        if let Value::Buffer(buffer) = value {
            let written = self.answer(Query::Buffer(buffer.id()))?.as_bytes();
            let text = match written.strip_suffix(b"\n") {
                Some(line) => line.strip_suffix(b"\r").unwrap_or(line),
                None => written,
            };
            if text.len() > MAX_VALUE_LEN {
                return Err(Suspend::from(ValueTooLong(text.len())));
            }
            return Ok(Cow::Borrowed(text.as_bstr()));
        }
        match value.not_text() {
            Some(error) => Err(error.into()),
            None => Ok(value.text().unwrap_or_default()),
        }
    }

    /// Returns the scratch directory of the enclosing atomic attempt.
    fn scratch(&self) -> Result<Option<Cow<'a, BStr>>, Suspend> {
        let scratch = self.task.scratch();
        let path = scratch.map(|scratch| self.answer(Query::Scratch(scratch.id()))).transpose()?;
        Ok(path.map(Cow::Borrowed))
    }

    fn answer(&self, query: Query) -> Result<&'a BStr, Suspend> {
        let mut answers = self.task.answers().iter();
        match answers.find(|(asked, _)| *asked == query) {
            Some((_, Reply::Text(text))) => Ok(text.as_bstr()),
            Some(_) => Ok(BStr::new("")),
            None => Err(Suspend::Pending(query)),
        }
    }

    /// Returns the value of a special variable such as `$attempt` or `$error`, where defined.
    fn special(&self, name: &str) -> Result<Option<BString>, Suspend> {
        match self.branch_words(name)? {
            Some(list) => Ok(Some(list.text())),
            None => Ok(self.scalar(name)),
        }
    }

    /// Returns the list `$failed`, `$failed_errors` or `$succeeded`, where defined.
    fn branch_words(&self, name: &str) -> Result<Option<List>, Suspend> {
        let Some(branches) = branches_of(self.task, name) else {
            let is_empty = is_of_branches(name) && self.task.is_after_success();
            return Ok(is_empty.then(List::default));
        };
        let (mut list, mut pushed) = (List::default(), Ok(()));
        let mut push = |word: &[u8]| {
            if pushed.is_ok() {
                pushed = list.push(word);
            }
        };
        let visited = match name {
            "failed_errors" => branches.words.each_error(&mut push),
            _ => branches.words.each(name == "succeeded", &mut push),
        };
        visited
            .map_err(|why| Suspend::expression(Slug::LargeValue, format!("`${name}`: {why}")))?;
        pushed.map(|()| Some(list))
    }

    /// Returns the value of a special variable that is no list.
    fn scalar(&self, name: &str) -> Option<BString> {
        if name == "slot" {
            return self.task.slot.map(|slot| slot.to_string().into());
        }
        if let Some(field) = name.strip_prefix("error") {
            let Some(failure) = self.task.caught() else {
                let fields =
                    ["", "_kind", "_code", "_signal", "_errno", "_command", "_line", "_output"];
                let is_known = fields.contains(&field);
                return (is_known && self.task.is_after_success()).then(BString::default);
            };
            return Some(match field {
                "" => failure.summary().into(),
                "_kind" => failure.kind.name().into(),
                "_code" => failure.exit_code().to_string().into(),
                "_signal" => failure.signal().unwrap_or_default().into(),
                "_errno" => failure.errno.as_deref().unwrap_or_default().into(),
                "_command" => failure.command.as_str().into(),
                "_line" => failure.line.to_string().into(),
                "_output" => {
                    let mut output = failure.all_output();
                    output.pop_if(|last| *last == b'\n');
                    output.into()
                }
                _ => return None,
            });
        }
        let attempt = self.task.attempt()?;
        Some(match name {
            "attempt" => attempt.number.to_string().into(),
            "elapsed" => (self.now - attempt.started).as_secs().to_string().into(),
            "remaining" => match attempt.deadline.remaining(self.now) {
                Some(left) => left.as_secs().to_string().into(),
                None => BString::default(),
            },
            _ => return None,
        })
    }

    /// Splits a leading tilde off. Returns the home directory and the rest of the text.
    pub(crate) fn tilde<'t>(
        &self,
        bare: &'t str,
        whole: bool,
    ) -> Result<(BString, &'t str), Suspend> {
        let Some(rest) = bare.strip_prefix('~') else { return Ok((BString::default(), bare)) };
        let user = match rest.split_once('/') {
            Some((user, _)) => user,
            None if whole => rest,
            None => return Ok((BString::default(), bare)),
        };
        let home = if user.is_empty() {
            let unset =
                || Suspend::expression(Slug::UnsetVariable, "`~`: the variable `HOME` is not set");
            self.named("HOME")?.ok_or_else(unset)?.into_owned()
        } else {
            self.answer(Query::Home(user.into()))?.to_owned()
        };
        Ok((home, &rest[user.len()..]))
    }
}

/// Returns the results of branches that the list `$failed`, `$failed_errors` or `$succeeded` shows, where
/// defined.
pub(crate) fn branches_of<'a>(task: &'a Task, name: &str) -> Option<&'a BranchResults> {
    if is_of_branches(name) { branch_results(task).map(Arc::as_ref) } else { None }
}

/// Returns true for the name of a list of branches.
fn is_of_branches(name: &str) -> bool {
    matches!(name, "failed" | "failed_errors" | "succeeded")
}

fn no_element(list: &List, position: i64) -> Suspend {
    let message = format!("a list of {} elements has no element {position}", list.len());
    Suspend::expression(Slug::OutOfRange, message)
}

/// Names a parameter in a message.
fn named(parameter: &Parameter) -> String {
    match parameter {
        Parameter::Named(name) => format!("the variable `{name}`"),
        Parameter::Positional(index) => format!("argument {index}"),
        Parameter::Star | Parameter::At => "an argument".to_owned(),
        Parameter::Count | Parameter::Pid => "a value".to_owned(),
    }
}

fn owned<'a>(text: BString) -> Cow<'a, BStr> {
    Cow::Owned(text)
}
