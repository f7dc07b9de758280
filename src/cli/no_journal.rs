//! What stands in for journals in a shell that was built without them.

use std::convert::Infallible;
use std::path::Path;
use std::rc::Rc;

use anyhow::{Result, bail};
use bstr::BString;

use super::settings::{Look, Settings};
use crate::driver::Driver;
use crate::driver::process::Lifelines;
use crate::machine::effect::Environment;
use crate::machine::record::Record;
use crate::machine::{Config, Machine, Outcome};
use crate::syntax::Script;

const WITHOUT: &str = "this ftsh was built without journals (its cargo feature `journal`)";

/// What came of asking for a journal.
#[expect(dead_code, reason = "there never is one")]
pub enum Prepared {
    /// Never.
    Busy(String),
    /// Never.
    Ready(Room),
}

/// Never there.
#[derive(Clone)]
pub struct Room(Infallible);

/// Says that there are none.
pub fn prepare(_: &Path) -> Result<Prepared> {
    bail!(WITHOUT)
}

/// Says that there are none.
pub fn look(_: Look, _: &Path, _: &Settings) -> Result<Outcome> {
    bail!(WITHOUT)
}

impl Room {
    /// Never called.
    pub fn lifelines(&self) -> Option<Rc<Lifelines>> {
        match self.0 {}
    }

    /// Never called.
    pub fn of(
        self,
        _: u64,
        _: &Script,
        _: &[BString],
        _: &Environment,
        _: &Config,
        _: u64,
    ) -> Self {
        match self.0 {}
    }

    /// Never called.
    pub fn begin(self) -> Result<Self> {
        match self.0 {}
    }

    /// Never called.
    pub fn note(&self, _: &Record) {
        match self.0 {}
    }

    /// Never called.
    pub fn run(&self, _: &mut Machine, _: &mut impl Driver) -> Result<Outcome> {
        match self.0 {}
    }
}
