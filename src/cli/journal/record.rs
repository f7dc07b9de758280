//! Recording a run.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Result, anyhow};
use bstr::BString;

use super::super::messages::complain;
use super::moment::since_1970;
use super::place::Place;
use crate::driver::process::Lifelines;
use crate::driver::{self, Durable};
use crate::journal::{Beginning, Recorder, Writer};
use crate::machine::effect::Environment;
use crate::machine::record::Record;
use crate::machine::{Config, Machine, Outcome};
use crate::os_error::plain;
use crate::syntax::Script;

/// A journal that can begin.
pub struct Room {
    place: Place,
    run: u64,
    beginning: Beginning,
}

/// A journal that is written; clones are the same.
#[derive(Clone)]
pub struct Kept {
    path: Rc<PathBuf>,
    writer: Rc<RefCell<Writer<File>>>,
    /// Until the run is over.
    _lifelines: Option<Rc<Lifelines>>,
}

impl Place {
    /// It is to hold this run.
    pub fn of(
        self,
        run: u64,
        script: &Script,
        arguments: &[BString],
        environment: &Environment,
        config: &Config,
        seed: u64,
    ) -> Room {
        let now = since_1970();
        let beginning = Beginning::new(script, arguments, environment, config, seed, now);
        Room { place: self, run, beginning }
    }
}

impl Room {
    /// What tells others that this shell lives.
    pub fn lifelines(&self) -> Option<Rc<Lifelines>> {
        self.place.lifelines.clone()
    }

    /// The run begins now.
    pub fn begin(mut self) -> Result<Kept> {
        self.beginning.at = since_1970();
        let Place { path, file, lifelines } = self.place;
        let writer = Writer::begin(file, self.run, self.beginning);
        let writer = writer.map_err(|error| cannot_write(&path, &error))?;
        Ok(Kept {
            path: Rc::new(path),
            writer: Rc::new(RefCell::new(writer)),
            _lifelines: lifelines,
        })
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> anyhow::Error {
    anyhow!("can't write the journal `{}`: {}", path.display(), plain(error))
}

impl Kept {
    /// Keeps what a driver logs.
    pub fn note(&self, record: &Record) {
        self.writer.borrow_mut().note(record);
    }

    /// Runs a machine to its end, and keeps what it is told.
    pub fn run(&self, machine: &mut Machine, driver: &mut impl Durable) -> Result<Outcome> {
        let recorder = Recorder::new(driver, Rc::clone(&self.writer), None);
        let mut recorder = recorder.map_err(|error| cannot_write(&self.path, &error))?;
        let outcome = driver::run(machine, &mut recorder);
        if let Err(error) = recorder.end(&outcome) {
            complain(&format!("{}; the run ends", cannot_write(&self.path, &error)));
        }
        Ok(outcome)
    }
}
