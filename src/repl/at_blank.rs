//! Handler of the line editor that expands abbreviations when a blank is typed.

use std::sync::Arc;

use ftsh_ide::abbreviations::Abbreviations;
use rustyline::{Cmd, ConditionalEventHandler, Event, EventContext, RepeatCount};

/// Expands the abbreviation before a blank. Completion is the only command of the editor that
/// replaces text and leaves the cursor behind the new text.
pub(super) struct AtBlank(pub Arc<Abbreviations>);

impl ConditionalEventHandler for AtBlank {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext) -> Option<Cmd> {
        let typed = context.line().get(..context.pos())?;
        self.0.expand_before_blank(typed).then_some(Cmd::Complete)
    }
}
