//! Directory of a task, which attempts begin in again.

use crate::effect::Directory;
use crate::values::variables::{Variable, Variables};

/// Variables that `cd` sets.
const NAMES: [&str; 2] = ["PWD", "OLDPWD"];

/// Directory of a task, to return to.
#[derive(Clone, Debug)]
pub(crate) struct WorkingDirectory {
    /// The directory; `None` for the shell's own.
    directory: Directory,
    /// Variables that `cd` sets.
    variables: [Option<Variable>; 2],
}

impl WorkingDirectory {
    /// Records a directory with the variables that `cd` sets.
    pub(crate) fn of(directory: &Directory, variables: &Variables) -> Self {
        let variables = NAMES.map(|name| variables.get(name).cloned());
        Self { directory: directory.clone(), variables }
    }

    /// Returns to the directory. Variables stay unless the directory has changed.
    pub(crate) fn restore(&self, directory: &mut Directory, variables: &mut Variables) {
        if *directory == self.directory {
            return;
        }
        directory.clone_from(&self.directory);
        for (name, value) in NAMES.into_iter().zip(&self.variables) {
            variables.put(&name.into(), value.clone());
        }
    }
}
