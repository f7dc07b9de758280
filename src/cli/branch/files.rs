//! Files of a branch on its node: a directory of its own, with the files that the branch takes.

use std::fs::File;
use std::io::{self, Cursor, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use bstr::BString;
use nix::poll::{PollFd, PollFlags, poll};

use super::{receive, send};
use crate::cli::messages::BlockingIo;
use ftsh_process::{
    Digests, FileEntry, FileStore, IncomingFiles, Outgoing, TransferError, non_blocking_writer,
    start_detached,
};
use ftsh_remote::{Branch, Frames, ToHead, ToNode, frame};
use ftsh_sys::os_error::plain;

/// Time in milliseconds without a byte after which the head counts as gone. Other branches wait for the
/// contents that it sends to this one.
const MAX_SILENCE: u16 = 60_000;

/// Files of a branch. Dropping the value removes them.
pub(super) struct NodeFiles {
    store: FileStore,
    directory: PathBuf,
    gives: Vec<BString>,
    digests: Digests,
    lingers: bool,
}

/// End of the messages of the head, or a reason to refuse the branch.
pub(super) enum NoFiles {
    HeadGone,
    Refused(String),
}

impl NodeFiles {
    /// Creates the directory of a branch that takes or gives files, and receives the files that the
    /// branch takes. `frames` decodes the messages of the head.
    pub(super) fn receive(
        branch: &mut Branch,
        frames: &mut Frames<ToNode>,
    ) -> Result<Option<Self>, NoFiles> {
        let files = branch.packed.files.clone();
        if files.takes.is_empty() && files.gives.is_empty() {
            return Ok(None);
        }
        let place = |error: io::Error| {
            NoFiles::Refused(format!("can't create a directory for files: {}", plain(&error)))
        };
        let id = &branch.store;
        let store = FileStore::open(&id.name, id.key).map_err(place)?;
        start_detached(c"ftsh-files", &[], store.keeper(id.linger)).map_err(place)?;
        let (directory, digests) = (store.create_directory().map_err(place)?, Digests::new(id.key));
        let (gives, lingers) = (files.gives, !id.linger.is_zero());
        let own = Self { store, directory, gives, digests, lingers };
        if !files.takes.is_empty() {
            let broken = |error: anyhow::Error| NoFiles::Refused(error.to_string());
            let mut lists = Frames::<Vec<FileEntry>>::default();
            lists.push(&std::mem::take(frames).into_rest());
            let list = receive(&mut lists).map_err(broken)?.ok_or(NoFiles::HeadGone)?;
            let incoming = IncomingFiles::new(&own.store, list, &files.takes);
            let mut incoming =
                incoming.ok_or_else(|| NoFiles::Refused("the list of files is broken".into()))?;
            let mut input = Cursor::new(lists.into_rest()).chain(Input(io::stdin(), MAX_SILENCE));
            loop {
                let wanted = incoming.wanted().map_err(place)?;
                if wanted.is_empty() {
                    break;
                }
                send(&ToHead::Wants(wanted.clone())).map_err(broken)?;
                for index in wanted {
                    incoming.receive(index, &mut input).map_err(NoFiles::Refused)?;
                }
            }
            incoming.build(&own.directory, &files.takes).map_err(place)?;
        }
        branch.packed.directory = own.directory.clone().into_os_string().into_vec().into();
        Ok(Some(own))
    }

    /// Writes the files that a successful branch gives to standard output. Fails with the reason if a
    /// file is missing.
    pub(super) fn give(&self) -> Result<(), String> {
        if self.gives.is_empty() {
            return Ok(());
        }
        let files = Outgoing::list(&self.directory, &self.gives, "give", &self.digests)?;
        let list = frame(&files.entries).map_err(|error| error.to_string())?;
        let output = io::stdout().as_fd().try_clone_to_owned();
        let mut output = BlockingIo(File::from(output.map_err(|error| plain(&error))?));
        non_blocking_writer::wait(None);
        // The head handles a failure of a write.
        if output.write_all(&list).is_err() {
            return Ok(());
        }
        for index in 0..files.entries.len() {
            match files.send(index, &mut output) {
                Ok(()) => {}
                Err(TransferError::Cut) => break,
                Err(TransferError::Files(why)) => return Err(why),
            }
        }
        Ok(())
    }
}

impl Drop for NodeFiles {
    fn drop(&mut self) {
        // The keeper removes what stays.
        let _ = self.store.leave(&self.directory, self.lingers);
    }
}

/// Input that fails after a silence, in milliseconds.
struct Input<F>(F, u16);

impl<F: AsFd> Read for Input<F> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let ready = PollFd::new(self.0.as_fd(), PollFlags::POLLIN);
        if poll(&mut [ready], self.1)? == 0 {
            return Err(ErrorKind::TimedOut.into());
        }
        Ok(nix::unistd::read(&self.0, bytes)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_an_end() {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        writer.write_all(b"x").expect("a byte");
        let mut input = Input(reader, 1);
        assert_eq!(input.read(&mut [0; 2]).expect("a byte"), 1);
        assert_eq!(input.read(&mut [0]).map_err(|it| it.kind()), Err(ErrorKind::TimedOut));
    }
}
