//! Tables of descriptors, variables used as files, and pipes.

use std::collections::HashMap;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;

use bstr::{BString, ByteSlice};

use super::buffer::Buffer;
use super::files;
use super::offload::Control;
use super::sys;
use crate::machine::effect::{Access, BufferId, Directory, IoId, PipeId, Plumbing, Port};

/// How many descriptors a table has.
const SIZE: usize = 10;

/// Content up to this size is written on the loop.
const SMALL: usize = 64 * 1024;

/// An open descriptor.
#[derive(Clone, Debug)]
pub enum Fd {
    /// One that the shell was started with, still at its number.
    Inherited(RawFd),
    /// One of our own, at a number outside the script's range.
    Owned(Arc<OwnedFd>),
    /// A buffer's: using it never blocks.
    Memory(Arc<OwnedFd>),
    /// `/dev/null`, by the shell's own choice.
    Null(Arc<OwnedFd>),
}

impl Fd {
    /// Takes over a new descriptor.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self::Owned(Arc::new(sys::move_up(fd)?)))
    }

    /// Whether it is a buffer's.
    pub fn is_memory(&self) -> bool {
        matches!(self, Self::Memory(_))
    }
}

impl AsFd for Fd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Inherited(number) => sys::borrow(*number),
            Self::Owned(fd) | Self::Memory(fd) | Self::Null(fd) => fd.as_fd(),
        }
    }
}

/// What a command's descriptors 0 to 9 are.
#[derive(Clone, Debug, Default)]
pub struct Table([Option<Fd>; SIZE]);

impl Table {
    /// The descriptors that are open now and stay open in children.
    pub fn inherited() -> Self {
        let passed = |number: usize| {
            let number = number as RawFd;
            sys::is_passed_on(number).then_some(Fd::Inherited(number))
        };
        Self(std::array::from_fn(passed))
    }

    /// A descriptor, if it is open.
    pub fn get(&self, number: u8) -> Option<&Fd> {
        self.0.get(usize::from(number))?.as_ref()
    }

    fn set(&mut self, number: u8, fd: Fd) -> Result<(), String> {
        let place = self.0.get_mut(usize::from(number));
        *place.ok_or_else(|| format!("{number}: descriptors go from 0 to 9"))? = Some(fd);
        Ok(())
    }

    /// Whether there is nothing to read from descriptor 0: the shell gave it `/dev/null`.
    pub fn reads_nothing(&self) -> bool {
        matches!(self.0[0], None | Some(Fd::Null(_)))
    }

    /// The numbers to set in a child that inherits ours, as `from` and `to`.
    pub fn changes(&self) -> Vec<(RawFd, RawFd)> {
        let mut changes = Vec::with_capacity(SIZE);
        for (number, fd) in self.0.iter().enumerate() {
            match fd {
                Some(fd @ (Fd::Owned(_) | Fd::Memory(_) | Fd::Null(_))) => {
                    changes.push((fd.as_fd().as_raw_fd(), number as RawFd));
                }
                Some(Fd::Inherited(_)) | None => {}
            }
        }
        changes
    }
}

/// Changes to a table that are ready to be carried out, on the loop or off it.
pub struct Plan {
    table: Table,
    directory: Directory,
    steps: Vec<Step>,
    blocking: bool,
}

enum Step {
    Set(u8, Fd),
    Copy { to: u8, from: u8 },
    Open { to: u8, path: BString, access: Access },
    Write(Buffer, BString),
    CopyBuffer { to: Buffer, from: Buffer },
    Read(u8, Buffer),
}

impl Plan {
    /// Whether carrying it out may take long, or forever.
    pub fn may_block(&self) -> bool {
        self.blocking
    }

    /// Whether no descriptor of the table will be a terminal. Files that scripts open are none,
    /// but for devices.
    pub fn is_quiet(&self) -> bool {
        let is_quiet = |fd: &Fd| match fd {
            Fd::Memory(_) | Fd::Null(_) => true,
            Fd::Inherited(_) | Fd::Owned(_) => !fd.as_fd().is_terminal(),
        };
        let mut quiet = self.table.0.each_ref().map(|fd| fd.as_ref().is_none_or(is_quiet));
        for step in &self.steps {
            let (to, result) = match step {
                Step::Set(to, fd) => (*to, is_quiet(fd)),
                Step::Copy { to, from } => {
                    (*to, quiet.get(usize::from(*from)).is_none_or(|quiet| *quiet))
                }
                Step::Open { to, path, .. } => {
                    (*to, path == "/dev/null" || !path.starts_with(b"/dev/"))
                }
                Step::Read(to, _) => (*to, true),
                Step::Write(..) | Step::CopyBuffer { .. } => continue,
            };
            if let Some(place) = quiet.get_mut(usize::from(to)) {
                *place = result;
            }
        }
        quiet == [true; SIZE]
    }

    /// Makes the table; an error is one line for people.
    pub fn carry_out(mut self, control: &Control) -> Result<Table, String> {
        for step in self.steps {
            match step {
                Step::Set(number, fd) => self.table.set(number, fd)?,
                Step::Copy { to, from } => {
                    let fd = match self.table.get(from) {
                        // Its number may be set to something else before a child uses it.
                        Some(Fd::Inherited(number)) => sys::duplicate(sys::borrow(*number))
                            .map(|fd| Fd::Owned(Arc::new(fd)))
                            .map_err(|error| format!("descriptor {from}: {}", plain(&error)))?,
                        Some(fd) => fd.clone(),
                        None => return Err(format!("descriptor {from} isn't open")),
                    };
                    self.table.set(to, fd)?;
                }
                Step::Open { to, path, access } => {
                    let fd = files::open(&self.directory, &path, access, control)
                        .and_then(Fd::new)
                        .map_err(|error| {
                            format!("{}: {}", files::shown(path.as_bstr()), plain(&error))
                        })?;
                    self.table.set(to, fd)?;
                }
                Step::Write(buffer, content) => {
                    buffer.append(&content).map_err(|error| in_memory(&error))?;
                }
                Step::CopyBuffer { to, from } => {
                    to.append_from(&from).map_err(|error| in_memory(&error))?;
                }
                Step::Read(to, buffer) => {
                    let fd = buffer.reader().map_err(|error| in_memory(&error))?;
                    self.table.set(to, Fd::Memory(Arc::new(fd)))?;
                }
            }
        }
        Ok(self.table)
    }
}

fn in_memory(error: &io::Error) -> String {
    format!("the variable can't be used as a file: {}", plain(error))
}

/// An error's text without the number that std adds.
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_lowercase(),
        None => text,
    }
}

/// All tables, buffers and pipes of a run.
pub struct Io {
    tables: HashMap<IoId, Table>,
    buffers: HashMap<BufferId, Buffer>,
    pipes: HashMap<PipeId, Ends>,
    null: Option<Fd>,
}

/// The ends of a pipe that nobody has taken yet.
struct Ends {
    reader: Option<OwnedFd>,
    writer: Option<OwnedFd>,
}

impl From<(io::PipeReader, io::PipeWriter)> for Ends {
    fn from((reader, writer): (io::PipeReader, io::PipeWriter)) -> Self {
        Self { reader: Some(reader.into()), writer: Some(writer.into()) }
    }
}

impl Io {
    /// Only the descriptors that the shell was started with.
    pub fn new() -> Self {
        Self {
            tables: HashMap::from([(IoId::INHERITED, Table::inherited())]),
            buffers: HashMap::new(),
            pipes: HashMap::new(),
            null: None,
        }
    }

    /// How many descriptors it may hold, roughly.
    pub fn size(&self) -> usize {
        self.tables.len() + self.buffers.len() + 2 * self.pipes.len()
    }

    /// Keeps a table.
    pub fn insert(&mut self, io: IoId, table: Table) {
        self.tables.insert(io, table);
    }

    /// Forgets a table; what it held open is closed when no command uses it any more.
    pub fn close(&mut self, io: IoId) {
        if io != IoId::INHERITED {
            self.tables.remove(&io);
        }
    }

    /// Forgets a buffer; readers and writers that have it open keep it.
    pub fn drop_buffer(&mut self, buffer: BufferId) {
        self.buffers.remove(&buffer);
    }

    /// A buffer.
    pub fn buffer(&self, id: BufferId) -> Option<&Buffer> {
        self.buffers.get(&id)
    }

    /// Prepares changes to a table. Buffers and pipes come into being here, files when the plan
    /// is carried out.
    pub fn plan(
        &mut self,
        base: IoId,
        directory: &Directory,
        redirects: Vec<Plumbing>,
    ) -> Result<Plan, String> {
        // Ends of pipes first: they must not stay behind when something else fails.
        let mut taken = Vec::new();
        for plumbing in &redirects {
            match plumbing.port {
                Port::PipeReader(id) => taken.push(self.take_end(id, |ends| &mut ends.reader)),
                Port::PipeWriter(id) => taken.push(self.take_end(id, |ends| &mut ends.writer)),
                _ => {}
            }
        }
        let mut taken = taken.into_iter();
        let table = self.tables.get(&base).ok_or("the block's redirections are closed")?.clone();
        let mut plan =
            Plan { table, directory: directory.clone(), steps: Vec::new(), blocking: false };
        for Plumbing { descriptor: to, port } in redirects {
            let step = match port {
                Port::File { path, access } => {
                    plan.blocking = true;
                    Step::Open { to, path, access }
                }
                Port::Descriptor(from) => Step::Copy { to, from },
                Port::Null => Step::Set(to, self.null()?),
                Port::BufferRead(id) => Step::Read(to, self.existing(id)?),
                Port::BufferAppend(id) => Step::Set(to, self.existing(id)?.writer()),
                Port::BufferCreate(id, content) => {
                    let buffer = self.create(id)?;
                    plan.write(&buffer, content);
                    Step::Set(to, buffer.writer())
                }
                Port::BufferCopy { buffer, of } => {
                    let from = self.existing(of)?;
                    let buffer = self.create(buffer)?;
                    plan.blocking |= from.len() > SMALL as u64;
                    plan.steps.push(Step::CopyBuffer { to: buffer.clone(), from });
                    Step::Set(to, buffer.writer())
                }
                Port::Bytes(content) => {
                    let buffer = Buffer::new().map_err(|error| in_memory(&error))?;
                    plan.write(&buffer, content);
                    Step::Read(to, buffer)
                }
                Port::PipeReader(_) | Port::PipeWriter(_) => {
                    let end = taken.next().ok_or("a pipe's end is missing")?;
                    Step::Set(to, end?)
                }
            };
            plan.steps.push(step);
        }
        Ok(plan)
    }

    fn existing(&self, id: BufferId) -> Result<Buffer, String> {
        self.buffers.get(&id).cloned().ok_or_else(|| "the variable's file is gone".into())
    }

    fn create(&mut self, id: BufferId) -> Result<Buffer, String> {
        let buffer = Buffer::new().map_err(|error| in_memory(&error))?;
        self.buffers.insert(id, buffer.clone());
        Ok(buffer)
    }

    fn null(&mut self) -> Result<Fd, String> {
        if let Some(null) = &self.null {
            return Ok(null.clone());
        }
        let null = std::fs::File::options()
            .read(true)
            .write(true)
            .open("/dev/null")
            .and_then(|file| sys::move_up(file.into()))
            .map(|fd| Fd::Null(Arc::new(fd)))
            .map_err(|error| format!("/dev/null: {}", plain(&error)))?;
        self.null = Some(null.clone());
        Ok(null)
    }

    fn take_end(
        &mut self,
        id: PipeId,
        which: impl Fn(&mut Ends) -> &mut Option<OwnedFd>,
    ) -> Result<Fd, String> {
        let none = |error: io::Error| format!("no pipe to be had: {}", plain(&error));
        let mut ends = match self.pipes.remove(&id) {
            Some(ends) => ends,
            None => io::pipe().map(Ends::from).map_err(none)?,
        };
        let end = which(&mut ends).take();
        if ends.reader.is_some() || ends.writer.is_some() {
            self.pipes.insert(id, ends);
        }
        Fd::new(end.ok_or("a pipe's end was taken before")?).map_err(none)
    }
}

impl Plan {
    fn write(&mut self, buffer: &Buffer, content: BString) {
        if !content.is_empty() {
            self.blocking |= content.len() > SMALL;
            self.steps.push(Step::Write(buffer.clone(), content));
        }
    }
}
