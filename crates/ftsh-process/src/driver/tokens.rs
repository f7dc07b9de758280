//! Tokens of the poller, by source. Signals come first: they concern children whose tokens follow.

use crate::events::Token;

pub(super) const SIGNALS: Token = 0;
pub(super) const ANSWERS: Token = 1;
pub(super) const SUPERVISOR: Token = 2;
pub(super) const BACKGROUND: Token = 3;
pub(super) const KEYS: Token = 4;
pub(super) const CONTROL_FD: Token = 5;
pub(super) const CONTROL_TIMER: Token = 6;
pub(super) const WATCHES: Token = 7;
/// Base of the tokens of pidfds.
pub(super) const CHILDREN: Token = 1 << 32;
/// Base of the tokens of foreign descriptors.
pub(super) const EXTERNAL_FDS: Token = 1 << 40;
