//! A task's variables. A fork shares the values of its parent, and copies only its own changes.

mod small_map;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bstr::BString;

use self::small_map::SmallMap;
use crate::effect::Environment;
use crate::secrets::Secrets;
use crate::values::{List, Value};
use ftsh_syntax::ast::Name;

/// Variable with a value.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    /// Value of the variable.
    pub value: Value,
    /// True if commands receive the variable in their environment.
    pub exported: bool,
    /// True if the value came from the environment and was not assigned by the script.
    pub inherited: bool,
}

/// Saved state of a variable.
#[derive(Clone, Debug)]
pub(crate) struct SavedVariable {
    /// Name of the variable.
    pub name: Name,
    /// Saved variable; `None` if unset.
    pub variable: Option<Variable>,
    /// True if the task had changed the variable.
    pub changed: bool,
}

/// New state of a variable; `None` if it was unset.
pub(crate) type Change = Option<Variable>;

/// Changes of variables by name.
pub(crate) type Changes = BTreeMap<Name, Change>;

/// Variable set or unset since the last fork.
#[derive(Clone, Debug)]
struct Own {
    change: Change,
    /// True if the variable was changed and restored to its state before the task.
    is_as_before: bool,
}

/// Variables of a task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variables {
    shared: Arc<BTreeMap<Name, Variable>>,
    /// Variables set or unset since the last fork.
    own: SmallMap<Own>,
    /// Names of variables changed by the task before the last fork; their values are in `shared`.
    changed: BTreeSet<Name>,
    /// True if `shared` has entries overridden by `own`, kept because another task may share them.
    stale: bool,
    environment: Option<Arc<Environment>>,
    /// Secrets, extended by the values of secret variables.
    pub secrets: Secrets,
}

impl Variables {
    /// Creates the variables of an environment. Names and values that are not valid for variables
    /// are passed on unchanged.
    pub(crate) fn new(environment: Vec<(BString, BString)>, secrets: Secrets) -> Self {
        let shared = environment.into_iter().map(|(name, value)| {
            let name = Name::from(String::from_utf8_lossy(&name));
            secrets.learn(&name, &value);
            (name, Variable { value: value.into(), exported: true, inherited: true })
        });
        Self { shared: Arc::new(shared.collect()), secrets, ..Self::default() }
    }

    /// Creates variables from a map.
    pub(crate) fn of(variables: BTreeMap<Name, Variable>, secrets: Secrets) -> Self {
        for (name, variable) in variables.iter().filter(|(name, _)| secrets.names(name)) {
            if let Some(value) = variable.value.text() {
                secrets.learn(name, &value);
            }
        }
        Self { shared: Arc::new(variables), secrets, ..Self::default() }
    }

    /// Iterates over all variables with a value, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Name, &Variable)> {
        self.unsorted().collect::<BTreeMap<_, _>>().into_iter()
    }

    fn unsorted(&self) -> impl Iterator<Item = (&Name, &Variable)> {
        let own = self.own.iter().filter_map(|(name, own)| Some((name, own.change.as_ref()?)));
        let shared = self.shared.iter().filter(|(name, _)| self.own.get(name).is_none());
        own.chain(shared)
    }

    /// Returns a variable by name, if set.
    pub(crate) fn get(&self, name: &str) -> Option<&Variable> {
        match self.own.get(name) {
            Some(own) => own.change.as_ref(),
            None => self.shared.get(name),
        }
    }

    /// Sets a variable, which stays exported if it was.
    pub(crate) fn set(&mut self, name: &Name, value: Value) {
        // Fast path for loops: a variable of the task's own, neither exported nor secret.
        if let Some(Own { change: Some(variable), is_as_before }) = self.own.get_mut(name)
            && !variable.exported
            && !self.secrets.names(name)
        {
            *variable = Variable { value, exported: false, inherited: false };
            *is_as_before = false;
            return self.drop_overridden();
        }
        let exported = self.get(name).is_some_and(|variable| variable.exported);
        self.put(name, Some(Variable { value, exported, inherited: false }));
    }

    /// Sets a variable to a list, which is never exported.
    pub(crate) fn set_list(&mut self, name: &Name, list: Arc<List>) {
        let value = Value::List(list);
        self.put(name, Some(Variable { value, exported: false, inherited: false }));
    }

    /// Changes a list in place, unless another task or variable shares the list. An unset variable
    /// becomes a list. Returns `None` for a variable that is no list.
    pub(crate) fn change_list<T>(
        &mut self,
        name: &Name,
        change: impl FnOnce(&mut List) -> T,
    ) -> Option<T> {
        let is_own = self.own.get(name).is_some_and(|own| own.change.is_some());
        if !is_own {
            match self.get(name).map(|variable| &variable.value) {
                None => self.set_list(name, Arc::default()),
                Some(Value::List(list)) => {
                    let list = Arc::clone(list);
                    self.set_list(name, list);
                }
                Some(_) => return None,
            }
        }
        let own = self.own.get_mut(name)?;
        let Some(Variable { value: Value::List(list), .. }) = &mut own.change else { return None };
        own.is_as_before = false;
        let result = change(Arc::make_mut(list));
        if self.secrets.names(name) {
            self.secrets.learn(name, &list.text());
        }
        Some(result)
    }

    /// Unsets a variable.
    pub(crate) fn unset(&mut self, name: &Name) {
        self.put(name, None);
    }

    /// Saves the state of a variable.
    pub(crate) fn keep(&self, name: &Name) -> SavedVariable {
        let (variable, changed) = (self.get(name).cloned(), self.change(name).is_some());
        SavedVariable { name: Arc::clone(name), variable, changed }
    }

    /// Restores a saved variable. If the task had not changed the variable before, the task counts
    /// as not having changed it.
    pub(crate) fn put_back(&mut self, SavedVariable { name, variable, changed }: SavedVariable) {
        self.put(&name, variable);
        if !changed {
            self.changed.remove(&name);
            if let Some(own) = self.own.get_mut(&name) {
                own.is_as_before = true;
            }
        }
    }

    /// Passes a variable to commands, if it is set.
    pub(crate) fn export(&mut self, name: &Name) {
        if let Some(variable) = self.get(name).cloned() {
            self.put(name, Some(Variable { exported: true, inherited: false, ..variable }));
        }
    }

    /// Sets or unsets a variable.
    pub(crate) fn put(&mut self, name: &Name, change: Change) {
        let was = self.get(name).is_some_and(|variable| variable.exported);
        if was || change.as_ref().is_some_and(|variable| variable.exported) {
            self.environment = None;
        }
        if self.secrets.names(name)
            && let Some(value) = change.as_ref().and_then(|variable| variable.value.text())
        {
            self.secrets.learn(name, &value);
        }
        // The previous value is dropped, unless another task shares it.
        self.stale |= self.shared.contains_key(name);
        self.own.insert(Arc::clone(name), Own { change, is_as_before: false });
        self.drop_overridden();
    }

    /// Drops overridden values, unless another task shares them.
    fn drop_overridden(&mut self) {
        if self.stale
            && let Some(shared) = Arc::get_mut(&mut self.shared)
        {
            shared.retain(|name, _| self.own.get(name).is_none());
            self.stale = false;
        }
    }

    /// Returns a variable's value, if no other task may share the value.
    pub(crate) fn own(&mut self, name: &str) -> Option<&Value> {
        let variable = match self.own.get(name) {
            Some(own) => own.change.as_ref(),
            None => Arc::get_mut(&mut self.shared)?.get(name),
        };
        variable.map(|variable| &variable.value)
    }

    /// Creates a copy for another task, at the cost of the changes since the last copy.
    pub(crate) fn fork(&mut self) -> Self {
        if !self.own.is_empty() {
            let shared = Arc::make_mut(&mut self.shared);
            self.stale = false;
            for (name, Own { change, is_as_before }) in self.own.take() {
                match change {
                    Some(variable) => shared.insert(Arc::clone(&name), variable),
                    None => shared.remove(&name),
                };
                if !is_as_before {
                    self.changed.insert(name);
                }
            }
        }
        let changed = std::mem::take(&mut self.changed);
        let copy = self.clone();
        self.changed = changed;
        copy
    }

    /// Returns the change of a variable since the copy was made, if any.
    pub(crate) fn change(&self, name: &Name) -> Option<Change> {
        match self.own.get(name) {
            Some(own) if own.is_as_before => None,
            Some(own) => Some(own.change.clone()),
            None if self.changed.contains(name) => Some(self.shared.get(name).cloned()),
            None => None,
        }
    }

    /// Returns all changes since the copy was made.
    pub(crate) fn into_changes(self) -> Changes {
        let Self { mut own, mut shared, changed, .. } = self;
        let before = changed.into_iter().map(|name| {
            let variable = match Arc::get_mut(&mut shared) {
                Some(shared) => shared.remove(&name),
                None => shared.get(&name).cloned(),
            };
            (name, variable)
        });
        let mut changes: Changes = before.collect();
        let own = own.take().into_iter().filter(|(_, own)| !own.is_as_before);
        changes.extend(own.map(|(name, own)| (name, own.change)));
        changes
    }

    /// Applies the changes made in a copy.
    pub(crate) fn absorb(&mut self, changes: Changes) {
        for (name, variable) in changes {
            self.put(&name, variable);
        }
        self.drop_overridden();
    }

    /// Returns all variables with their values. The value of a buffer, or of a text longer than
    /// `longest` bytes, is `None`.
    pub(crate) fn all(&self, longest: usize) -> Vec<(Name, Option<BString>)> {
        self.unsorted()
            .map(|(name, variable)| {
                let text = variable.value.text().filter(|text| text.len() <= longest);
                (Arc::clone(name), text.map(std::borrow::Cow::into_owned))
            })
            .collect()
    }

    /// Returns the environment kept by [`Variables::remember`], unless an exported variable has
    /// changed.
    pub(crate) fn environment(&self) -> Option<Arc<Environment>> {
        self.environment.clone()
    }

    /// Collects the exported variables, sorted by name. `text` converts a value to text.
    pub(crate) fn exported<E>(
        &self,
        text: impl Fn(&Value) -> Result<BString, E>,
    ) -> Result<Environment, E> {
        let mut exported: Vec<(&Name, &Value)> = self
            .unsorted()
            .filter(|(_, variable)| variable.exported)
            .map(|(name, variable)| (name, &variable.value))
            .collect();
        // Sorting first makes the order of queries reproducible.
        exported.sort_by_key(|(name, _)| *name);
        let pairs = exported.into_iter().map(|(name, value)| Ok(((&**name).into(), text(value)?)));
        pairs.collect()
    }

    /// Keeps the environment for the next commands.
    pub(crate) fn remember(&mut self, environment: &Arc<Environment>) {
        self.environment = Some(Arc::clone(environment));
    }
}
