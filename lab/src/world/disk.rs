//! A disk that producers fill with files and a consumer empties.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use bstr::{BString, ByteSlice};
use ftsh_machine::event::CommandStatus;
use ftsh_sim::{Call, Model};
use rand::RngExt;

use super::{Agenda, CommandModels, RunningProgram};

/// Parameters of the disk and of its programs. Sizes are in bytes.
#[derive(Clone, Debug)]
pub struct DiskSettings {
    /// Size of the disk.
    pub capacity: u64,
    /// Bytes that the consumer removes per second.
    pub drain: f64,
    /// Size of the largest file; sizes are uniform from 0.
    pub largest: u64,
    /// Time to produce a file of any size.
    pub production: Duration,
    /// Size of a block.
    pub block: u64,
    /// Duration of any other command.
    pub look: Duration,
}

/// State of the disk over time.
#[derive(Debug)]
pub struct DiskBuffer {
    setting: DiskSettings,
    used: u64,
    /// Files being written, and complete files that are not moved yet.
    incomplete: HashMap<BString, File>,
    writers: HashMap<RunningProgram, BString>,
    /// Sizes of complete files, oldest first. The consumer reads the first one.
    complete: VecDeque<u64>,
    complete_bytes: u64,
    /// Current file of each client. A file keeps its size when it is produced again.
    sizes: HashMap<usize, (BString, u64)>,
    /// Counts of the results.
    pub counts: FileCounts,
}

#[derive(Debug)]
struct File {
    size: u64,
    written: u64,
}

/// Counts of files.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileCounts {
    /// Files that the consumer took.
    pub consumed: u64,
    /// Bytes of these files.
    pub consumed_bytes: u64,
    /// Files that did not fit when a block was written.
    pub collisions: u64,
    /// Bytes that were written in vain.
    pub wasted_bytes: u64,
    /// Productions begun.
    pub productions: u64,
    /// Number of queries of the disk before a production.
    pub looks: u64,
}

impl FileCounts {
    /// Returns the number of queries without a production.
    pub fn deferrals(&self) -> u64 {
        self.looks.saturating_sub(self.productions)
    }
}

/// Alarms of the disk.
#[derive(Clone, Copy, Debug)]
pub enum DiskAlarm {
    /// A producer writes its next block.
    Writes(RunningProgram),
    /// The consumer has read a file.
    Consumed,
}

impl DiskBuffer {
    /// Creates an empty disk.
    pub fn new(setting: DiskSettings) -> Self {
        Self {
            setting,
            used: 0,
            incomplete: HashMap::new(),
            writers: HashMap::new(),
            complete: VecDeque::new(),
            complete_bytes: 0,
            sizes: HashMap::new(),
            counts: FileCounts::default(),
        }
    }

    fn produce(
        &mut self,
        program: RunningProgram,
        name: &BString,
        agenda: &mut Agenda<DiskAlarm>,
    ) -> Model {
        self.counts.productions += 1;
        let size = match self.sizes.get(&program.client) {
            Some((known, size)) if known == name => *size,
            _ => {
                let size = agenda.random.random_range(1..=self.setting.largest);
                self.sizes.insert(program.client, (name.clone(), size));
                size
            }
        };
        self.incomplete.insert(name.clone(), File { size, written: 0 });
        self.writers.insert(program, name.clone());
        agenda.wake(agenda.now() + self.pause(size), DiskAlarm::Writes(program));
        Model::hangs()
    }

    /// Returns the time between two blocks, which are spread evenly over the production.
    fn pause(&self, size: u64) -> Duration {
        self.setting.production.div_f64(size.div_ceil(self.setting.block) as f64)
    }

    fn write(&mut self, program: RunningProgram, agenda: &mut Agenda<DiskAlarm>) {
        let Some(name) = self.writers.get(&program) else { return };
        let Some(file) = self.incomplete.get_mut(name) else { return };
        let block = self.setting.block.min(file.size - file.written);
        if self.used + block > self.setting.capacity {
            self.counts.collisions += 1;
            agenda.end(program, CommandStatus::Exited(1));
            self.give_up(program);
            return;
        }
        self.used += block;
        file.written += block;
        if file.written == file.size {
            self.writers.remove(&program);
            agenda.end(program, CommandStatus::Exited(0));
        } else {
            let pause = self.pause(self.incomplete[name].size);
            agenda.wake(agenda.now() + pause, DiskAlarm::Writes(program));
        }
    }

    /// Deletes the file of a producer.
    fn give_up(&mut self, program: RunningProgram) {
        let file = self.writers.remove(&program).and_then(|name| self.incomplete.remove(&name));
        if let Some(file) = file {
            self.used -= file.written;
            self.counts.wasted_bytes += file.written;
        }
    }

    fn complete(&mut self, name: &[u8], agenda: &mut Agenda<DiskAlarm>) -> Model {
        let Some(file) = self.incomplete.remove(name.as_bstr()) else { return Model::fails(1) };
        self.complete.push_back(file.size);
        self.complete_bytes += file.size;
        if self.complete.len() == 1 {
            self.consume(agenda);
        }
        Model::succeeds()
    }

    fn consume(&mut self, agenda: &mut Agenda<DiskAlarm>) {
        if let Some(size) = self.complete.front() {
            let takes = Duration::from_secs_f64(*size as f64 / self.setting.drain);
            agenda.wake(agenda.now() + takes, DiskAlarm::Consumed);
        }
    }
}

impl CommandModels for DiskBuffer {
    type Alarm = DiskAlarm;

    fn start(
        &mut self,
        program: RunningProgram,
        call: &Call,
        agenda: &mut Agenda<DiskAlarm>,
    ) -> Option<Model> {
        let words: Vec<&[u8]> = call.words.iter().map(|word| word.as_bytes()).collect();
        let lines = |count: usize| "x\n".repeat(count);
        let model = match &words[..] {
            [b"simulate", b"--output", path] => {
                return Some(self.produce(program, &base(path), agenda));
            }
            [b"mv", path, b"/buffer/complete/"] => self.complete(&base(path), agenda),
            [b"findmnt", .., b"SIZE", b"/buffer"] => {
                self.counts.looks += 1;
                Model::succeeds().prints(format!("{}\n", self.setting.capacity))
            }
            [b"ls", b"/buffer/incomplete"] => {
                Model::succeeds().prints(lines(self.incomplete.len()))
            }
            [b"ls", b"/buffer/complete"] => Model::succeeds().prints(lines(self.complete.len())),
            [b"du", b"--bytes", b"--summarize", path @ b"/buffer/complete"] => {
                let path = path.as_bstr();
                Model::succeeds().prints(format!("{}\t{path}\n", self.complete_bytes))
            }
            [b"wc", b"-l"] => {
                let lines = call.input.lines().count();
                Model::succeeds().prints(format!("{lines}\n"))
            }
            [b"tr", b"-cd", b"0-9"] => {
                let digits: Vec<u8> =
                    call.input.iter().copied().filter(u8::is_ascii_digit).collect();
                Model::succeeds().prints(digits)
            }
            _ => return None,
        };
        Some(model.takes(self.setting.look))
    }

    fn cut_short(&mut self, program: RunningProgram, _: &mut Agenda<DiskAlarm>) {
        self.give_up(program);
    }

    fn alarm(&mut self, alarm: DiskAlarm, agenda: &mut Agenda<DiskAlarm>) {
        match alarm {
            DiskAlarm::Writes(program) => self.write(program, agenda),
            DiskAlarm::Consumed => {
                if let Some(size) = self.complete.pop_front() {
                    self.used -= size;
                    self.complete_bytes -= size;
                    self.counts.consumed += 1;
                    self.counts.consumed_bytes += size;
                }
                self.consume(agenda);
            }
        }
    }
}

/// Returns the last part of a path.
fn base(path: &[u8]) -> BString {
    path.rsplit_str("/").next().unwrap_or(path).into()
}
