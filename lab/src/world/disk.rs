//! A disk that producers fill with files and a consumer empties.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use bstr::{BString, ByteSlice};
use ftsh_machine::event::CommandStatus;
use ftsh_sim::{Call, Model};
use rand::RngExt;

use super::{Agenda, Commands, Program};

/// What is known of the disk, and of the programs that use it. Sizes are in bytes.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The disk's size.
    pub capacity: u64,
    /// How much the consumer takes away in a second.
    pub drain: f64,
    /// The size of the largest file; sizes are uniform from 0.
    pub largest: u64,
    /// How long making a file takes, whatever its size.
    pub production: Duration,
    /// What is written at once.
    pub block: u64,
    /// How long any other command takes.
    pub look: Duration,
}

/// The disk in the course of time.
#[derive(Debug)]
pub struct Buffer {
    setting: Setting,
    used: u64,
    /// Those being written, and those that are whole but not yet moved.
    incomplete: HashMap<BString, File>,
    writers: HashMap<Program, BString>,
    /// Sizes, the oldest first. The consumer works on the first.
    complete: VecDeque<u64>,
    complete_bytes: u64,
    /// What each client makes: a file that is made again has the same size.
    sizes: HashMap<usize, (BString, u64)>,
    /// What came of it.
    pub counts: Counts,
}

#[derive(Debug)]
struct File {
    size: u64,
    written: u64,
}

/// What came of all files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Files that the consumer took.
    pub consumed: u64,
    /// Bytes of them.
    pub consumed_bytes: u64,
    /// Files that didn't fit when a part of them was written.
    pub collisions: u64,
    /// Bytes that were written for nothing.
    pub wasted_bytes: u64,
    /// Productions begun.
    pub productions: u64,
    /// How often a producer looked at the disk first.
    pub looks: u64,
}

impl Counts {
    /// How often a producer looked and then produced nothing.
    pub fn deferrals(&self) -> u64 {
        self.looks.saturating_sub(self.productions)
    }
}

/// What the disk wants to be woken for.
#[derive(Clone, Copy, Debug)]
pub enum Alarm {
    /// A producer writes its next block.
    Writes(Program),
    /// The consumer is done with a file.
    Consumed,
}

impl Buffer {
    /// An empty disk.
    pub fn new(setting: Setting) -> Self {
        Self {
            setting,
            used: 0,
            incomplete: HashMap::new(),
            writers: HashMap::new(),
            complete: VecDeque::new(),
            complete_bytes: 0,
            sizes: HashMap::new(),
            counts: Counts::default(),
        }
    }

    fn produce(&mut self, program: Program, name: &BString, agenda: &mut Agenda<Alarm>) -> Model {
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
        agenda.wake(agenda.now() + self.pause(size), Alarm::Writes(program));
        Model::hangs()
    }

    /// From one block to the next: they are spread evenly over the time it takes.
    fn pause(&self, size: u64) -> Duration {
        self.setting.production.div_f64(size.div_ceil(self.setting.block) as f64)
    }

    fn write(&mut self, program: Program, agenda: &mut Agenda<Alarm>) {
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
            agenda.wake(agenda.now() + pause, Alarm::Writes(program));
        }
    }

    /// Deletes what a producer has written.
    fn give_up(&mut self, program: Program) {
        let file = self.writers.remove(&program).and_then(|name| self.incomplete.remove(&name));
        if let Some(file) = file {
            self.used -= file.written;
            self.counts.wasted_bytes += file.written;
        }
    }

    fn complete(&mut self, name: &[u8], agenda: &mut Agenda<Alarm>) -> Model {
        let Some(file) = self.incomplete.remove(name.as_bstr()) else { return Model::fails(1) };
        self.complete.push_back(file.size);
        self.complete_bytes += file.size;
        if self.complete.len() == 1 {
            self.consume(agenda);
        }
        Model::succeeds()
    }

    fn consume(&mut self, agenda: &mut Agenda<Alarm>) {
        if let Some(size) = self.complete.front() {
            let takes = Duration::from_secs_f64(*size as f64 / self.setting.drain);
            agenda.wake(agenda.now() + takes, Alarm::Consumed);
        }
    }
}

impl Commands for Buffer {
    type Alarm = Alarm;

    fn start(
        &mut self,
        program: Program,
        call: &Call,
        agenda: &mut Agenda<Alarm>,
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

    fn cut_short(&mut self, program: Program, _: &mut Agenda<Alarm>) {
        self.give_up(program);
    }

    fn alarm(&mut self, alarm: Alarm, agenda: &mut Agenda<Alarm>) {
        match alarm {
            Alarm::Writes(program) => self.write(program, agenda),
            Alarm::Consumed => {
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

/// A path's last part.
fn base(path: &[u8]) -> BString {
    path.rsplit_str("/").next().unwrap_or(path).into()
}
