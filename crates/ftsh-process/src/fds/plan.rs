//! Plans: prepared changes to a descriptor table.

use std::io::IsTerminal;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use bstr::BString;

use crate::buffers::{FileBuffer, LineAssembler};
use crate::cleanup::Registry;
use crate::descriptors::{Fd, FdTable, SIZE};
use crate::files::{open_file, open_locally};
use crate::paths::{FdError, TaskDirectory};
use crate::staged::StagedFile;
use crate::workers::{Call, Control};
use ftsh_machine::effect::{Access, BufferId, CommitMode, OperationId, SpoolId, Umask};
use ftsh_sys as sys;

/// Maximum size of content written on the event loop.
const SMALL: usize = 64 * 1024;

/// Prepared changes to a table, for execution on the event loop or by a worker.
pub(crate) struct Plan {
    pub table: FdTable,
    pub directory: TaskDirectory,
    pub umask: Umask,
    pub steps: Vec<PlanStep>,
    /// Read ends of pipes into relays.
    pub relayed: Vec<RelayPipe>,
    /// Inputs that attempts read again.
    pub replayed: Vec<ReplayedInput>,
}

/// Input that an attempt reads again.
pub(crate) struct ReplayedInput {
    pub replay: SpoolId,
    pub input: Option<Fd>,
}

/// Read end of a pipe into a relay.
pub(crate) struct RelayPipe {
    pub relay: OperationId,
    pub descriptor: u8,
    pub reader: OwnedFd,
    pub lines: LineAssembler,
    /// Buffer for the last bytes of the output, if any.
    pub keeps: Option<BufferId>,
}

/// One change.
pub(crate) enum PlanStep {
    Set(u8, Fd),
    Copy {
        to: u8,
        from: u8,
    },
    Open {
        to: u8,
        path: BString,
        access: Access,
    },
    StageFile {
        to: u8,
        path: BString,
        mode: CommitMode,
        staged_file: Arc<StagedFile>,
        registry: Arc<Registry>,
    },
    Write(FileBuffer, BString),
    CopyBuffer {
        to: FileBuffer,
        from: FileBuffer,
    },
    Read(u8, FileBuffer),
    ReadBytes(u8, BString),
    Seek(u8, u64),
}

impl PlanStep {
    /// True if the change may block.
    fn may_block(&self) -> bool {
        match self {
            Self::Open { .. } | Self::StageFile { .. } => true,
            Self::Write(_, content) | Self::ReadBytes(_, content) => content.len() > SMALL,
            Self::CopyBuffer { from, .. } => from.len() > SMALL as u64,
            Self::Set(..) | Self::Copy { .. } | Self::Read(..) | Self::Seek(..) => false,
        }
    }
}

impl Plan {
    /// True if the plan may block.
    pub(crate) fn may_block(&self) -> bool {
        self.steps.iter().any(PlanStep::may_block)
    }

    /// True if no descriptor of the table will be a terminal. Among files opened by scripts, only
    /// devices can be terminals.
    pub(crate) fn is_quiet(&self) -> bool {
        let is_quiet = |fd: &Fd| match fd {
            Fd::Memory(_) | Fd::Reader(_) | Fd::Null(_) | Fd::Gone(_) => true,
            Fd::Inherited(_) | Fd::Owned(_) => !fd.as_fd().is_terminal(),
        };
        let mut quiet =
            self.table.descriptors.each_ref().map(|fd| fd.as_ref().is_none_or(is_quiet));
        for step in &self.steps {
            let (to, result) = match step {
                PlanStep::Set(to, fd) => (*to, is_quiet(fd)),
                PlanStep::Copy { to, from } => {
                    (*to, quiet.get(usize::from(*from)).is_none_or(|quiet| *quiet))
                }
                PlanStep::Open { to, path, .. } | PlanStep::StageFile { to, path, .. } => {
                    (*to, path == "/dev/null" || !path.starts_with(b"/dev/"))
                }
                PlanStep::Read(to, _) | PlanStep::ReadBytes(to, _) => (*to, true),
                PlanStep::Write(..) | PlanStep::CopyBuffer { .. } | PlanStep::Seek(..) => continue,
            };
            if let Some(place) = quiet.get_mut(usize::from(to)) {
                *place = result;
            }
        }
        quiet == [true; SIZE]
    }

    /// Returns the variables that a command with this table may write to.
    pub(crate) fn written(&self) -> Vec<Fd> {
        let set = self.steps.iter().filter_map(|step| match step {
            PlanStep::Set(_, fd) => Some(fd),
            _ => None,
        });
        set.chain(self.table.descriptors.iter().flatten())
            .filter(|fd| matches!(fd, Fd::Memory(_)))
            .cloned()
            .collect()
    }

    /// Executes the changes up to the first that may block.
    pub(crate) fn begin(&mut self) -> Result<(), FdError> {
        if !self.may_block() {
            return Ok(());
        }
        let mut steps = std::mem::take(&mut self.steps).into_iter();
        while let Some(step) = steps.next() {
            let step = match step {
                PlanStep::Open { to, path, access } => {
                    match open_locally(&self.directory, &path, access) {
                        Some(fd) => PlanStep::Set(to, fd),
                        None => PlanStep::Open { to, path, access },
                    }
                }
                step => step,
            };
            if step.may_block() {
                self.steps = std::iter::once(step).chain(steps).collect();
                return Ok(());
            }
            self.take(step, &Control::default())?;
        }
        Ok(())
    }

    /// Executes the remaining changes and returns the table.
    pub(crate) fn carry_out(mut self, control: &Control) -> Result<FdTable, FdError> {
        for step in std::mem::take(&mut self.steps) {
            self.take(step, control)?;
        }
        Ok(self.table)
    }

    fn take(&mut self, step: PlanStep, control: &Control) -> Result<(), FdError> {
        match step {
            PlanStep::Set(number, fd) => self.table.set(number, fd),
            PlanStep::Copy { to, from } => {
                let fd = match self.table.get(from) {
                    // The number may be replaced before a child uses it.
                    Some(Fd::Inherited(fd)) => sys::duplicate(fd.as_fd())
                        .map(|fd| Fd::Owned(Arc::new(fd)))
                        .map_err(|error| FdError::Copy { number: from, error })?,
                    Some(fd) => fd.clone(),
                    None => return Err(FdError::Closed(from)),
                };
                self.table.set(to, fd)
            }
            PlanStep::Open { to, path, access } => {
                control.note(Call::Open(path.clone()));
                let fd = open_file(&self.directory, &path, access, self.umask, control)
                    .and_then(Fd::new)
                    .map_err(|error| FdError::File { path, error })?;
                self.table.set(to, fd)
            }
            PlanStep::StageFile { to, path, mode, staged_file, registry } => {
                control.note(Call::Open(path.clone()));
                let whole = self.directory.resolve(&path);
                let view = self.directory.view.as_ref();
                let registry = view.and_then(|view| view.registry_of(&whole)).unwrap_or(registry);
                let fd = match staged_file.begin(&path, &whole, mode, self.umask, &registry)? {
                    Some(file) => Fd::Owned(file),
                    None => {
                        let access = match mode {
                            CommitMode::Append => Access::Append,
                            CommitMode::Replace | CommitMode::Fill => Access::Write,
                        };
                        open_file(&self.directory, &path, access, self.umask, control)
                            .and_then(Fd::new)
                            .map_err(|error| FdError::File { path, error })?
                    }
                };
                self.table.set(to, fd)
            }
            PlanStep::Write(buffer, content) => buffer.append(&content).map_err(FdError::Variable),
            PlanStep::CopyBuffer { to, from } => to.append_from(&from).map_err(FdError::Variable),
            PlanStep::Read(to, buffer) => {
                let fd = buffer.reader().map_err(FdError::Variable)?;
                self.table.set(to, Fd::Reader(Arc::new(fd)))
            }
            PlanStep::ReadBytes(to, content) => {
                let fd = FileBuffer::reader_of(&content).map_err(FdError::Variable)?;
                self.table.set(to, Fd::Reader(Arc::new(fd)))
            }
            PlanStep::Seek(number, position) => {
                if let Some(fd) = self.table.get(number) {
                    fd.go_to(position);
                }
                Ok(())
            }
        }
    }
}

impl Plan {
    /// Adds a change after all others.
    pub(crate) fn set(&mut self, number: u8, fd: Fd) {
        self.steps.push(PlanStep::Set(number, fd));
    }

    /// Returns the descriptors known before execution: all except files still to be opened.
    pub(crate) fn known(&self) -> [Option<&Fd>; SIZE] {
        let mut table = self.table.descriptors.each_ref().map(Option::as_ref);
        for step in &self.steps {
            let (to, fd) = match step {
                PlanStep::Set(to, fd) => (*to, Some(fd)),
                PlanStep::Copy { to, from } => {
                    (*to, table.get(usize::from(*from)).copied().flatten())
                }
                PlanStep::Open { to, .. }
                | PlanStep::StageFile { to, .. }
                | PlanStep::Read(to, _)
                | PlanStep::ReadBytes(to, _) => (*to, None),
                PlanStep::Write(..) | PlanStep::CopyBuffer { .. } | PlanStep::Seek(..) => continue,
            };
            if let Some(place) = table.get_mut(usize::from(to)) {
                *place = fd;
            }
        }
        table
    }

    pub(crate) fn write(&mut self, buffer: &FileBuffer, content: BString) {
        if !content.is_empty() {
            self.steps.push(PlanStep::Write(buffer.clone(), content));
        }
    }
}
