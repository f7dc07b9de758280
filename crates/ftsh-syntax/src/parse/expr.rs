//! Builder of expressions: operators and operands in a row become a tree by precedence.

use smallvec::smallvec;

use super::builder::Builder;
use super::operator::{self, Precedence};
use super::{MAX_EXPRESSION_DEPTH, Pair, Pairs, Result, Rule, bashisms, literal, questions};
use crate::ast::{
    BinaryOperator, Expr, ExprKind, Parameter, Pipeline, Question, Simple, Stage, StageKind,
    UnaryOperator, VariableUse, Word, WordPart,
};
use crate::error::SyntaxError;
use crate::hint::hint;
use crate::nearest::nearest;
use crate::slug::Slug;
use crate::span::Span;
use crate::vocabulary::{FUNCTIONS, function};

/// Operator before its right operand has been read.
struct PendingOperator {
    operator: Operator,
    precedence: Precedence,
    span: Span,
}

#[derive(Clone, Copy)]
enum Operator {
    Prefix { operator: UnaryOperator, is_symbol: bool },
    Infix { operator: BinaryOperator, is_symbol: bool },
    Range { step: bool },
}

/// Expression with the depth of its tree.
struct Operand {
    expr: Expr,
    depth: usize,
}

impl Builder<'_> {
    /// Builds an `expression`, a `calculation`, a `condition`, or another pair whose inner pairs are
    /// operands and operators.
    pub(super) fn expr(&mut self, pair: Pair) -> Result<Expr> {
        Ok(self.measured(pair)?.expr)
    }

    fn measured(&mut self, pair: Pair) -> Result<Operand> {
        let is_condition = matches!(pair.as_rule(), Rule::condition | Rule::decision);
        self.operations(pair.into_inner(), is_condition)
    }

    /// Builds the `decision` of a head, in which bare words are commands.
    pub(super) fn decision(&mut self, pair: Pair) -> Result<Expr> {
        let mut expr = self.expr(pair)?;
        self.ask(&mut expr, None)?;
        Ok(expr)
    }

    /// Turns the bare words that a condition consists of into commands, and checks the condition.
    /// `dotted` is the operator around it, if its operands are no commands.
    fn ask(&self, expr: &mut Expr, dotted: Option<&'static str>) -> Result<()> {
        match &mut expr.kind {
            ExprKind::Group(inner) => self.ask(inner, dotted),
            ExprKind::Unary { operator: operator @ UnaryOperator::Not, is_symbol, operand } => {
                self.ask(operand, dotted.or((!*is_symbol).then_some(operator.spelling())))
            }
            ExprKind::Binary {
                operator: operator @ (BinaryOperator::And | BinaryOperator::Or),
                is_symbol,
                left,
                right,
            } => {
                let dotted = dotted.or((!*is_symbol).then_some(operator.spelling()));
                self.ask(left, dotted)?;
                if *operator == BinaryOperator::Or {
                    questions::check_read(left, self.text)?;
                }
                self.ask(right, dotted)
            }
            ExprKind::Word(word) if questions::is_command(word) => {
                questions::check_word(word, self.text)?;
                questions::check_name(word)?;
                if let Some(operator) = dotted {
                    return Err(questions::joined(operator, expr.span));
                }
                let pipeline = single(word.clone());
                if let Some(simple) = pipeline.stages[0].simple() {
                    bashisms::command(simple, &self.functions, self.text)?;
                }
                let pipeline = Box::new(pipeline);
                expr.kind = ExprKind::Asked { question: Question::Bare, pipeline };
                Ok(())
            }
            ExprKind::Asked { question: Question::Bare, .. } => match dotted {
                Some(operator) => Err(questions::joined(operator, expr.span)),
                None => Ok(()),
            },
            _ => questions::check(expr, self.text),
        }
    }

    /// Builds a `sum_group`, whose operands are numbers.
    pub(super) fn sum(&mut self, pair: Pair) -> Result<Expr> {
        let mut expr = self.primary(pair)?.expr;
        if let ExprKind::Group(inner) = &mut expr.kind
            && !matches!(inner.kind, ExprKind::Binary { .. })
        {
            // Addition takes no text, and writes a number in its shortest form.
            let span = inner.span;
            let zero = Expr { span, kind: ExprKind::Word(bare("0", span)) };
            let left = Box::new(Expr {
                span,
                kind: std::mem::replace(&mut inner.kind, zero.kind.clone()),
            });
            let (operator, is_symbol) = (BinaryOperator::Add, true);
            inner.kind = ExprKind::Binary { operator, is_symbol, left, right: Box::new(zero) };
        }
        Ok(expr)
    }

    /// Builds the tree by Dijkstra's shunting-yard algorithm, which needs no recursion.
    pub(super) fn operations_of(&mut self, pairs: Pairs) -> Result<Expr> {
        Ok(self.operations(pairs, false)?.expr)
    }

    fn operations(&mut self, pairs: Pairs, is_condition: bool) -> Result<Operand> {
        let mut operands = Vec::new();
        let mut pending = Vec::new();
        for pair in pairs {
            let span = self.span(&pair);
            let rule = pair.as_rule();
            let is_symbol = !pair.as_str().starts_with('.');
            if let Some((operator, precedence)) = operator::prefix(rule) {
                let operator = Operator::Prefix { operator, is_symbol };
                pending.push(PendingOperator { operator, precedence, span });
            } else if let Some((operator, precedence)) = operator::infix(rule) {
                reduce(&mut pending, &mut operands, precedence, span)?;
                pending.push(PendingOperator {
                    operator: Operator::Infix { operator, is_symbol },
                    precedence,
                    span,
                });
            } else if rule == Rule::range {
                let precedence = Precedence::Range;
                reduce(&mut pending, &mut operands, precedence, span)?;
                let operator = Operator::Range { step: false };
                pending.push(PendingOperator { operator, precedence, span });
            } else if rule == Rule::step {
                step(&mut pending, &mut operands, span)?;
            } else if is_condition && rule == Rule::call && self.negates(&pair) {
                let operator = Operator::Prefix { operator: UnaryOperator::Not, is_symbol };
                let span = Span::new(span.start, span.start + 1);
                pending.push(PendingOperator { operator, precedence: Precedence::Negation, span });
                operands.push(self.negated(pair)?);
            } else {
                operands.push(self.primary(pair)?);
            }
        }
        while let Some(operator) = pending.pop() {
            apply(&operator, &mut operands)?;
        }
        Ok(operands.pop().expect("the grammar begins every expression with an operand"))
    }

    /// Returns true if a call is `!(x)`, and the script has no function `!`.
    fn negates(&self, call: &Pair) -> bool {
        if !call.as_str().starts_with('!') || self.functions.contains("!") {
            return false;
        }
        let mut inner = call.clone().into_inner();
        inner.next().is_some_and(|name| name.as_str() == "!")
            && inner.filter(|inner| inner.as_rule() == Rule::condition).count() == 1
    }

    /// Builds the parentheses of `!(x)`.
    fn negated(&mut self, call: Pair) -> Result<Operand> {
        let span = self.span(&call);
        let span = Span::new(span.start + 1, span.end);
        let (kind, depth) = self.nested(span, |this| {
            let inner = call.into_inner().find(|inner| inner.as_rule() == Rule::condition);
            let Operand { expr, depth } = this.measured(inner.expect("a call with one value"))?;
            Ok((ExprKind::Group(Box::new(expr)), depth))
        })?;
        Ok(Operand { expr: Expr { span, kind }, depth: depth + 1 })
    }

    fn primary(&mut self, pair: Pair) -> Result<Operand> {
        let span = self.span(&pair);
        let (kind, depth) = match pair.as_rule() {
            Rule::group | Rule::choice | Rule::sum_group => self.nested(span, |this| {
                let inner = pair.into_inner().next().expect("a group holds an expression");
                let Operand { expr, depth } = this.measured(inner)?;
                Ok((ExprKind::Group(Box::new(expr)), depth))
            })?,
            Rule::call => self.nested(span, |this| {
                let mut inner = pair.into_inner();
                let name = inner.next().expect("a call begins with a name");
                let name = Self::name(&name);
                let mut args = Vec::new();
                let mut depth = 0;
                for argument in inner.filter(|pair| pair.as_rule() == Rule::condition) {
                    let argument = this.measured(argument)?;
                    depth = depth.max(argument.depth);
                    args.push(argument.expr);
                }
                this.check_call(span, &name, &args)?;
                Ok((ExprKind::Call { name, args }, depth))
            })?,
            Rule::asked => self.nested(span, |this| {
                let text = pair.as_str();
                let is_it = |question: &Question| text.starts_with(question.spelling());
                let question = Question::ALL.into_iter().find(is_it);
                let question = question.expect("the grammar begins with an operator");
                let pipeline = pair
                    .into_inner()
                    .find(|pair| pair.as_rule() == Rule::inner_pipeline)
                    .expect("a question holds a command");
                let pipeline = Box::new(this.pipeline(pipeline)?);
                Ok((ExprKind::Asked { question, pipeline }, 0))
            })?,
            Rule::asks => self.nested(span, |this| {
                questions::check_text(this.text, span)?;
                let pipeline = pair.into_inner().next().expect("a question holds a command");
                let pipeline = Box::new(this.pipeline(pipeline)?);
                questions::check_pipeline(&pipeline, this.text)?;
                Ok((ExprKind::Asked { question: Question::Bare, pipeline }, 0))
            })?,
            Rule::sum_call => {
                return self.primary(pair.into_inner().next().expect("a call"));
            }
            Rule::sum_negative => self.nested(span, |this| {
                let operand = pair.into_inner().next().expect("a sign stands before an operand");
                let Operand { expr, depth } = this.primary(operand)?;
                let zero = Box::new(Expr { span, kind: ExprKind::Word(bare("0", span)) });
                let (operator, is_symbol) = (BinaryOperator::Sub, true);
                let kind =
                    ExprKind::Binary { operator, is_symbol, left: zero, right: Box::new(expr) };
                Ok((ExprKind::Group(Box::new(Expr { span, kind })), depth + 1))
            })?,
            Rule::sum_number => (ExprKind::Word(bare(pair.as_str(), span)), 0),
            Rule::sum_name => {
                let parameter = Parameter::Named(Self::name(&pair));
                let variable = VariableUse { span, parameter, index: None, substitute: None };
                let parts = smallvec![WordPart::Variable(Box::new(variable))];
                (ExprKind::Word(Word { span, parts }), 0)
            }
            Rule::double_variable => {
                let parts = smallvec![self.part(pair)?];
                (ExprKind::Word(Word { span, parts }), 0)
            }
            _ => {
                let word = pair.into_inner().next().expect("a value is one word");
                (ExprKind::Word(self.word(word)?), 0)
            }
        };
        Ok(Operand { expr: Expr { span, kind }, depth: depth + 1 })
    }
}

impl Builder<'_> {
    /// Refuses a call of a function that exists nowhere, and an impossible call of a function of
    /// the language. A sourced file may define a function of the same name.
    fn check_call(&self, span: Span, name: &str, args: &[Expr]) -> Result<()> {
        if self.functions.contains(name) {
            return Ok(());
        }
        let Some(function) = function(name) else {
            return if self.is_open {
                Ok(())
            } else {
                Err(self.unknown_function(span, name).into())
            };
        };
        if !function.takes(args.len()) {
            if self.text.contains("source") {
                return Ok(());
            }
            let error =
                SyntaxError::new(Slug::ArgumentCount, span, function.wrong_count(args.len()));
            return Err(error.hint(hint!("{}", function.help)).into());
        }
        match function.parameters.iter().position(|parameter| *parameter == "regex") {
            Some(at) => literal::check_pattern(&args[at]),
            None => Ok(()),
        }
    }
}

impl Builder<'_> {
    fn unknown_function(&self, call: Span, name: &str) -> SyntaxError {
        let span = Span::new(call.start, call.start + name.len());
        let message = format!("there is no function `{name}`");
        let error = SyntaxError::new(Slug::UnknownFunction, span, message);
        let foreign = match name {
            "len" | "strlen" => Some(hint!("did you mean `length`?")),
            "size" => Some(hint!("did you mean `count`?")),
            "sort" => Some(hint!("a program sorts lines: `lines($(sort file))`")),
            "contains" => Some(hint!("write `$a .contains. b`")),
            "range" | "seq" => Some(hint!("a range has an operator: `1 .to. 3`")),
            "exists" | "isfile" | "isdir" => {
                Some(hint!("tests of files are operators: `.exists. $f`, `.isfile. $f`"))
            }
            "defined" | "isset" => Some(hint!("compare with a default: `${{x:-}} != \"\"`")),
            _ => None,
        };
        if let Some(hint) = foreign {
            return error.hint(hint);
        }
        let inside = self.text[span.end..call.end].trim_start();
        if inside.len() < call.end - span.end {
            let words = inside.trim_matches(['(', ')']).trim();
            return error.hint(hint!("a command has no parentheses: `{name} {words}`"));
        }
        let known = FUNCTIONS.iter().map(|function| function.name);
        match nearest(name, known.chain(self.functions.iter().copied())) {
            Some(meant) => error.hint(hint!("did you mean `{meant}`?")),
            None => error,
        }
    }
}

fn bare(text: &str, span: Span) -> Word {
    Word { span, parts: smallvec![WordPart::Bare(text.to_owned())] }
}

/// Returns a command of one word.
pub(super) fn single(word: Word) -> Pipeline {
    let simple = Simple {
        span: word.span,
        assignments: Vec::new(),
        modifiers: Vec::new(),
        words: vec![word],
        redirects: Vec::new(),
    };
    Pipeline { stages: vec![Stage { kind: StageKind::Simple(simple), pipe_errors: false }] }
}

/// Applies the pending operators of a higher precedence than the operator at `span`.
fn reduce(
    pending: &mut Vec<PendingOperator>,
    operands: &mut Vec<Operand>,
    precedence: Precedence,
    span: Span,
) -> Result<()> {
    while let Some(last) = pending.pop_if(|last| {
        last.precedence > precedence
            || last.precedence == precedence && !precedence.is_non_associative()
    }) {
        apply(&last, operands)?;
    }
    match pending.last() {
        Some(last) if last.precedence == precedence => {
            Err(not_associative(last.span, span, precedence).into())
        }
        _ => Ok(()),
    }
}

/// Adds `.step.` to the `.to.` before it.
fn step(pending: &mut Vec<PendingOperator>, operands: &mut Vec<Operand>, span: Span) -> Result<()> {
    while let Some(last) = pending.pop_if(|last| last.precedence > Precedence::Range) {
        apply(&last, operands)?;
    }
    match pending.last_mut().map(|last| &mut last.operator) {
        Some(Operator::Range { step }) if !*step => {
            *step = true;
            Ok(())
        }
        Some(_) => {
            Err(Box::new(SyntaxError::new(Slug::RangeStep, span, "a range has only one `.step.`")))
        }
        None => Err(Box::new(
            SyntaxError::new(Slug::RangeStep, span, "`.step.` without `.to.`")
                .hint(hint!("write `1 .to. 100 .step. 5`")),
        )),
    }
}

/// Builds the tree of an operator and its operands.
fn apply(pending: &PendingOperator, operands: &mut Vec<Operand>) -> Result<()> {
    let mut pop = || operands.pop().expect("the grammar gives every operator its operands");
    let right = pop();
    let mut depth = right.depth;
    let mut span = right.expr.span.to(pending.span);
    let right = Box::new(right.expr);
    let mut left = || {
        let left = pop();
        depth = depth.max(left.depth);
        span = span.to(left.expr.span);
        Box::new(left.expr)
    };
    let kind = match pending.operator {
        Operator::Prefix { operator, is_symbol } => {
            ExprKind::Unary { operator, is_symbol, operand: right }
        }
        Operator::Infix { operator, is_symbol } => {
            if operator == BinaryOperator::Matches {
                literal::check_pattern(&right)?;
            }
            let left = left();
            if matches!(operator, BinaryOperator::Eq | BinaryOperator::Ne) {
                literal::check_kinds(&left, &right)?;
            }
            ExprKind::Binary { operator, is_symbol, left, right }
        }
        Operator::Range { step: false } => ExprKind::Range { from: left(), to: right, step: None },
        Operator::Range { step: true } => {
            let to = left();
            ExprKind::Range { from: left(), to, step: Some(right) }
        }
    };
    let expr = Expr { span, kind };
    if depth == MAX_EXPRESSION_DEPTH {
        let message =
            format!("an expression has at most {MAX_EXPRESSION_DEPTH} operators in a row");
        let error = SyntaxError::new(Slug::TooLarge, pending.span, message)
            .hint(hint!("assign a part of the expression to a variable first"));
        return Err(Box::new(error));
    }
    operands.push(Operand { expr, depth: depth + 1 });
    Ok(())
}

fn not_associative(first: Span, second: Span, precedence: Precedence) -> SyntaxError {
    let (slug, message, hint) = if precedence == Precedence::Range {
        (
            Slug::RangeStep,
            "a range can't begin or end with a range",
            hint!("use parentheses around the inner range"),
        )
    } else {
        (
            Slug::ChainedComparison,
            "comparisons don't chain",
            hint!("use parentheses, or join two comparisons with `&&`: `1 < $x && $x < 9`"),
        )
    };
    SyntaxError::new(slug, second, message)
        .label("needs parentheses")
        .related(first, "the other one is here")
        .hint(hint)
}
