//! Answers to queries of the machine.

use super::fds::{Amount, FdError, files};
use super::jobs::{JobRecipient, JobResult};
use super::os;
use super::os::clock::since_1970;
use super::os::workers::Control;
use super::program::filter;
use super::{LINE_END, ProcessDriver, SMALL};
use ftsh_machine::effect::{Directory, OperationId, Query};
use ftsh_machine::event::Reply;
use ftsh_machine::size::{MAX_VALUE_LEN, ValueTooLong};

impl ProcessDriver {
    /// Answers an operation by a worker's job.
    pub(super) fn operate(
        &mut self,
        operation: OperationId,
        job: impl FnOnce(&Control) -> JobResult + Send + 'static,
    ) {
        match self.work.pool.submit(job) {
            Ok(handle) => {
                self.work.waiting.insert(handle.ticket, JobRecipient::Operation(operation));
                self.work.operations.insert(operation, handle);
            }
            Err(error) => self.answer(operation, Err(FdError::Worker(error))),
        }
    }

    /// Answers a query, off the loop if the answer may take time.
    pub(super) fn query(&mut self, operation: OperationId, directory: Directory, query: Query) {
        let id = match query {
            Query::Buffer(id) => id,
            Query::Clock => return self.answer(operation, Ok(Reply::clock(since_1970()))),
            // The rules of a time zone need more stack than a worker has.
            Query::LocalTime(wanted) => {
                let text = os::local_time::text(&wanted).map(|text| Reply::Text(text.into()));
                return self.answer(operation, text.map_err(FdError::LocalTime));
            }
            Query::Tail(sinks, most) => return self.tail(operation, &sinks, most),
            Query::Filled(buffers) => return self.find_filled(operation, &buffers),
            Query::InputEnded(io) => return self.query_input_end(operation, io),
            Query::Input(io, number) => return self.read_input(operation, io, number, Amount::All),
            Query::InputPart(io) => return self.read_input(operation, io, 0, Amount::Part),
            Query::InputWord(io, to) => return self.read_input(operation, io, 0, Amount::Word(to)),
            Query::Scratch(id) => return self.find_scratch(operation, id),
            Query::Filter(call) => {
                return self.operate(operation, move |control| {
                    JobResult::Reply(filter::results(&call, control))
                });
            }
            query => {
                if let Some(reply) = files::answer_now(&directory, &query) {
                    return self.answer(operation, Ok(reply));
                }
                return self.operate(operation, move |control| {
                    JobResult::Reply(files::answer(&directory, &query, control))
                });
            }
        };
        if let Some(length) = self.io.held.len(id) {
            if length > MAX_VALUE_LEN as u64 + LINE_END {
                return self.answer(operation, Err(ValueTooLong(length as usize).into()));
            }
            let content = self.io.held.content_from(id, 0).map(|it| Reply::Text(it.into()));
            return self.answer(operation, content.map_err(FdError::Unreadable));
        }
        if let Some(content) = self.io.text(id) {
            if content.len() as u64 > MAX_VALUE_LEN as u64 + LINE_END {
                return self.answer(operation, Err(ValueTooLong(content.len()).into()));
            }
            let content = content.clone();
            return self.answer(operation, Ok(Reply::Text(content)));
        }
        let buffer = match self.io.existing(id) {
            Ok(buffer) => buffer,
            Err(error) => return self.answer(operation, Err(error)),
        };
        let length = buffer.len();
        if length > MAX_VALUE_LEN as u64 + LINE_END {
            return self.answer(operation, Err(ValueTooLong(length as usize).into()));
        }
        let read = move || {
            let content = buffer.content().map(Reply::Text);
            content.map_err(FdError::Unreadable)
        };
        if length <= SMALL {
            self.answer(operation, read());
        } else {
            self.operate(operation, move |_| JobResult::Reply(read()));
        }
    }
}
