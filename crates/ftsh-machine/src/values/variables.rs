//! A task's variables. A fork shares what its parent had and copies only what it changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bstr::BString;

use crate::effect::Environment;
use crate::secrets::Secrets;
use crate::values::small_map::SmallMap;
use crate::values::value::Value;
use ftsh_syntax::ast::Name;

/// A variable that is set.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its value.
    pub value: Value,
    /// Whether commands get it in their environment.
    pub exported: bool,
    /// Whether it came with the environment and the script has not assigned it.
    pub inherited: bool,
}

/// A variable as it was, to be put back.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Its name.
    pub name: Name,
    /// None if it was unset.
    pub variable: Option<Variable>,
    /// Whether the task had made it so.
    pub changed: bool,
}

/// What a variable was made: none is one that was unset.
pub type Change = Option<Variable>;

/// What became of variables.
pub type Changes = BTreeMap<Name, Change>;

/// A variable that was set or unset.
#[derive(Clone, Debug)]
struct Own {
    change: Change,
    /// Whether it is what it was before the task, after something else for a while.
    is_as_before: bool,
}

/// Names and their values.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    shared: Arc<BTreeMap<Name, Variable>>,
    /// What was set or unset since the last fork.
    own: SmallMap<Own>,
    /// What this task changed before the last fork: `shared` says how.
    changed: BTreeSet<Name>,
    /// Whether `shared` holds what `own` says otherwise, for others may need it.
    stale: bool,
    environment: Option<Arc<Environment>>,
    /// What isn't to be said of them.
    pub secrets: Secrets,
}

impl Variables {
    /// The variables that come with an environment. Names and values that are not of a
    /// variable's form are handed on all the same.
    pub fn new(environment: Vec<(BString, BString)>, secrets: Secrets) -> Self {
        let shared = environment.into_iter().map(|(name, value)| {
            let name = Name::from(String::from_utf8_lossy(&name));
            secrets.learn(&name, &value);
            (name, Variable { value: value.into(), exported: true, inherited: true })
        });
        Self { shared: Arc::new(shared.collect()), secrets, ..Self::default() }
    }

    /// These variables.
    pub fn of(variables: BTreeMap<Name, Variable>, secrets: Secrets) -> Self {
        for (name, variable) in variables.iter().filter(|(name, _)| secrets.names(name)) {
            if let Some(value) = variable.value.text() {
                secrets.learn(name, &value);
            }
        }
        Self { shared: Arc::new(variables), secrets, ..Self::default() }
    }

    /// All variables that are set, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, &Variable)> {
        self.unsorted().collect::<BTreeMap<_, _>>().into_iter()
    }

    fn unsorted(&self) -> impl Iterator<Item = (&Name, &Variable)> {
        let own = self.own.iter().filter_map(|(name, own)| Some((name, own.change.as_ref()?)));
        let shared = self.shared.iter().filter(|(name, _)| self.own.get(name).is_none());
        own.chain(shared)
    }

    /// The variable of this name, if it is set.
    pub fn get(&self, name: &str) -> Option<&Variable> {
        match self.own.get(name) {
            Some(own) => own.change.as_ref(),
            None => self.shared.get(name),
        }
    }

    /// Sets a variable. One that is exported stays so.
    pub fn set(&mut self, name: &Name, value: Value) {
        // What loops do: a variable of the task's own that only the script knows.
        if let Some(Own { change: Some(variable), is_as_before }) = self.own.get_mut(name)
            && !variable.exported
            && !self.secrets.names(name)
        {
            *variable = Variable { value, exported: false, inherited: false };
            *is_as_before = false;
            return self.let_go();
        }
        let exported = self.get(name).is_some_and(|variable| variable.exported);
        self.put(name, Some(Variable { value, exported, inherited: false }));
    }

    /// Unsets a variable.
    pub fn unset(&mut self, name: &Name) {
        self.put(name, None);
    }

    /// A variable as it is now.
    pub fn keep(&self, name: &Name) -> Kept {
        let (variable, changed) = (self.get(name).cloned(), self.change(name).is_some());
        Kept { name: Arc::clone(name), variable, changed }
    }

    /// Sets or unsets a variable as it was before. If that was not of the task's making, the task has not
    /// changed it.
    pub fn put_back(&mut self, Kept { name, variable, changed }: Kept) {
        self.put(&name, variable);
        if !changed {
            self.changed.remove(&name);
            if let Some(own) = self.own.get_mut(&name) {
                own.is_as_before = true;
            }
        }
    }

    /// Sets or unsets a variable.
    pub fn put(&mut self, name: &Name, change: Change) {
        let was = self.get(name).is_some_and(|variable| variable.exported);
        if was || change.as_ref().is_some_and(|variable| variable.exported) {
            self.environment = None;
        }
        if self.secrets.names(name)
            && let Some(value) = change.as_ref().and_then(|variable| variable.value.text())
        {
            self.secrets.learn(name, &value);
        }
        // What it was before isn't held any longer, unless another task has it.
        self.stale |= self.shared.contains_key(name);
        self.own.insert(Arc::clone(name), Own { change, is_as_before: false });
        self.let_go();
    }

    /// Forgets what was before the changes, as soon as no other task has it.
    fn let_go(&mut self) {
        if self.stale
            && let Some(shared) = Arc::get_mut(&mut self.shared)
        {
            shared.retain(|name, _| self.own.get(name).is_none());
            self.stale = false;
        }
    }

    /// A variable's value, if no other task may hold it together with this one.
    pub fn own(&mut self, name: &str) -> Option<&Value> {
        let variable = match self.own.get(name) {
            Some(own) => own.change.as_ref(),
            None => Arc::get_mut(&mut self.shared)?.get(name),
        };
        variable.map(|variable| &variable.value)
    }

    /// A copy for another task, at the cost of what changed since the last one.
    pub fn fork(&mut self) -> Self {
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

    /// What a copy has made of a variable since it was made; none if nothing.
    pub fn change(&self, name: &Name) -> Option<Change> {
        match self.own.get(name) {
            Some(own) if own.is_as_before => None,
            Some(own) => Some(own.change.clone()),
            None if self.changed.contains(name) => Some(self.shared.get(name).cloned()),
            None => None,
        }
    }

    /// What a copy has changed since it was made.
    pub fn into_changes(self) -> Changes {
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

    /// Takes over what a copy has changed.
    pub fn absorb(&mut self, changes: Changes) {
        for (name, variable) in changes {
            self.put(&name, variable);
        }
        self.let_go();
    }

    /// All variables that are set, with their values; none for a buffer or what has more than
    /// `longest` bytes.
    pub fn all(&self, longest: usize) -> Vec<(Name, Option<BString>)> {
        self.unsorted()
            .map(|(name, variable)| {
                let text = variable.value.text().filter(|text| text.len() <= longest);
                (Arc::clone(name), text.map(std::borrow::Cow::into_owned))
            })
            .collect()
    }

    /// The environment that [`Variables::remember`] was told of, if no exported variable has
    /// changed since.
    pub fn environment(&self) -> Option<Arc<Environment>> {
        self.environment.clone()
    }

    /// The exported variables, sorted by name; `text` tells what a value reads as.
    pub fn exported<E>(
        &self,
        text: impl Fn(&Value) -> Result<BString, E>,
    ) -> Result<Environment, E> {
        let mut exported: Vec<(&Name, &Value)> = self
            .unsorted()
            .filter(|(_, variable)| variable.exported)
            .map(|(name, variable)| (name, &variable.value))
            .collect();
        // Sorted first: the same run asks for the same values in the same order.
        exported.sort_by_key(|(name, _)| *name);
        let pairs = exported.into_iter().map(|(name, value)| Ok(((&**name).into(), text(value)?)));
        pairs.collect()
    }

    /// Keeps the exported variables for the next commands.
    pub fn remember(&mut self, environment: &Arc<Environment>) {
        self.environment = Some(Arc::clone(environment));
    }
}
