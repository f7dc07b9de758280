//! Commands, one after the other.

use std::cell::RefCell;
use std::rc::Rc;

use super::loops::range;
use super::numbers::{compute, truth, whole};
use super::{Done, Failure, Model, Stop, TakenBack, Value, failed};
use crate::reference::text;
use crate::reference::tree::{Command, Expr, Hold, Name, Pattern, Piece, Word};

impl Model<'_> {
    pub(super) fn block(&mut self, block: &[Command]) -> Done {
        block.iter().try_for_each(|command| self.command(command))
    }

    fn command(&mut self, command: &Command) -> Done {
        self.patience = self.patience.saturating_sub(1);
        if self.holds_much() {
            self.patience = 0;
        }
        if self.patience == 0 {
            return Err(Stop::Exit(0));
        }
        match command {
            Command::Echo(words) | Command::Pipe(words) => {
                let line = self.words(words)?.join(" ");
                self.print(&line);
                self.print("\n");
                Ok(())
            }
            Command::Print(text) => {
                self.print(text);
                Ok(())
            }
            Command::Status(0) => Ok(()),
            Command::Status(code) => Err(failed("exit", i32::from(*code))),
            Command::Keep(inside) => self.command(inside),
            Command::Missing => Err(failed("notfound", 127)),
            Command::Accept(accepted, inside) => self.accept(*accepted, inside),
            // cat refuses to copy a file to its own end.
            Command::Show(name) if self.is_output(name) => Err(failed("exit", 1)),
            Command::Show(name) => {
                self.print(&self.content(name)?);
                Ok(())
            }
            Command::Assign(name, expr) | Command::Export(name, expr) => self.assign(name, expr),
            Command::Local(name, expr) => {
                let before = self.variables.get(name).cloned();
                match expr {
                    Some(expr) => self.assign(name, expr)?,
                    None => _ = self.variables.remove(name),
                }
                let locals = self.locals.last_mut().expect("it is in a function");
                locals.push((name, before));
                Ok(())
            }
            Command::Unset(name) => {
                self.variables.remove(name);
                Ok(())
            }
            Command::List(name, words, is_new) => {
                let words = self.words(words)?;
                match self.variables.get_mut(name) {
                    Some(Value::List(elements)) if !is_new => elements.extend(words),
                    Some(_) if !is_new => return Err(failed("expression", 1)),
                    _ => _ = self.variables.insert(name, Value::List(words)),
                }
                Ok(())
            }
            Command::Read(names, input) => self.read(names, input),
            Command::If(condition, yes, no) => {
                let taken = if truth(&self.expr(condition)?)? { yes } else { no };
                self.block(taken)
            }
            Command::Case(value, arms, otherwise) => {
                let value = self.expr(value)?;
                for (patterns, body) in arms {
                    for pattern in patterns {
                        if self.is_match(pattern, &value)? {
                            return self.block(body);
                        }
                    }
                }
                otherwise.as_ref().map_or(Ok(()), |block| self.block(block))
            }
            Command::Count(name, end, body) => {
                self.variables.insert(name, Value::Text("0".into()));
                while compute(".lt.", &self.named(name)?, &end.to_string())? == "true" {
                    let next = compute(".add.", &self.named(name)?, "1")?;
                    self.variables.insert(name, Value::Text(next));
                    if !self.goes_on(body)? {
                        break;
                    }
                }
                Ok(())
            }
            Command::For(name, words, body) => {
                let words = self.words(words)?;
                self.each(name, words, body)
            }
            Command::Incoming(name, by, from, body) => self.incoming(name, *by, from, body),
            Command::Values(name, value, body) => {
                let text = self.expr(value)?;
                self.each(name, self.json_values(&text)?, body)
            }
            Command::Lines(name, value, body) => {
                let text = self.expr(value)?;
                self.each(name, text.split_terminator('\n').map(Into::into), body)
            }
            Command::Split(name, value, separator, body) => {
                let text = self.expr(value)?;
                let pieces = text.split(separator).filter(|_| !text.is_empty());
                self.each(name, pieces.map(Into::into), body)
            }
            Command::Range(name, ends, step, body) => {
                let numbers = range(*ends, step.unwrap_or(1)).ok_or(failed("expression", 1))?;
                self.each(name, numbers, body)
            }
            Command::Reading(names, from, body) => self.reading(names, from, body),
            Command::Write(text) => {
                // Other branches may write at the same time.
                if self.level > 0 {
                    self.certain.set(false);
                }
                self.file += &format!("{text}\n");
                Ok(())
            }
            Command::Written => {
                self.print(&self.file.clone());
                Ok(())
            }
            Command::ForAny(name, words, is_atomic, body) => {
                let back = self.taken_back.take();
                let words = self.words(words)?;
                self.for_any(name, words, is_atomic.then_some(Hold::Files), back, body)
            }
            Command::Hedge(name, words, at_most, body) => {
                self.hedge(name, words, at_most.as_ref(), body)
            }
            Command::ForAll(all) => self.for_all(all),
            Command::Piped(block) => self.piped(block),
            Command::Fed(words, names, body) => self.fed(words, names, body),
            Command::Handled(inside, catch, finally) => {
                self.handled(inside, catch.as_ref(), finally.as_ref())
            }
            Command::In(body) => {
                let before = std::mem::replace(&mut self.is_inside, true);
                let result = self.block(body);
                self.is_inside = before;
                result
            }
            Command::With(body) => self.block(body),
            Command::Line(name, words, printed) => {
                let body = vec![Command::Echo(printed.clone())];
                self.limit(&vec![Command::For(name, words.clone(), body)], None)
            }
            Command::Where => {
                self.print(&format!("{}\n", self.is_inside));
                Ok(())
            }
            Command::Limit(body, catch) => self.limit(body, catch.as_ref()),
            Command::Try(it) => self.try_(it),
            Command::Capture(inside, name, append) => self.capture(inside, name, *append),
            Command::Call(function, words) => {
                let arguments = self.words(words)?;
                let value = self.call(*function, arguments)?;
                if value.as_deref() == Some("false") {
                    return Err(failed("exit", 1));
                }
                match value.as_deref().map(whole) {
                    // An integer other than 0 is the code of a failure.
                    Some(Ok(code)) if code != 0 => {
                        let code = code.clamp(i32::MIN.into(), i32::MAX.into());
                        Err(failed("exit", code as i32))
                    }
                    _ => Ok(()),
                }
            }
            Command::Return(value) => {
                let value = value.as_ref().map(|value| self.expr(value)).transpose()?;
                Err(Stop::Return(value))
            }
            Command::Args([first, second, rest], default) => {
                let mut operands = self.arguments.clone().into_iter();
                let values = [
                    operands.next().unwrap_or_default(),
                    operands.next().unwrap_or((*default).to_owned()),
                ];
                for (name, value) in [first, second].into_iter().zip(values) {
                    self.variables.insert(name, Value::Text(value));
                }
                self.variables.insert(rest, Value::List(operands.collect()));
                Ok(())
            }
            Command::Parameters(required, optional, rest) => {
                let mut words = self.arguments.clone().into_iter();
                let mut values = Vec::new();
                for name in required {
                    let word = words.next().ok_or_else(|| failed("usage", 2))?;
                    values.push((*name, Value::Text(word)));
                }
                let optional = optional.iter();
                values
                    .extend(optional.map(|name| {
                        (*name, Value::Text(words.next().unwrap_or("d w".to_owned())))
                    }));
                let rest = rest.iter();
                values.extend(rest.map(|name| (*name, Value::List(words.by_ref().collect()))));
                if words.next().is_some() {
                    return Err(failed("usage", 2));
                }
                for (name, value) in values {
                    let before = self.variables.insert(name, value);
                    self.locals.last_mut().expect("it is in a function").push((name, before));
                }
                Ok(())
            }
            Command::Shift if self.arguments.is_empty() => Err(failed("expression", 1)),
            Command::Shift => {
                self.arguments.remove(0);
                Ok(())
            }
            Command::Failure(words) => {
                let passed_on = self.passed_on().filter(|_| words.is_empty());
                self.words(words)?;
                Err(passed_on.unwrap_or(failed("failure", 1)))
            }
            Command::Jump(over) => Err(Stop::Jump(*over)),
            Command::Giveup => {
                let (kind, code) = ("giveup", 1);
                Err(Stop::Failed(Failure { kind, code, fatal: true, words: None }))
            }
            Command::Exit(code) => Err(Stop::Exit(*code)),
        }
    }

    fn is_match(&self, pattern: &Pattern, value: &str) -> Done<bool> {
        Ok(match pattern {
            // Each argument, and each element, is a pattern of its own.
            Pattern::Word(word)
                if word.iter().any(|it| matches!(it, Piece::Arguments)) || self.is_list(word) =>
            {
                self.split(word)?.iter().any(|word| word == value)
            }
            Pattern::Word(word) => self.joined(word)? == value,
            Pattern::Begins(name) => value.starts_with(&self.named(name)?),
            Pattern::Ends(text) => value.ends_with(text),
            Pattern::Digit => {
                let mut chars = value.chars();
                chars.next().is_some_and(|first| first.is_ascii_digit())
                    && chars.next().is_some()
                    && chars.next().is_none()
            }
        })
    }

    fn assign(&mut self, name: Name, expr: &Expr) -> Done {
        let text = self.expr(expr)?;
        self.variables.insert(name, Value::Text(text));
        Ok(())
    }

    fn capture(&mut self, inside: &Command, name: Name, append: bool) -> Done {
        // A stage is a task of its own.
        let shares = append && !matches!(inside, Command::Pipe(_));
        let written = match self.variables.get(name) {
            Some(Value::Written(written, level)) if shares && *level == self.level => {
                Rc::clone(written)
            }
            // State shared with the surrounding task is copied.
            Some(Value::Written(..) | Value::List(_)) if append => {
                Rc::new(RefCell::new(self.content(name)?))
            }
            Some(Value::Text(text)) if append => Rc::new(RefCell::new(text.clone())),
            _ => Rc::default(),
        };
        // The words of a single command are expanded before its redirections are opened. In a
        // pipeline, a failing expansion does not keep the other stage from starting.
        let ready = self.expanded(inside);
        if ready.is_ok() || matches!(inside, Command::Pipe(_)) {
            self.variables.insert(name, Value::Written(Rc::clone(&written), self.level));
        }
        let ready = ready?;
        let before = std::mem::replace(&mut self.output, written);
        let repeats = match inside {
            Command::Try(it) => it.times > 1 && matches!(it.hold, None | Some(Hold::Input)),
            Command::ForAny(_, _, is_atomic, _) => !is_atomic,
            Command::Handled(inside, ..) => matches!(**inside, Command::ForAny(_, _, false, _)),
            _ => false,
        };
        // A command with `keep` prints after its attempt.
        let text = text::command(inside);
        let mut keeps = text.split("keep ").skip(1).filter(|rest| !rest.starts_with("going"));
        let keeps = keeps.next().is_some();
        self.taken_back = match append {
            _ if !repeats => None,
            false => Some(TakenBack::Cut),
            true => (!keeps).then_some(TakenBack::Held),
        };
        let result = self.command(&ready);
        self.output = before;
        result
    }

    /// Runs a command with expanded words.
    fn expanded(&self, command: &Command) -> Done<Command> {
        let literal = |words: &[Word]| -> Done<Vec<Word>> {
            let words = self.words(words)?.into_iter();
            Ok(words.map(|word| vec![Piece::Text(word.leak())]).collect())
        };
        Ok(match command {
            Command::Echo(words) => Command::Echo(literal(words)?),
            Command::Pipe(words) => Command::Pipe(literal(words)?),
            Command::Show(name) => Command::Print(self.content(name)?),
            Command::Failure(words) => Command::Failure(literal(words)?),
            Command::Call(function, words) => Command::Call(*function, literal(words)?),
            block => block.clone(),
        })
    }

    pub(super) fn call(&mut self, function: usize, arguments: Vec<String>) -> Done<Option<String>> {
        let before = std::mem::replace(&mut self.arguments, arguments);
        self.locals.push(Vec::new());
        let result = self.block(&self.functions[function]);
        self.arguments = before;
        for (name, before) in self.locals.pop().unwrap_or_default().into_iter().rev() {
            match before {
                Some(value) => self.variables.insert(name, value),
                None => self.variables.remove(name),
            };
        }
        match result {
            Err(Stop::Return(value)) => Ok(value),
            result => result.map(|()| None),
        }
    }

    /// Returns true if a command succeeds, as an answer.
    pub(super) fn succeeds(&mut self, command: &Command) -> Done<bool> {
        match self.command(command) {
            Err(Stop::Failed(failure))
                if !failure.fatal && matches!(failure.kind, "exit" | "failure") =>
            {
                Ok(false)
            }
            result => result.map(|()| true),
        }
    }

    /// Runs a command that succeeds also with a status, and prints the status.
    fn accept(&mut self, accepted: u8, command: &Command) -> Done {
        let result = self.command(command);
        let status = match &result {
            Ok(()) => 0,
            Err(Stop::Failed(failure)) if !failure.fatal && failure.kind == "exit" => failure.code,
            Err(_) => return result,
        };
        self.variables.insert("status", Value::Text(status.to_string()));
        if status != 0 && status != i32::from(accepted) {
            return result;
        }
        self.print(&format!("status {status}\n"));
        Ok(())
    }

    pub(super) fn print(&self, text: &str) {
        self.output.borrow_mut().push_str(text);
    }

    /// True if texts have grown too long, for example by doubling, for the next ones to fit into
    /// memory.
    fn holds_much(&self) -> bool {
        const MUCH: usize = 100_000;
        let values = self.variables.values().map(|value| match value {
            Value::Text(text) => text.len(),
            Value::List(elements) => elements.iter().map(|element| element.len() + 1).sum(),
            Value::Written(written, _) => written.borrow().len(),
        });
        let arguments = self.arguments.iter().map(String::len);
        values.chain(arguments).sum::<usize>() + self.output.borrow().len() > MUCH
    }
}
