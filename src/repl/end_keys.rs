//! Keys of the line editor that end a line.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustyline::{
    Cmd, ConditionalEventHandler, Event, EventContext, EventHandler, KeyCode, KeyEvent, Modifiers,
    RepeatCount,
};

/// Flag of the key that ended a line: true for Ctrl-C, false for Enter.
pub(super) type IsInterrupt = Arc<AtomicBool>;

/// Handler of a key that ends a line. The editor loses keys typed after its own interrupt, but not
/// those after a line.
struct EndOfLine {
    is_interrupt: IsInterrupt,
    value: bool,
}

impl ConditionalEventHandler for EndOfLine {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, _: &EventContext) -> Option<Cmd> {
        self.is_interrupt.store(self.value, Ordering::Relaxed);
        Some(Cmd::AcceptLine)
    }
}

/// Returns the keys that end a line, and their handlers.
pub(super) fn bindings(
    is_interrupt: &IsInterrupt,
) -> impl Iterator<Item = (KeyEvent, EventHandler)> {
    let enter = KeyEvent(KeyCode::Enter, Modifiers::NONE);
    let keys = [
        (KeyEvent::ctrl('C'), true),
        (enter, false),
        (KeyEvent::ctrl('J'), false),
        (KeyEvent::ctrl('M'), false),
    ];
    keys.into_iter().map(|(key, value)| {
        let handler = EndOfLine { is_interrupt: Arc::clone(is_interrupt), value };
        (key, EventHandler::Conditional(Box::new(handler)))
    })
}
