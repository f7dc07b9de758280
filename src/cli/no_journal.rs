//! What stands in for journals in a shell that was built without them.

use std::convert::Infallible;
use std::fs::File;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Result, bail};
use bstr::BString;

use super::settings::{Look, Settings};
use super::source::Program;
use crate::driver::Durable;
use crate::driver::process::{AtEnd, Lifelines};
use crate::machine::effect::Environment;
use crate::machine::record::{Level, Record};
use crate::machine::{Config, Machine, Outcome, Time};
use crate::secrets::Secrets;
use crate::syntax::Script;

const WITHOUT: &str = "this ftsh was built without journals (its cargo feature `journal`)";

/// What came of asking for a journal.
#[expect(dead_code, reason = "there never is one")]
pub enum Taken {
    /// Never.
    Busy(String),
    /// Never.
    New(Place),
    /// Never.
    Earlier(Box<Earlier>),
}

/// What became of a run that an earlier start began.
#[expect(dead_code, reason = "there never is one")]
pub enum Found {
    /// Never.
    Unfinished(Recording),
    /// Never.
    Over(Ended),
    /// Never.
    Busy(String),
}

/// Never there.
pub struct Place {
    pub lifelines: Option<Rc<Lifelines>>,
    never: Infallible,
}

/// Never there.
pub struct Earlier(Infallible);

/// Never there.
#[derive(Clone)]
pub struct Kept(Infallible);

/// Never there.
pub struct Ended {
    pub place: Place,
    pub name: String,
    pub outcome: Outcome,
    pub elapsed: Time,
    pub secrets: Secrets,
}

/// Never there.
pub struct Recording {
    pub place: Place,
}

/// Never there.
pub struct Recorded {
    pub elapsed: Duration,
    pub journal: Kept,
}

/// None does.
pub fn has_earlier(_: &Path) -> bool {
    false
}

/// Says that there are none.
pub fn take(_: &Path) -> Result<Taken> {
    bail!(WITHOUT)
}

/// Says that there are none.
pub fn look(_: Look, path: &Path, settings: &Settings) -> Result<Outcome> {
    let _ = (path, &settings.picture);
    bail!(WITHOUT)
}

/// Never called.
pub fn open_output(place: &Place, _: bool) -> Result<File> {
    match place.never {}
}

/// Never called.
pub fn at_end(place: &Place, _: bool) -> Result<AtEnd> {
    match place.never {}
}

impl Earlier {
    /// Never called.
    pub fn run(&self) -> u64 {
        match self.0 {}
    }

    /// Never called.
    pub fn compared(&self, _: &Program, _: Option<&str>) -> Result<Option<String>> {
        match self.0 {}
    }

    /// Never called.
    pub fn repeat(self, _: Level, _: Duration, _: impl FnMut(&Record)) -> Result<Found> {
        match self.0 {}
    }
}

impl Recording {
    /// Never called.
    pub fn of(
        Place { never, .. }: Place,
        _: u64,
        _: &Script,
        _: Vec<BString>,
        _: Environment,
        _: Config,
        _: u64,
    ) -> Self {
        match never {}
    }

    /// Never called.
    pub fn begins(&self) -> bool {
        match self.place.never {}
    }

    /// Never called.
    pub fn name(&self) -> &str {
        match self.place.never {}
    }

    /// Never called.
    pub fn machine(&self) -> &Machine {
        match self.place.never {}
    }

    /// Never called.
    pub fn open(self) -> Result<Recorded> {
        match self.place.never {}
    }
}

impl Recorded {
    /// Never called.
    pub fn run(
        self,
        _: &mut impl Durable,
        _: u32,
        _: &str,
        _: Option<Duration>,
    ) -> Result<Outcome> {
        match self.journal.0 {}
    }
}

impl Kept {
    /// Never called.
    pub fn note(&self, _: &Record) {
        match self.0 {}
    }
}
