//! Answers to queries.

use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;

use bstr::BString;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::{SFlag, fstat};
use nix::unistd::{Whence, ftruncate, lseek};

use super::Tables;
use crate::buffers::FileBuffer;
use crate::cleanup::scratch_place;
use crate::clock::{local_time, since_1970};
use crate::descriptors::Fd;
use crate::durations::DurationRecorder;
use crate::files::{answer, answer_now, has_ended};
use crate::jobs::{JobResult, Reactor};
use crate::paths::{FdError, TaskDirectory};
use crate::program::filter_results;
use crate::stream::{self, Amount};
use ftsh_machine::effect::{BufferId, Directory, IoId, OperationId, Query, ScratchId, Sink};
use ftsh_machine::event::Reply;
use ftsh_machine::size::{MAX_VALUE_LEN, ValueTooLong};

/// Length of a line end at the end of a command's output, which is not part of the value.
const LINE_END: u64 = 2;

/// Maximum size of a buffer read on the event loop.
const SMALL: u64 = 1024 * 1024;

impl Tables {
    /// Answers a query, off the loop if the answer may take time.
    pub(in crate::driver) fn query(
        &mut self,
        reactor: &mut Reactor,
        durations: &DurationRecorder,
        operation: OperationId,
        directory: &Directory,
        query: Query,
    ) {
        let directory = TaskDirectory::of(directory, &self.views);
        match query {
            Query::Buffer(id) => self.read_buffer(reactor, operation, id),
            Query::Clock => reactor.answer(operation, Ok(Reply::clock(since_1970()))),
            // The rules of a time zone need more stack than a worker has.
            Query::LocalTime(wanted) => {
                let text = local_time(&wanted).map(|text| Reply::Text(text.into()));
                reactor.answer(operation, text.map_err(FdError::LocalTime));
            }
            Query::Tail(sinks, most) => self.tail(reactor, operation, &sinks, most),
            Query::Filled(buffers) => self.find_filled(reactor, operation, &buffers),
            Query::InputEnded(io) => self.query_input_end(reactor, operation, io),
            Query::Input(io, number) => {
                self.read_input(reactor, operation, io, number, Amount::All);
            }
            Query::InputPart(io) => self.read_input(reactor, operation, io, 0, Amount::Part),
            Query::InputWord(io, to) => {
                self.read_input(reactor, operation, io, 0, Amount::Word(to));
            }
            Query::TakeBack(io) => {
                let fd = self.io.table(io).and_then(|table| table.get(1)).cloned();
                reactor.operate(operation, move |_| {
                    let is_cut = fd.is_none_or(|fd| cut(&fd).unwrap_or(false));
                    JobResult::Reply(Ok(Reply::Truth(is_cut)))
                });
            }
            Query::Scratch(id) => self.find_scratch(reactor, operation, id),
            Query::Durations(of) => {
                let read = durations.reader(of, directory);
                reactor.operate(operation, |_| JobResult::Reply(Ok(Reply::Durations(read()))));
            }
            Query::Filter(call) => {
                reactor.operate(operation, move |control| {
                    JobResult::Reply(filter_results(&call, control))
                });
            }
            query => {
                if let Some(reply) = answer_now(&directory, &query) {
                    return reactor.answer(operation, Ok(reply));
                }
                reactor.operate(operation, move |control| {
                    JobResult::Reply(answer(&directory, &query, control))
                });
            }
        }
    }

    /// Answers with the content of a buffer.
    fn read_buffer(&mut self, reactor: &mut Reactor, operation: OperationId, id: BufferId) {
        match self.content(id) {
            Err(error) => reactor.answer(operation, Err(error)),
            Ok(BufferContent::Bytes(content)) => {
                reactor.answer(operation, Ok(Reply::Text(content)));
            }
            Ok(BufferContent::File(buffer)) => reactor.operate(operation, move |_| {
                let content = buffer.content().map(Reply::Text);
                JobResult::Reply(content.map_err(FdError::Unreadable))
            }),
        }
    }

    /// Returns the content of a buffer, or its file if reading takes long. Fails if the content is
    /// too long for a value.
    fn content(&mut self, id: BufferId) -> Result<BufferContent, FdError> {
        if let Some(length) = self.io.held.len(id) {
            check_length(length)?;
            let content = self.io.held.content_from(id, 0).map_err(FdError::Unreadable)?;
            return Ok(BufferContent::Bytes(content.into()));
        }
        if let Some(content) = self.io.text(id) {
            check_length(content.len() as u64)?;
            return Ok(BufferContent::Bytes(content.clone()));
        }
        let buffer = self.io.existing(id)?;
        check_length(buffer.len())?;
        if buffer.len() > SMALL {
            return Ok(BufferContent::File(buffer));
        }
        Ok(BufferContent::Bytes(buffer.content().map_err(FdError::Unreadable)?))
    }

    /// Answers with the buffers that are not empty.
    fn find_filled(&mut self, reactor: &mut Reactor, operation: OperationId, buffers: &[BufferId]) {
        let filled = self.io.filled(buffers);
        reactor.answer(operation, Ok(Reply::Buffers(filled)));
    }

    /// Answers with the path of a scratch directory, created if missing.
    fn find_scratch(&mut self, reactor: &mut Reactor, operation: OperationId, id: ScratchId) {
        let (scratch, registry) = (self.cleanup.scratch(id), self.cleanup.registry.clone());
        reactor.operate(operation, move |_| {
            let path = scratch.path(&registry);
            let path = path.map_err(|error| FdError::Scratch { place: scratch_place(), error });
            JobResult::Reply(path.map(|path| Reply::Text(path.into_os_string().into_vec().into())))
        });
    }

    /// Answers with the last part of outputs.
    fn tail(&mut self, reactor: &mut Reactor, operation: OperationId, sinks: &[Sink], most: usize) {
        for sink in sinks {
            if let Sink::Buffer(id) = sink
                && let Some(kept) = self.relays.take_kept(*id)
            {
                self.io.fill(*id, kept.into());
            }
        }
        let tail = self.io.tail(sinks, most).map(Reply::Text);
        reactor.answer(operation, tail.map_err(FdError::Unreadable));
    }

    /// Answers with true if descriptor 0 of a table is at its end.
    fn query_input_end(&mut self, reactor: &mut Reactor, operation: OperationId, io: IoId) {
        let table = self.io.table(io);
        let known = table.and_then(|table| self.spools.has_ended(table));
        let is_so = || table.and_then(|table| table.get(0)).is_some_and(has_ended);
        let has_ended = known.unwrap_or_else(is_so);
        reactor.answer(operation, Ok(Reply::Truth(has_ended)));
    }

    /// Reads what is still to come from a descriptor, all of it or the next part.
    fn read_input(
        &mut self,
        reactor: &mut Reactor,
        operation: OperationId,
        io: IoId,
        number: u8,
        amount: Amount,
    ) {
        let plan =
            self.io.plan(io, &TaskDirectory::default(), None, Vec::new()).and_then(|mut plan| {
                let kept = self.spools.connect(&mut plan, reactor.poller());
                Ok((plan, kept.map_err(FdError::Pipe)?))
            });
        let (plan, kept) = match plan {
            Ok(plan) => plan,
            Err(error) => return reactor.answer(operation, Err(error)),
        };
        let amount = match amount {
            // What is left in the pipe of a replayed input would be lost.
            Amount::Part if !plan.table.replays.is_empty() => Amount::All,
            amount => amount,
        };
        reactor.operate(operation, move |control| {
            let table = plan.carry_out(control);
            let text = table.and_then(|table| stream::read_input(&table, number, &amount, control));
            drop(kept);
            JobResult::Reply(text.map(Reply::Text))
        });
    }
}

enum BufferContent {
    Bytes(BString),
    /// File with many bytes.
    File(FileBuffer),
}

/// Cuts a regular file to nothing through its open descriptor. Returns false if the file also has
/// output from elsewhere, which does not move the offset of this descriptor.
fn cut(fd: &Fd) -> Result<bool, Errno> {
    let data = fstat(fd.as_fd())?;
    if SFlag::from_bits_truncate(data.st_mode) & SFlag::S_IFMT != SFlag::S_IFREG {
        return Ok(true);
    }
    // A resumed run has opened the file again, to append.
    let is_again = |at| {
        at == 0
            && matches!(fcntl(fd.as_fd(), FcntlArg::F_GETFL),
        Ok(flags) if OFlag::from_bits_retain(flags).contains(OFlag::O_APPEND))
    };
    let at = lseek(fd.as_fd(), 0, Whence::SeekCur)?;
    if at != data.st_size && !is_again(at) {
        return Ok(false);
    }
    ftruncate(fd.as_fd(), 0)?;
    lseek(fd.as_fd(), 0, Whence::SeekSet)?;
    Ok(true)
}

/// Fails if output of this length is too long for a value.
fn check_length(length: u64) -> Result<(), FdError> {
    if length > MAX_VALUE_LEN as u64 + LINE_END {
        return Err(ValueTooLong(length as usize).into());
    }
    Ok(())
}
