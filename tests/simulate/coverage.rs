//! Coverage of the language: constructs on the lines that programs execute.

use std::collections::{BTreeMap, BTreeSet};

use ftsh_machine::builtins;
use ftsh_syntax::Script;
use ftsh_syntax::ast::{
    Around, BackoffClause, Block, Command, CommandKind, Duration, Expr, ExprKind, For, ForKind,
    Index, Mode, Parameter, Pipeline, Question, Quoted, Redirect, RedirectionTarget, Simple,
    StageKind, Substitute, Try, VariableUse, Word, WordPart,
};
use ftsh_syntax::backoff::{Clauses, PolicyKind};
use ftsh_syntax::clauses::{ChannelClauses, ForAllClauses, ForAnyClauses, OutputMode, TryClauses};
use ftsh_syntax::vocabulary::{FUNCTIONS, OPERATORS, SYMBOLS, function};

/// All constructs except builtins, operators and policies, which the shell lists.
const CONSTRUCTS: &str = "
    pipeline |& structure-in-pipeline program call environment assignment unassigned return return-value shift shift-n args use export-expression
    break continue if else-if else case when case-else while for forany in-order hedge-after hedge-usual hedge-at-most forall at-most at-least keep-going finish-running once-in takes gives while-free while-load
    grouped grouped-in-order tagged
    accept keep
    list list-add ${l[@]} ${l[1]} ${l[2..]}
    parameters in with lines one-line try limit structure-catches function-catches catch finally try-for try-for-joined try-times try-every try-each try-usual try-stalled try-memory try-backoff try-while
    try-atomic try-atomic-in loop-atomic-in from-input from-input-by try-same-input try-signal try-through channel channel-at-most channel-rate channel-budget channel-breaker
    backoff-from backoff-to backoff-by backoff-jitter
    read-file write-file append-file read-variable write-variable append-variable
    with-errors errors other-descriptor duplicate here-document here-string around-block
    bare escaped single double variable pattern home
    $name $1 $# $* $@ $$ $(name) :- :+ :? ${f()} $() $(()) question
    group function()";

/// Number of executed lines for each construct.
pub(crate) struct Counts(pub BTreeMap<String, usize>);

impl Default for Counts {
    /// Returns all constructs with the count 0.
    fn default() -> Self {
        let policies = PolicyKind::ALL.iter().map(|kind| kind.name());
        let all =
            CONSTRUCTS.split_whitespace().chain(builtins::names()).chain(OPERATORS).chain(policies);
        let all = all.chain(SYMBOLS.iter().map(|(symbol, _)| *symbol));
        let all = all.chain(FUNCTIONS.iter().map(|function| function.name));
        Self(all.map(|name| (name.to_owned(), 0)).collect())
    }
}

impl Counts {
    pub(crate) fn add(&mut self, executed: &BTreeSet<String>) {
        for name in executed {
            *self.0.entry(name.clone()).or_default() += 1;
        }
    }

    /// Returns the constructs that were never executed.
    pub(crate) fn missing(&self) -> Vec<&str> {
        self.0.iter().filter(|(_, count)| **count == 0).map(|(name, _)| name.as_str()).collect()
    }
}

/// Returns the constructs of a script on the given lines.
pub(crate) fn constructs(script: &Script, lines: &BTreeSet<u32>) -> BTreeSet<String> {
    let mut walk = Walk { script, lines, line: 0, found: BTreeSet::new() };
    walk.block(&script.body);
    walk.found
}

struct Walk<'a> {
    script: &'a Script,
    lines: &'a BTreeSet<u32>,
    /// Present line.
    line: u32,
    found: BTreeSet<String>,
}

impl Walk<'_> {
    fn is(&mut self, name: &str) {
        if self.lines.contains(&self.line) && !self.found.contains(name) {
            self.found.insert(name.to_owned());
        }
    }

    fn block(&mut self, block: &Block) {
        for command in &block.commands {
            self.line = self.script.source.line(command.span.start);
            self.command(command);
        }
    }

    /// Visits a block that belongs to a construct.
    fn part(&mut self, name: &str, block: &Block) {
        if let Some(first) = block.commands.first() {
            self.line = self.script.source.line(first.span.start);
            self.is(name);
        }
        self.block(block);
    }

    fn command(&mut self, command: &Command) {
        if !command.redirects.is_empty() {
            self.is("around-block");
            self.redirects(&command.redirects);
        }
        self.is(if command.one_line { "one-line" } else { "lines" });
        match &command.kind {
            CommandKind::Comment { .. } => {}
            // A declaration is not executed.
            CommandKind::Use(_) => _ = self.found.insert("use".into()),
            CommandKind::Pipeline(pipeline) => self.pipeline(pipeline),
            CommandKind::Assign { value, local, exported, .. } => {
                self.flag("local", *local);
                self.flag("export-expression", *exported);
                self.is(if value.is_some() { "assignment" } else { "unassigned" });
                self.expressions(value);
            }
            CommandKind::If { arms, otherwise } => {
                for (index, (condition, body)) in arms.iter().enumerate() {
                    self.line = self.script.source.line(condition.span.start);
                    self.is(if index > 0 { "else-if" } else { "if" });
                    self.expression(condition);
                    self.block(body);
                }
                if let Some(otherwise) = otherwise {
                    self.part("else", otherwise);
                }
            }
            CommandKind::Case(case) => {
                self.is("case");
                self.expression(&case.value);
                for arm in &case.arms {
                    self.line = self.script.source.line(arm.span.start);
                    self.is("when");
                    self.block(&arm.body);
                }
                if let Some(otherwise) = &case.otherwise {
                    self.part("case-else", otherwise);
                }
            }
            CommandKind::While { condition: head, body }
            | CommandKind::In { directory: head, body } => {
                let is_in = matches!(command.kind, CommandKind::In { .. });
                self.is(if is_in { "in" } else { "while" });
                self.expression(head);
                self.block(body);
            }
            CommandKind::With { companion, body } => {
                self.part("with", companion);
                self.block(body);
            }
            CommandKind::For(it) => self.looping(it),
            CommandKind::Try(it) => self.attempts(it),
            CommandKind::Function { body, .. } => self.block(body),
            CommandKind::Return(value) => self.optional(["return", "return-value"], value.as_ref()),
            CommandKind::Shift(value) => self.optional(["shift", "shift-n"], value.as_ref()),
            CommandKind::Jump(jump) => self.is(jump.keyword()),
            CommandKind::Args(it) => {
                let has_options = it.arguments.iter().any(|it| !it.spellings.is_empty());
                self.is(if has_options { "args" } else { "parameters" });
            }
            CommandKind::List { words, adds, .. } => {
                self.is(if *adds { "list-add" } else { "list" });
                self.expressions(words);
            }
            CommandKind::Channel(channel) => {
                let ChannelClauses { at_most, rate, budget, breaker } = &channel.rules;
                self.is("channel");
                self.clause("channel-at-most", at_most.as_ref());
                self.clause("channel-budget", budget.as_ref());
                for (name, pair) in [("channel-rate", rate), ("channel-breaker", breaker)] {
                    let (count, time) = pair.as_ref().map(|(count, time)| (count, time)).unzip();
                    self.clause(name, count);
                    self.length(name, time);
                }
            }
        }
    }

    fn optional(&mut self, names: [&'static str; 2], value: Option<&Expr>) {
        self.is(names[usize::from(value.is_some())]);
        self.expressions(value);
    }

    fn looping(&mut self, details: &For) {
        let For { kind, list, input, body, usual, atomic_in, takes, gives, .. } = details;
        self.flag("hedge-usual", usual.is_some());
        match kind {
            ForKind::Each => self.is("for"),
            ForKind::Any(ForAnyClauses { in_order, hedge_after, at_most }) => {
                self.is(if *in_order { "in-order" } else { "forany" });
                self.length("hedge-after", hedge_after.as_ref());
                self.clause("hedge-at-most", at_most.as_ref());
            }
            ForKind::All(clauses) => {
                let ForAllClauses {
                    at_most,
                    at_least,
                    output,
                    keep_going,
                    finish_running,
                    on,
                    retry_lost,
                    while_free,
                    while_load,
                    once_in,
                } = &**clauses;
                self.is("forall");
                if let Some(on) = on {
                    self.is("on");
                    self.clause("on-options", on.options.as_ref());
                }
                self.clause("retry-lost", retry_lost.as_ref());
                self.clause("at-most", at_most.as_ref());
                self.clause("at-least", at_least.as_ref());
                match output {
                    Some(OutputMode::Grouped { in_order: false }) => self.is("grouped"),
                    Some(OutputMode::Grouped { in_order: true }) => self.is("grouped-in-order"),
                    Some(OutputMode::Tagged) => self.is("tagged"),
                    None => {}
                }
                self.flag("keep-going", *keep_going);
                self.flag("finish-running", *finish_running);
                self.clause("while-free", while_free.as_ref().map(|size| &size.amount));
                self.clause("while-load", while_load.as_ref());
                self.clause("once-in", once_in.as_ref());
            }
        }
        if let Some(input) = input {
            self.is("from-input");
            self.clause("from-input-by", input.by.as_ref());
        }
        self.flag("loop-atomic-in", !atomic_in.is_empty());
        self.flag("takes", !takes.is_empty());
        self.flag("gives", !gives.is_empty());
        self.expressions(list);
        self.expressions(atomic_in.iter().chain(takes).chain(gives));
        self.block(body);
    }

    fn attempts(&mut self, it: &Try) {
        let Try {
            is_limit,
            around,
            clauses,
            usual,
            condition,
            atomic_in,
            through,
            body,
            catch,
            finally,
        } = it;
        let TryClauses {
            time,
            times,
            every,
            each,
            stalled,
            memory,
            backoff,
            signal,
            atomic,
            same_input,
            no_leftovers,
        } = clauses;
        self.is(match around {
            Some(Around::Structure) => "structure-catches",
            Some(Around::Function) => "function-catches",
            None if *is_limit => "limit",
            None => "try",
        });
        if *atomic {
            self.is(if atomic_in.is_empty() { "try-atomic" } else { "try-atomic-in" });
        }
        self.expressions(atomic_in);
        self.flag("try-same-input", *same_input);
        self.flag("try-no-leftovers", *no_leftovers);
        if let Some(Duration::Whole(_)) = time {
            self.is("try-for-joined");
        }
        self.length("try-for", time.as_ref());
        self.length("try-every", every.as_ref());
        self.length("try-each", each.as_ref());
        self.flag("try-usual", usual.is_some());
        self.length("try-stalled", stalled.as_ref());
        self.clause("try-memory", memory.as_ref().map(|size| &size.amount));
        self.clause("try-times", times.as_ref());
        self.clause("try-while", condition.as_ref());
        self.clause("try-signal", signal.as_ref());
        self.flag("try-through", through.is_some());
        if let Some(BackoffClause { kind, clauses, .. }) = backoff {
            let Clauses { from, to, by, jitter } = clauses;
            self.is("try-backoff");
            self.is(kind.name());
            self.length("backoff-from", from.as_ref());
            self.length("backoff-to", to.as_ref());
            self.clause("backoff-by", by.as_ref());
            self.clause("backoff-jitter", jitter.as_ref());
        }
        self.block(body);
        if let Some((_, catch)) = catch {
            self.part("catch", catch);
        }
        if let Some((_, finally)) = finally {
            self.part("finally", finally);
        }
    }

    fn flag(&mut self, name: &str, is: bool) {
        if is {
            self.is(name);
        }
    }

    fn length(&mut self, name: &str, duration: Option<&Duration>) {
        match duration {
            Some(Duration::Amount { amount, .. }) => self.clause(name, Some(amount)),
            Some(Duration::Whole(word)) => {
                self.is(name);
                self.word(word);
            }
            None => {}
        }
    }

    fn clause(&mut self, name: &str, value: Option<&Expr>) {
        if let Some(value) = value {
            self.is(name);
            self.expression(value);
        }
    }

    fn pipeline(&mut self, Pipeline { stages }: &Pipeline) {
        self.flag("pipeline", stages.len() > 1);
        for stage in stages {
            self.flag("|&", stage.pipe_errors);
            match &stage.kind {
                StageKind::Simple(simple) => self.simple(simple),
                StageKind::Structure(block) => {
                    let line = self.line;
                    self.part("structure-in-pipeline", block);
                    self.line = line;
                }
            }
        }
    }

    fn simple(&mut self, Simple { assignments, modifiers, words, redirects, .. }: &Simple) {
        for modifier in modifiers {
            self.is(modifier.kind.name());
        }
        self.flag("environment", !assignments.is_empty());
        match words.first().map(|word| word.parts.as_slice()) {
            Some([WordPart::Bare(name)]) if builtins::named(name).is_some() => self.is(name),
            Some([WordPart::Bare(name)]) if self.is_function(name) => self.is("call"),
            _ => self.is("program"),
        }
        for word in words.iter().chain(assignments.iter().map(|(_, word)| word)) {
            self.word(word);
        }
        self.redirects(redirects);
    }

    fn is_function(&self, wanted: &str) -> bool {
        let is = |command: &Command| match &command.kind {
            CommandKind::Function { name, .. } => &**name == wanted,
            _ => false,
        };
        self.script.body.commands.iter().any(is)
    }

    fn redirects(&mut self, redirects: &[Redirect]) {
        for Redirect { descriptor, mode, with_errors, target, .. } in redirects {
            if *with_errors {
                self.is("with-errors");
            }
            let usual = u8::from(*mode != Mode::Read);
            if *descriptor == 2 {
                self.is("errors");
            } else if *descriptor != usual {
                self.is("other-descriptor");
            }
            let (what, word) = match target {
                RedirectionTarget::File(word) => ("file", word),
                RedirectionTarget::Variable(word) => ("variable", word),
                RedirectionTarget::Descriptor(_) => {
                    self.is("duplicate");
                    continue;
                }
                RedirectionTarget::HereDocument { body, .. } => {
                    self.is("here-document");
                    self.word(body);
                    continue;
                }
                RedirectionTarget::HereString(word) => {
                    self.is("here-string");
                    self.word(word);
                    continue;
                }
            };
            let does = match mode {
                Mode::Read => "read",
                Mode::Write => "write",
                Mode::Append => "append",
            };
            self.is(&format!("{does}-{what}"));
            self.word(word);
        }
    }

    fn word(&mut self, word: &Word) {
        self.parts(&word.parts);
        if matches!(word.parts.first(), Some(WordPart::Bare(text)) if text.starts_with('~')) {
            self.is("home");
        }
    }

    fn parts(&mut self, parts: &[WordPart]) {
        for part in parts {
            match part {
                WordPart::Bare(text) => {
                    self.is(if text.contains(['*', '?', '[']) { "pattern" } else { "bare" });
                }
                WordPart::Escaped(_) => self.is("escaped"),
                WordPart::Single(_) => self.is("single"),
                WordPart::Double(parts) => {
                    self.is("double");
                    for part in parts {
                        match part {
                            Quoted::Text(_) => {}
                            Quoted::Variable(variable) => self.variable(variable),
                            Quoted::Call(call) => self.call(call),
                        }
                    }
                }
                WordPart::Variable(variable) => self.variable(variable),
                WordPart::Call(call) => self.call(call),
            }
        }
    }

    fn call(&mut self, call: &Expr) {
        self.is(match &call.kind {
            ExprKind::Collected(_) => "$()",
            ExprKind::Group(_) => "$(())",
            _ => "${f()}",
        });
        self.expression(call);
    }

    fn variable(&mut self, VariableUse { parameter, index, substitute, .. }: &VariableUse) {
        match index {
            Some(Index::All) => self.is("${l[@]}"),
            Some(Index::Slice(from, to)) => {
                self.is("${l[2..]}");
                from.iter().chain(to).for_each(|index| self.expression(index));
            }
            Some(Index::At(index)) => {
                self.is("${l[1]}");
                self.expression(index);
            }
            None => {}
        }
        self.is("variable");
        self.is(match parameter {
            Parameter::Named(_) => "$name",
            Parameter::Positional(_) => "$1",
            Parameter::Count => "$#",
            Parameter::Star => "$*",
            Parameter::At => "$@",
            Parameter::Pid => "$$",
        });
        if let Some((substitute, parts)) = substitute {
            self.is(match substitute {
                Substitute::Default => ":-",
                Substitute::Alternative => ":+",
                Substitute::Required => ":?",
                Substitute::Command => "$(name)",
            });
            self.parts(parts);
        }
    }

    fn expressions<'a>(&mut self, all: impl IntoIterator<Item = &'a Expr>) {
        for expression in all {
            self.expression(expression);
        }
    }

    fn expression(&mut self, expression: &Expr) {
        match &expression.kind {
            ExprKind::Word(word) => self.word(word),
            ExprKind::Group(inner) => {
                self.is("group");
                self.expression(inner);
            }
            ExprKind::Call { name, args } => {
                self.is(if function(name).is_some() { name } else { "function()" });
                self.expressions(args);
            }
            ExprKind::Unary { operand, .. } => {
                self.operator(expression.span.start, operand.span.start);
                self.expression(operand);
            }
            ExprKind::Binary { left, right, .. } => {
                self.operator(left.span.end, right.span.start);
                self.expression(left);
                self.expression(right);
            }
            ExprKind::Range { from, to, step } => {
                self.is(".to.");
                self.expression(from);
                self.expression(to);
                self.clause(".step.", step.as_deref());
            }
            ExprKind::Collected(block) => self.block(block),
            ExprKind::Asked { question, pipeline } => {
                self.is(match question {
                    Question::Bare => "question",
                    _ => question.spelling(),
                });
                self.pipeline(pipeline);
            }
        }
    }

    /// Returns the text of an operator.
    fn operator(&mut self, start: usize, end: usize) {
        let script = self.script;
        self.is(script.source.text()[start..end].trim());
    }
}
