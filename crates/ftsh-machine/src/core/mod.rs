//! Parts of a machine that every statement uses, and the control flow between them.

mod context;
mod families;
mod flow;
mod learning;
mod log;
mod parts;
mod requests;
mod running;
mod scopes;
mod trace;
mod watching;

pub(crate) use self::flow::end_word_call;

pub(crate) use self::flow::{Flow, Step};
pub(crate) use self::parts::Core;
pub(crate) use self::requests::Requests;
pub(crate) use self::running::Breach;
pub(crate) use self::scopes::{ChannelPass, Scopes};
