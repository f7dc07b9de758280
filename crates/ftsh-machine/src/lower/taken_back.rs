//! Standard output of failed attempts, which is taken back when another attempt follows.

use std::borrow::Cow;

use super::script::{Lower, TakenBack};
use ftsh_syntax::ast::{
    Around, Block, Command, CommandKind, Expr, ForKind, Mode, ModifierKind, Redirect,
    RedirectionTarget, Simple, StageKind,
};
use ftsh_syntax::clauses::TryClauses;
use ftsh_syntax::parse::literal;

impl Lower<'_> {
    /// Returns the way in which a `try` or a `forany` takes back output of its failed attempts, for
    /// an output of its own. Files that get both streams are records, and keep everything.
    pub(super) fn taken_back_of(&self, command: &Command) -> Option<TakenBack> {
        // A loop with a `catch` is the only command of an attempt, which has the redirections.
        let kind = match &command.kind {
            CommandKind::Try(details) if details.around == Some(Around::Structure) => {
                details.body.commands.first().map_or(&command.kind, |inside| &inside.kind)
            }
            kind => kind,
        };
        let repeats = match kind {
            CommandKind::Try(details) => {
                let is_deferred = || calls(&details.body, &|it| is_named(it, "defer"));
                let has_one = is_one_attempt(&details.clauses) && !is_deferred();
                !details.is_limit && !details.clauses.atomic && !has_one
            }
            CommandKind::For(details) => {
                let is_plain =
                    matches!(&details.kind, ForKind::Any(clauses) if clauses.hedge_after.is_none());
                is_plain && details.atomic_in.is_empty()
            }
            _ => false,
        };
        if !repeats {
            return None;
        }
        // A command with `keep` prints after its attempt.
        let keeps = |it: &Simple| it.modifiers.iter().any(|it| it.kind == ModifierKind::Keep);
        let is_kept = command.blocks().into_iter().any(|block| calls(block, &keeps));
        let held = (!is_kept).then_some(TakenBack::Held);
        let is_output = |it: &Redirect| it.descriptor == 1 && it.mode != Mode::Read;
        let Some(at) = command.redirects.iter().rposition(is_output) else {
            return held.filter(|_| self.is_collected);
        };
        let output = &command.redirects[at];
        let target = |it: &Redirect| it.word().and_then(literal::word).map(Cow::into_owned);
        // `2>&1` before `> f` sends errors to where output went before.
        let is_same = |(index, it): (usize, &Redirect)| match it.target {
            RedirectionTarget::Descriptor(number) => number == 1 && index > at,
            _ => target(it).is_some() && target(it) == target(output),
        };
        let mut errors = command.redirects.iter().enumerate().filter(|(_, it)| it.descriptor == 2);
        let is_record = output.with_errors || errors.any(is_same);
        match (&output.target, output.mode) {
            _ if is_record => None,
            (RedirectionTarget::File(_) | RedirectionTarget::Variable(_), Mode::Append) => held,
            (RedirectionTarget::File(_) | RedirectionTarget::Variable(_), _) => {
                Some(TakenBack::Cut)
            }
            _ => None,
        }
    }
}

/// Returns true if a block has such a command outside of words.
fn calls(block: &Block, is_such: &impl Fn(&Simple) -> bool) -> bool {
    block.commands.iter().any(|command| {
        let is_here = match &command.kind {
            CommandKind::Pipeline(pipeline) => pipeline
                .stages
                .iter()
                .any(|stage| matches!(&stage.kind, StageKind::Simple(it) if is_such(it))),
            _ => false,
        };
        is_here || command.blocks().into_iter().any(|block| calls(block, is_such))
    })
}

/// Returns true for a command whose name is this literal.
fn is_named(command: &Simple, name: &str) -> bool {
    command.words.first().and_then(literal::word).is_some_and(|first| first == name)
}

/// Returns true for a `try` whose head allows one attempt.
fn is_one_attempt<D, S, P, G>(clauses: &TryClauses<D, Expr, S, P, G>) -> bool {
    match &clauses.times {
        Some(times) => literal::expr(times).is_some_and(|times| times == "1"),
        None => clauses.time.is_none(),
    }
}
