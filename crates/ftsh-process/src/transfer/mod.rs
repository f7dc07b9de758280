//! Files that travel with branches between machines. The side that has the files lists and sends
//! them. A node receives what its run has not received there before; the head hides files until
//! they take their places.

mod building;
mod content;
mod entries;
mod gifts;
mod sending;
mod store;
#[cfg(test)]
mod tests;

pub use self::content::{DigestKey, Digests};
pub use self::entries::FileEntry;
pub(crate) use self::entries::check_files;
pub use self::gifts::Gifts;
pub use self::sending::{Outgoing, TransferError};
pub use self::store::{FileStore, IncomingFiles};
