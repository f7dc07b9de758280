//! Arguments of a script, read as its `args` declares them.

use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};

use super::expression::{local, set_variable, unset_variable};
use crate::core::Core;
use crate::outcome::FailureKind;
use crate::tasks::Task;
use crate::values::{List, Suspend, Value};
use ftsh_syntax::ast::{ArgumentKind, ArgumentsDeclaration, DeclaredArgument};
use ftsh_syntax::nearest::nearest;
use ftsh_syntax::slug::Slug;

/// Reason why a script does not run with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// `--help` or `-h`.
    Help,
    /// A mistake in the arguments, in one line.
    Misuse(String),
}

/// Checks the arguments of a script, without `$0`.
///
/// # Errors
///
/// Fails if the arguments ask for help or do not fit the declaration.
pub fn check(declaration: &ArgumentsDeclaration, arguments: &[BString]) -> Result<(), Refusal> {
    Reader::read(declaration, arguments)?.values().map(drop)
}

/// Reader of arguments.
struct Reader<'d> {
    declaration: &'d ArgumentsDeclaration,
    /// Last value of each declared option.
    given: Vec<Option<Value>>,
    operands: Vec<BString>,
    /// First mistake. `--help` after the mistake still prints the help.
    mistake: Option<String>,
}

impl<'d> Reader<'d> {
    fn new(declaration: &'d ArgumentsDeclaration) -> Self {
        let given = vec![None; declaration.arguments.len()];
        Self { declaration, given, operands: Vec::new(), mistake: None }
    }

    fn read(declaration: &'d ArgumentsDeclaration, arguments: &[BString]) -> Result<Self, Refusal> {
        let mut reader = Self::new(declaration);
        let mut rest = arguments.iter().map(|it| it.as_bstr());
        while let Some(argument) = rest.next() {
            match argument.as_bytes() {
                b"--" => reader.operands.extend(rest.by_ref().map(BStr::to_owned)),
                [b'-', b'-', ..] => reader.long(argument, &mut rest)?,
                [b'-', _, ..] => reader.short(argument, &mut rest)?,
                _ => reader.operands.push(argument.to_owned()),
            }
        }
        match reader.mistake.take() {
            Some(mistake) => Err(Refusal::Misuse(mistake)),
            None => Ok(reader),
        }
    }

    /// Reads `--option` or `--option=value`.
    fn long<'a>(
        &mut self,
        argument: &'a BStr,
        rest: &mut impl Iterator<Item = &'a BStr>,
    ) -> Result<(), Refusal> {
        let (name, value) = match argument.split_once_str("=") {
            Some((name, value)) => (name.as_bstr(), Some(value.as_bstr())),
            None => (argument, None),
        };
        let name = name.to_str_lossy();
        let declaration = self.declaration;
        match declaration.option(&name) {
            Some((index, option)) if option.kind == ArgumentKind::Flag => {
                self.given[index] = Some(Value::Boolean(true));
                if value.is_some() {
                    self.misuse(format!("the option `{name}` takes no value"));
                }
            }
            Some((index, _)) => self.value(index, &name, value.or_else(|| rest.next())),
            None if name == "--help" => return Err(Refusal::Help),
            None => self.unknown(&name),
        }
        Ok(())
    }

    /// Reads options of one letter: `-v`, `-vn`, `-oFILE` or `-o FILE`.
    fn short<'a>(
        &mut self,
        argument: &'a BStr,
        rest: &mut impl Iterator<Item = &'a BStr>,
    ) -> Result<(), Refusal> {
        let declaration = self.declaration;
        for (start, end, letter) in argument.char_indices().skip(1) {
            let name = format!("-{letter}");
            match declaration.option(&name) {
                Some((index, option)) if option.kind == ArgumentKind::Flag => {
                    self.given[index] = Some(Value::Boolean(true));
                }
                Some((index, _)) => {
                    let after = &argument[end..];
                    // `-o=FILE` is written as in the declaration.
                    let after = after.strip_prefix(b"=").unwrap_or(after).as_bstr();
                    let value = if end < argument.len() { Some(after) } else { rest.next() };
                    self.value(index, &name, value);
                    break;
                }
                None if letter == 'h' => return Err(Refusal::Help),
                None if start == 1 => {
                    self.unknown(&argument.to_str_lossy());
                    break;
                }
                None if letter == '=' => {
                    let flag = argument[1..start].chars().next_back().unwrap_or(letter);
                    self.misuse(format!("the option `-{flag}` takes no value"));
                    break;
                }
                None => {
                    self.unknown(&name);
                    break;
                }
            }
        }
        Ok(())
    }

    fn value(&mut self, index: usize, name: &str, value: Option<&BStr>) {
        match value {
            Some(value) => self.given[index] = Some(Value::from(value.to_owned())),
            None => self.misuse(format!("the option `{name}` lacks its value")),
        }
    }

    fn unknown(&mut self, name: &str) {
        let long = || self.declaration.spellings().filter(|it| it.starts_with("--"));
        let begun = || long().find(|it| it.starts_with(name));
        let meant = Some(name).filter(|it| it.len() > 2);
        let meant = meant.and_then(|name| nearest(name, long()).or_else(begun));
        let is_number = name[1..].starts_with(|c: char| c.is_ascii_digit() || c == '.');
        let after = match meant {
            _ if is_number => "; write `--` before a number".to_owned(),
            Some(meant) => format!("; did you mean `{meant}`?"),
            None => String::new(),
        };
        self.misuse(format!("there is no option `{name}`{after}"));
    }

    fn misuse(&mut self, mistake: String) {
        self.mistake.get_or_insert(mistake);
    }

    /// Returns the value of each declared argument. An option without a default may have none.
    fn values(self) -> Result<(Vec<Option<Value>>, Vec<BString>), Refusal> {
        let mut rest = self.operands.iter();
        let mut values = Vec::new();
        for (DeclaredArgument { name, kind, .. }, given) in
            self.declaration.arguments.iter().zip(self.given)
        {
            let text = |text: &String| Value::from(BString::from(text.as_str()));
            values.push(match kind {
                ArgumentKind::Required => match rest.next() {
                    Some(operand) => Some(Value::from(operand.clone())),
                    None => {
                        return Err(Refusal::Misuse(format!("the argument `{name}` is missing")));
                    }
                },
                ArgumentKind::Optional(default) => {
                    Some(rest.next().map_or_else(|| text(default), |it| Value::from(it.clone())))
                }
                ArgumentKind::Rest => Some(words(rest.by_ref())?),
                ArgumentKind::Flag => given.or(Some(Value::Boolean(false))),
                ArgumentKind::Value(_) => given,
                ArgumentKind::ValueOr(default) => given.or_else(|| Some(text(default))),
            });
        }
        match rest.next() {
            Some(more) => {
                Err(Refusal::Misuse(format!("there is no argument for `{}`", more.to_str_lossy())))
            }
            None => Ok((values, self.operands)),
        }
    }
}

/// Returns the value of `name...`, a list of the words.
fn words<'a>(mut words: impl Iterator<Item = &'a BString>) -> Result<Value, Refusal> {
    let mut list = List::default();
    words
        .try_for_each(|word| list.push(word))
        .map_err(|_| Refusal::Misuse("there is too little memory for the arguments".into()))?;
    Ok(Value::List(Arc::new(list)))
}

/// Sets the variables of the arguments of a script or a call. The operands of a script become `$1`,
/// `$2` … Those of a call last until its end.
pub(crate) fn read_arguments(
    core: &mut Core,
    task: &mut Task,
    declaration: &ArgumentsDeclaration,
) -> Result<(), Suspend> {
    let words = task.args.get(1..).unwrap_or_default();
    let is_call = task.depth() > 0;
    let read = if is_call {
        Ok(Reader { operands: words.to_vec(), ..Reader::new(declaration) })
    } else {
        Reader::read(declaration, words)
    };
    let (values, operands) = read.and_then(Reader::values).map_err(|refusal| {
        let text = match refusal {
            Refusal::Help => "the arguments ask for help".to_owned(),
            Refusal::Misuse(text) if is_call => {
                let name = task.args[0].to_str_lossy();
                format!("{name}: {text} ({})", declaration.usage(&name))
            }
            Refusal::Misuse(text) => text,
        };
        Suspend::Failed(FailureKind::Usage, Slug::Usage, text)
    })?;
    for (DeclaredArgument { name, .. }, value) in declaration.arguments.iter().zip(values) {
        if is_call {
            let made = task.variables.change(name);
            local(task, name, made);
        }
        match value {
            Some(value) => set_variable(core, task, name, value),
            None => unset_variable(core, task, name),
        }
    }
    if !is_call {
        let arguments = Arc::make_mut(&mut task.args);
        arguments.truncate(1);
        arguments.extend(operands);
    }
    Ok(())
}
