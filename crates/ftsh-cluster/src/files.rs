//! Transfer of a branch's files, in a thread of its own, since files and pipes may block.
//!
//! While a thread sends or receives, nothing else uses its pipe of the connection.

use std::cell::Cell;
use std::io::{self, Cursor, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use bstr::BString;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::connection::{ConnectionPipe, prepare_own_end};
use ftsh_process::{
    Digests, FileEntry, Gifts, Outgoing, ProcessDriver, Readiness, TransferError, while_busy,
};
use ftsh_remote::{Frames, TransferProgress, frame};

/// Time between two reports of movement.
const REPORT_PAUSE: Duration = Duration::from_secs(1);

/// Order to the thread.
#[derive(Debug)]
pub(crate) enum FileOrder {
    /// Send the contents of these files.
    Send(Vec<u32>),
    /// Move the received files to their places.
    Place,
}

/// Connection to the thread. Dropping the value ends the transfer.
#[derive(Debug)]
pub(crate) struct Transfer {
    orders: Sender<FileOrder>,
    progress: Receiver<TransferProgress>,
    /// Readable after each progress.
    wake: io::PipeReader,
    _cancel: io::PipeWriter,
    /// True until files that the branch gives have arrived, or cannot arrive.
    pub(crate) is_receiving: bool,
}

/// Files of a branch, as the thread knows them.
pub(crate) struct FileNames {
    pub directory: PathBuf,
    pub names: Vec<BString>,
    pub digests: Arc<Digests>,
}

struct TransferTask {
    files: FileNames,
    progress: Sender<TransferProgress>,
    wake: io::PipeWriter,
    orders: Receiver<FileOrder>,
    /// Time of the last report of movement.
    reported: Cell<Instant>,
}

impl Transfer {
    /// Lists the files that a branch takes, and writes `offer` and the list.
    pub(crate) fn takes(
        driver: &mut ProcessDriver,
        first_key: u64,
        files: FileNames,
        input: io::PipeWriter,
        offer: Vec<u8>,
    ) -> io::Result<Self> {
        Self::start(driver, first_key, files, move |task, cancel| {
            // After an error, the connection ends as well.
            let _ = task.send(&offer, &mut Cancelable(input, cancel, task));
        })
    }

    /// Receives the files that a branch gives. `first` are their first bytes.
    pub(crate) fn gives(
        driver: &mut ProcessDriver,
        first_key: u64,
        files: FileNames,
        output: io::PipeReader,
        first: Vec<u8>,
    ) -> io::Result<Self> {
        let transfer = Self::start(driver, first_key, files, move |task, cancel| {
            task.receive(Cursor::new(first).chain(Cancelable(output, cancel, task)));
        })?;
        Ok(Self { is_receiving: true, ..transfer })
    }

    fn start(
        driver: &mut ProcessDriver,
        first_key: u64,
        files: FileNames,
        work: impl FnOnce(&TransferTask, io::PipeReader) + Send + 'static,
    ) -> io::Result<Self> {
        let ((wake, their_wake), (their_cancel, cancel)) = (io::pipe()?, io::pipe()?);
        let wake = io::PipeReader::from(prepare_own_end(wake.into())?);
        let (orders, their_orders) = channel();
        let (their_progress, progress) = channel();
        let task = TransferTask {
            files,
            progress: their_progress,
            wake: their_wake,
            orders: their_orders,
            reported: Cell::new(Instant::now()),
        };
        let work = move || while_busy(|| work(&task, their_cancel));
        std::thread::Builder::new().name("files".into()).spawn(work)?;
        driver.add_fd(wake.as_fd(), first_key + ConnectionPipe::Files as u64, Readiness::ToRead)?;
        Ok(Self { orders, progress, wake, _cancel: cancel, is_receiving: false })
    }

    /// Gives the thread an order.
    pub(crate) fn order(&self, order: FileOrder) {
        // Without the thread, the transfer has ended.
        let _ = self.orders.send(order);
    }

    /// Returns the next progress, if there is any.
    pub(crate) fn next(&mut self, driver: &mut ProcessDriver) -> Option<TransferProgress> {
        if matches!(self.wake.read(&mut [0; 64]), Ok(0)) {
            driver.remove_fd(self.wake.as_fd());
        }
        let progress = self.progress.try_recv().ok()?;
        self.is_receiving &= progress == TransferProgress::Moved;
        Some(progress)
    }

    /// Ends the transfer.
    pub(crate) fn close(self, driver: &mut ProcessDriver) {
        driver.remove_fd(self.wake.as_fd());
    }
}

impl TransferTask {
    fn report(&self, progress: TransferProgress) {
        // Without the other side, nothing is left to do.
        let _ = self.progress.send(progress);
        let _ = (&self.wake).write_all(&[0]);
    }

    /// Reports movement, if the last report is old.
    fn moved(&self) {
        if self.reported.get().elapsed() >= REPORT_PAUSE {
            self.reported.set(Instant::now());
            self.report(TransferProgress::Moved);
        }
    }

    fn send(&self, offer: &[u8], to: &mut impl Write) -> io::Result<()> {
        let FileNames { directory, names, digests } = &self.files;
        let listed = Outgoing::list(directory, names, "take", digests)
            .and_then(|files| Ok((frame(&files.entries).map_err(|it| it.to_string())?, files)));
        let (list, files) = match listed {
            Ok(listed) => listed,
            Err(why) => {
                self.report(TransferProgress::Failed(why));
                return Ok(());
            }
        };
        self.report(TransferProgress::Listed((offer.len() + list.len()) as u64 + files.length()));
        to.write_all(offer)?;
        to.write_all(&list)?;
        while let Ok(FileOrder::Send(wanted)) = self.orders.recv() {
            for index in wanted {
                if let Err(error) = files.send(index as usize, to) {
                    if let TransferError::Files(why) = error {
                        self.report(TransferProgress::Failed(why));
                    }
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn receive(&self, mut from: impl Read) {
        let received = list(&mut from).and_then(|(entries, rest)| {
            let FileNames { directory, names, digests } = &self.files;
            let mut from = Cursor::new(rest).chain(&mut from);
            Gifts::receive(directory, names, &entries, &digests.key, &mut from)
        });
        match received {
            Ok(gifts) => {
                self.report(TransferProgress::Arrived);
                if let Ok(FileOrder::Place) = self.orders.recv() {
                    let placed = gifts.place(|| self.moved());
                    // Before the removal of replaced directories, which may take long.
                    self.report(
                        placed.map_or_else(TransferProgress::Failed, |()| TransferProgress::Placed),
                    );
                    drop(gifts);
                }
            }
            Err(error) => {
                self.report(match error {
                    TransferError::Cut => TransferProgress::Cut,
                    TransferError::Files(why) => TransferProgress::Failed(why),
                });
                // The node ends only after its last byte.
                let _ = io::copy(&mut from, &mut io::sink());
            }
        }
    }
}

/// Reads the list of the given files. Returns the list and the bytes behind the list.
fn list(from: &mut impl Read) -> Result<(Vec<FileEntry>, Vec<u8>), TransferError> {
    let (mut frames, mut bytes) = (Frames::<Vec<FileEntry>>::default(), vec![0; 1 << 16]);
    loop {
        if let Some(entries) = frames.message().map_err(|_| TransferError::Cut)? {
            return Ok((entries, frames.into_rest()));
        }
        match from.read(&mut bytes) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => return Err(TransferError::Cut),
            Ok(read) => frames.push(&bytes[..read]),
        }
    }
}

/// Pipe that never blocks after the owner of the transfer has dropped its end of the second pipe.
struct Cancelable<'a, T>(T, io::PipeReader, &'a TransferTask);

impl<T: AsFd> Cancelable<'_, T> {
    /// Waits until the pipe is ready.
    fn wait(&self, ready: PollFlags) -> io::Result<()> {
        let mut waited =
            [PollFd::new(self.0.as_fd(), ready), PollFd::new(self.1.as_fd(), PollFlags::POLLIN)];
        poll(&mut waited, PollTimeout::NONE)?;
        if waited[1].any() == Some(false) {
            self.2.moved();
            Ok(())
        } else {
            Err(ErrorKind::ConnectionAborted.into())
        }
    }
}

impl Read for Cancelable<'_, io::PipeReader> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            self.wait(PollFlags::POLLIN)?;
            match self.0.read(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                result => return result,
            }
        }
    }
}

impl Write for Cancelable<'_, io::PipeWriter> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            self.wait(PollFlags::POLLOUT)?;
            match self.0.write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                result => return result,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
