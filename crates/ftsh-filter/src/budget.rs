//! Limits of a filter in execution.
//!
//! jaq looks up each term of a filter in a table that the context returns. The context counts the
//! requests for the table. Past the limit, the context returns a spare table, in which every term
//! ends the execution.

use std::cell::{Cell, OnceCell};

use jaq_core::box_iter::box_once;
use jaq_core::data::HasLut;
use jaq_core::load::{Arena, File, Loader};
use jaq_core::native::{Fun, v};
use jaq_core::{DataT, Exn, Lut, Native};
use jaq_json::Val;

use crate::Filter;

/// Native stack that a filter may use, in bytes. A shell has a stack of 8 MiB.
const MAX_STACK: usize = 2 * 1024 * 1024;
/// Number of terms of the standard filters, rounded up.
const STANDARD_TERMS: usize = 16 * 1024;
/// Maximum number of terms per byte of a filter.
const TERMS_PER_BYTE: usize = 8;

/// Limit that a filter exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExceededLimit {
    Steps,
    Stack,
}

/// Steps left for a filter, and the native stack at its beginning.
#[derive(Debug)]
pub(crate) struct Budget {
    steps: Cell<u64>,
    stack: usize,
    cut: Cell<Option<ExceededLimit>>,
}

impl Budget {
    pub(crate) fn new(steps: u64) -> Self {
        Self { steps: Cell::new(steps), stack: stack_pointer(), cut: Cell::new(None) }
    }

    /// Returns the limit that was exceeded, if any.
    pub(crate) fn cut(&self) -> Option<ExceededLimit> {
        self.cut.get()
    }

    /// Counts a step. Returns false if a limit is exceeded.
    fn spend(&self) -> bool {
        if self.cut.get().is_some() {
            return false;
        }
        match self.steps.get().checked_sub(1) {
            None => self.cut.set(Some(ExceededLimit::Steps)),
            Some(_) if self.stack.abs_diff(stack_pointer()) > MAX_STACK => {
                self.cut.set(Some(ExceededLimit::Stack));
            }
            Some(steps) => self.steps.set(steps),
        }
        self.cut.get().is_none()
    }
}

/// Returns an address in the current frame of the native stack.
#[inline(never)]
fn stack_pointer() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&here)) as usize
}

/// Table of terms that end the execution, compiled on the first use.
pub(crate) struct Spare {
    terms: usize,
    natives: fn() -> Vec<Fun<FilterData>>,
    filter: OnceCell<Filter>,
}

impl Spare {
    /// Creates a table for a filter of this many bytes, compiled with these native filters.
    pub(crate) fn new(bytes: usize, natives: fn() -> Vec<Fun<FilterData>>) -> Self {
        let terms = STANDARD_TERMS + TERMS_PER_BYTE * bytes;
        Self { terms, natives, filter: OnceCell::new() }
    }

    fn table(&self) -> &Lut<FilterData> {
        let filter = || {
            let (arena, loader) = (Arena::default(), Loader::new([]));
            let code = ends(self.terms);
            let modules = loader.load(&arena, File { code: &code, path: () }).ok()?;
            // Executions in progress call native filters by their position.
            let natives = (self.natives)().into_iter().chain([(END, v(0), end())]);
            jaq_core::Compiler::default().with_funs(natives).compile(modules).ok()
        };
        &self.filter.get_or_init(|| filter().unwrap_or_default()).lut
    }
}

const END: &str = "end_of_execution";

/// Returns a filter with at least this many terms, each of which is [`END`] or begins with it.
fn ends(terms: usize) -> String {
    if terms <= 1 {
        return END.to_owned();
    }
    let half = ends(terms / 2);
    format!("({half},{half})")
}

/// Returns a native filter that ends the execution, which no filter can catch.
fn end() -> Native<FilterData> {
    Native::new(|_| box_once(Err(Exn::halt(0))))
        .with_paths(|_| box_once(Err(Exn::halt(0))))
        .with_update(|_, _| box_once(Err(Exn::halt(0))))
}

/// Types of jaq's values and context.
pub(crate) struct FilterData;

impl DataT for FilterData {
    type V<'a> = Val;
    type Data<'a> = Context<'a>;
}

/// Context of a filter in execution.
#[derive(Clone)]
pub(crate) struct Context<'a> {
    table: &'a Lut<FilterData>,
    spare: &'a Spare,
    budget: &'a Budget,
}

impl<'a> Context<'a> {
    pub(crate) fn new(table: &'a Lut<FilterData>, spare: &'a Spare, budget: &'a Budget) -> Self {
        Self { table, spare, budget }
    }
}

impl<'a> HasLut<'a, FilterData> for Context<'a> {
    fn lut(&self) -> &'a Lut<FilterData> {
        if self.budget.spend() { self.table } else { self.spare.table() }
    }
}
