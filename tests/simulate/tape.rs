//! Journal of a run, with checks that the run can be replayed.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use bstr::BString;
use ftsh_journal::{Beginning, Started, Store, Writer, read, replay};
use ftsh_machine::record::{Level, LogRecord};
use ftsh_machine::{Config, Effect, Event, Outcome, Time};
use ftsh_syntax::Script;

use crate::dice::Dice;
use crate::oracle::Violation;
use crate::traces::Traced;

/// Size of unwritten entries above which they are committed.
const SOON: Duration = Duration::from_millis(100);

/// A disk in memory.
#[derive(Clone, Default)]
pub(crate) struct Memory(Rc<RefCell<Vec<u8>>>);

impl Memory {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.borrow().clone()
    }
}

impl Store for Memory {
    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut memory = self.0.borrow_mut();
        memory.truncate(at as usize);
        memory.extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.0.borrow_mut().truncate(length as usize);
        Ok(())
    }
}

/// A start of a run.
pub(crate) fn started() -> Started {
    let zero = Duration::ZERO;
    Started {
        at: zero,
        since_boot: zero,
        boot: String::new(),
        elapsed: zero,
        pid: 42,
        interpreter: 42,
        mark: "42-0".into(),
        directory: "/".into(),
        umask: 0o22,
        ignored: Vec::new(),
        user: 0,
        version: "0".into(),
    }
}

/// Recorder of the events of a machine.
pub(crate) struct Tape {
    memory: Memory,
    writer: Writer<Memory>,
}

impl Tape {
    pub(crate) fn new(
        script: &Script,
        arguments: &[BString],
        environment: &[(BString, BString)],
        config: &Config,
        seed: u64,
    ) -> Self {
        let memory = Memory::default();
        let beginning =
            Beginning::new(script, arguments, environment, config, seed, Duration::ZERO);
        let writer = Writer::begin(memory.clone(), seed, beginning).expect("memory");
        Self { memory, writer }
    }

    pub(crate) fn perform(&mut self, effect: &Effect) {
        self.writer.perform(effect).expect("memory");
    }

    pub(crate) fn wait(&mut self, now: Time) {
        if self.writer.wait(now).is_some_and(|until| until <= now + SOON) {
            self.writer.commit().expect("memory");
        }
    }

    pub(crate) fn tell(&mut self, now: Time, event: Option<&Event>) {
        self.writer.record_delivery(now, event).expect("memory");
    }

    /// Checks at the end of a run that the run and any beginning of it can be replayed at any log
    /// level.
    pub(crate) fn judge(
        mut self,
        dice: &mut Dice,
        now: Time,
        outcome: &Outcome,
        traced: Option<Traced>,
    ) -> Result<(), Violation> {
        let wrong = |what: String| Err(Violation { oracle: "replay", what });
        self.writer.end(outcome).expect("memory");
        let bytes = self.memory.0.borrow();
        let journal = match read(&bytes) {
            Ok(journal) => journal,
            Err(error) => return wrong(error.to_string()),
        };
        if let Some(traced) = traced {
            traced.judge(&journal, now, outcome)?;
        }
        let level = *dice.pick(&[Level::NOTHING, Level::COMMANDS, Level::PROCESSES]);
        match replay(&journal, level, |_: &LogRecord| ()) {
            Err(error) => return wrong(error.to_string()),
            Ok(again) if again.outcome.as_ref() != Some(outcome) => {
                return wrong(format!("{:?} instead of {outcome:?}", again.outcome));
            }
            Ok(_) => {}
        }
        let cut = dice.number(0, bytes.len());
        if let Ok(journal) = read(&bytes[..cut])
            && let Err(error) = replay(&journal, level, |_: &LogRecord| ())
        {
            return wrong(format!("of the first {cut} bytes: {error}"));
        }
        Ok(())
    }
}
