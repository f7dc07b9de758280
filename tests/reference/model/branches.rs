//! Branches, each run as if alone: their speed must not matter.

use std::collections::HashMap;
use std::rc::Rc;

use super::input::Reader;
use super::{Done, Failure, Model, Stop, Value, Written, failed};
use crate::reference::tree::{Block, ForAll, Form, Hold, Name, Word};

/// State that each branch copies.
struct Copied {
    variables: HashMap<Name, Value>,
    arguments: Vec<String>,
    locals: Vec<Vec<(Name, Option<Value>)>>,
    input: Reader,
    output: Written,
}

impl Model<'_> {
    pub(super) fn for_all(&mut self, all: &ForAll) -> Done {
        let words = match &all.input {
            Some(input) => {
                let reader = self.open(input)?;
                std::iter::from_fn(|| reader.word(None)).collect()
            }
            None => self.words(&all.words)?,
        };
        let at_most = all.at_most.as_ref().map(|most| self.positive(most)).transpose()?;
        let at_least = all.at_least.as_ref().map(|least| self.positive(least)).transpose()?;
        let total = words.len();
        let in_turn = at_most == Some(1) || total <= 1;
        let holds = all.form.is_some() || !in_turn;
        if holds {
            self.held.push(Rc::clone(&self.output));
        }
        let recorded = all.once.map(|file| self.recorded.entry(file).or_default().clone());
        let recorded = recorded.unwrap_or_default();
        let mut listed = words.clone();
        listed.sort();
        listed.dedup();
        // Repeated words share a branch, and other branches may record words at the same time.
        if all.once.is_some() && (self.level > 0 || listed.len() < words.len()) {
            self.certain.set(false);
        }
        let (mut outputs, mut good, mut failures) = (Vec::new(), vec![false; total], Vec::new());
        let mut begun = Vec::new();
        let is_decided = |successes: usize, failures: usize| match at_least {
            _ if all.keep_going => false,
            _ if all.finish_running && failures > 0 => true,
            None => failures > 0,
            Some(least) => successes >= least || total - failures < least,
        };
        for (place, word) in words.iter().enumerate() {
            if is_decided(place - failures.len(), failures.len()) {
                break;
            }
            if recorded.contains(word) {
                good[place] = true;
                continue;
            }
            let output = if holds { Rc::default() } else { Rc::clone(&self.output) };
            outputs.push(Rc::clone(&output));
            begun.push(word.clone());
            if all.takes.is_some() {
                failures.push(Failure { kind: "io", code: 1, fatal: false, words: None });
                continue;
            }
            let slot = self.slot.replace(in_turn);
            let hold = all.is_atomic.then_some(Hold::Files);
            let (result, before) = self.branch(all.name, word, output, hold, &all.body);
            self.slot = slot;
            self.go_back(before);
            match result {
                Ok(()) => {
                    good[place] = true;
                    if let Some(file) = all.once {
                        self.recorded.entry(file).or_default().push(word.clone());
                    }
                }
                Err(failure) => failures.push(failure),
            }
        }
        if holds {
            self.held.pop();
            for (output, word) in outputs.iter().zip(&begun) {
                match all.form {
                    Some(Form::Tagged) => self.print(&tagged(word, &output.borrow())),
                    _ => self.print(&output.borrow()),
                }
            }
        }
        let is_cut = !all.keep_going
            && (!failures.is_empty() || at_least.is_some_and(|least| least < total));
        let mixes = all.form != Some(Form::InOrder)
            && outputs.iter().filter(|output| !output.borrow().is_empty()).count() > 1;
        let differ = failures
            .iter()
            .any(|failure| (failure.kind, failure.code) != (failures[0].kind, failures[0].code));
        if !in_turn && (is_cut || mixes || differ) {
            self.certain.set(false);
        }
        let successes = good.iter().filter(|good| **good).count();
        let enough = match at_least {
            Some(least) => successes >= least,
            None => failures.is_empty(),
        };
        if enough {
            return Ok(());
        }
        let fatal = failures.iter().filter(|failure| failure.fatal).count();
        let of = |wanted: bool| {
            let words = words.iter().zip(&good).filter(|(_, good)| **good == wanted);
            words.map(|(word, _)| word.clone()).collect::<Vec<_>>()
        };
        let needed = at_least.unwrap_or(total);
        let counts = all.keep_going || all.finish_running || at_least.is_some();
        let first = failures.into_iter().next();
        Err(Stop::Failed(Failure {
            kind: first.as_ref().map_or("failure", |first| first.kind),
            code: first.as_ref().map_or(1, |first| first.code),
            fatal: match first {
                Some(first) if !counts => first.fatal,
                _ => fatal > 0 && total - fatal < needed,
            },
            words: Some([of(false), of(true)]),
        }))
    }

    /// Runs a hedged `forany` word by word. No word takes long enough for the next one to begin
    /// beside it.
    pub(super) fn hedge(
        &mut self,
        name: Name,
        words: &[Word],
        at_most: Option<&Word>,
        body: &Block,
    ) -> Done {
        let words = self.words(words)?;
        at_most.map(|most| self.positive(most)).transpose()?;
        let mut last = Err(failed("expression", 1));
        let mut failed_word = None;
        self.held.push(Rc::clone(&self.output));
        for word in &words {
            let slot = self.slot.take();
            let (result, before) = self.branch(name, word, Rc::default(), None, body);
            self.slot = slot;
            match result {
                Ok(()) => {
                    self.win(before);
                    (last, failed_word) = (Ok(()), None);
                    break;
                }
                Err(failure) => {
                    self.go_back(before);
                    failed_word = Some(Value::Text(word.as_str().into()));
                    let is_over = failure.fatal;
                    last = Err(Stop::Failed(failure));
                    if is_over {
                        break;
                    }
                }
            }
        }
        self.held.pop();
        if let Some(word) = failed_word {
            self.variables.insert(name, word);
        }
        last
    }

    /// Runs a branch. Leaves the state of the branch in place, and returns the state before.
    fn branch(
        &mut self,
        name: Name,
        word: &str,
        output: Written,
        hold: Option<Hold>,
        body: &Block,
    ) -> (Result<(), Failure>, Copied) {
        let before = Copied {
            variables: self.variables.clone(),
            arguments: self.arguments.clone(),
            locals: self.locals.clone(),
            input: std::mem::take(&mut self.input),
            output: std::mem::replace(&mut self.output, output),
        };
        self.level += 1;
        self.variables.insert(name, Value::Text(word.into()));
        let result = ending(self.attempt(hold, body));
        self.level -= 1;
        (result, before)
    }

    /// Drops the state of a branch.
    fn go_back(&mut self, before: Copied) {
        self.variables = before.variables;
        self.arguments = before.arguments;
        self.locals = before.locals;
        self.input = before.input;
        self.output = before.output;
    }

    /// Keeps the state of a branch.
    fn win(&mut self, before: Copied) {
        self.own_all();
        self.input = before.input;
        let printed = std::mem::replace(&mut self.output, before.output);
        self.print(&printed.borrow());
    }

    /// Assigns the output of an ended task to the current one.
    pub(super) fn own_all(&mut self) {
        for value in self.variables.values_mut() {
            if let Value::Written(_, level) = value {
                *level = self.level.min(*level);
            }
        }
    }

    /// Returns a number in a clause.
    fn positive(&self, word: &Word) -> Done<usize> {
        let number = super::numbers::whole(&self.joined(word)?)?;
        match usize::try_from(number) {
            Ok(number @ 1..) => Ok(number),
            _ => Err(failed("expression", 1)),
        }
    }

    /// Marks variables that branches write to later as unknown.
    pub(super) fn look_at(&self, written: &Written) {
        if self.held.iter().any(|held| Rc::ptr_eq(held, written)) {
            self.certain.set(false);
        }
    }
}

/// Returns the output of a branch with each line after the word, in one line, and a tab.
fn tagged(word: &str, output: &str) -> String {
    let word = &word.replace('\n', "\\n");
    output.lines().map(|line| [word, "\t", line, "\n"].concat()).collect()
}

/// Returns the end of a branch or a stage.
pub(super) fn ending(done: Done) -> Result<(), Failure> {
    let done = match done {
        Err(Stop::Return(value)) => Err(Stop::Exit(status(value.as_deref()))),
        done => done,
    };
    match done {
        Ok(()) | Err(Stop::Exit(0) | Stop::Return(_) | Stop::Jump(_)) => Ok(()),
        Err(Stop::Exit(code)) => {
            Err(Failure { kind: "exit", code: code.into(), fatal: false, words: None })
        }
        Err(Stop::Failed(failure)) => Err(failure),
    }
}

/// Returns the status of a script or a branch that ends by `return` outside a function.
pub(super) fn status(value: Option<&str>) -> u8 {
    if value == Some("false") {
        return 1;
    }
    match value.map(super::numbers::whole) {
        Some(Ok(code)) if code != 0 => code.clamp(1, 255) as u8,
        _ => 0,
    }
}
