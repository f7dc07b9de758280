//! Map by name that is compact while small.

use std::collections::BTreeMap;

use ftsh_syntax::ast::Name;

/// Maximum length of the list. Larger maps use a tree, whose nodes are large.
const MAX_LIST_LEN: usize = 8;

/// Values by name, in the order of names.
#[derive(Clone, Debug)]
pub(crate) enum SmallMap<V> {
    /// Sorted list.
    List(Vec<(Name, V)>),
    /// Tree, kept once the list has been too long.
    Tree(BTreeMap<Name, V>),
}

impl<V> Default for SmallMap<V> {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl<V> SmallMap<V> {
    /// Returns true if the map is empty.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::List(list) => list.is_empty(),
            Self::Tree(tree) => tree.is_empty(),
        }
    }

    /// Returns the value of a name.
    pub(crate) fn get(&self, name: &str) -> Option<&V> {
        match self {
            Self::List(list) => list.iter().find(|(it, _)| &**it == name).map(|(_, value)| value),
            Self::Tree(tree) => tree.get(name),
        }
    }

    /// Returns the value of a name, mutable.
    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut V> {
        match self {
            Self::List(list) => {
                list.iter_mut().find(|(it, _)| &**it == name).map(|(_, value)| value)
            }
            Self::Tree(tree) => tree.get_mut(name),
        }
    }

    /// Sets the value of a name.
    pub(crate) fn insert(&mut self, name: Name, value: V) {
        match self {
            Self::Tree(tree) => _ = tree.insert(name, value),
            Self::List(list) => match list.binary_search_by(|(it, _)| it.cmp(&name)) {
                Ok(at) => list[at].1 = value,
                Err(_) if list.len() == MAX_LIST_LEN => {
                    let mut tree: BTreeMap<_, _> = std::mem::take(list).into_iter().collect();
                    tree.insert(name, value);
                    *self = Self::Tree(tree);
                }
                Err(at) => {
                    if list.is_empty() {
                        list.reserve_exact(1); // most branches set only the loop's variable
                    }
                    list.insert(at, (name, value));
                }
            },
        }
    }

    /// Iterates over names and values, in the order of names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Name, &V)> {
        let (list, tree) = match self {
            Self::List(list) => (Some(list.iter().map(|(name, value)| (name, value))), None),
            Self::Tree(tree) => (None, Some(tree.iter())),
        };
        list.into_iter().flatten().chain(tree.into_iter().flatten())
    }

    /// Takes all entries, in the order of names.
    pub(crate) fn take(&mut self) -> Vec<(Name, V)> {
        match std::mem::take(self) {
            Self::List(list) => list,
            Self::Tree(tree) => tree.into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_small_map_is_a_map(steps in prop::collection::vec(("[a-f]{1,2}", 0..100_u8), 0..40)) {
            let (mut small, mut map) = (SmallMap::default(), BTreeMap::new());
            for (name, value) in steps {
                let name: Name = name.into();
                small.insert(Name::clone(&name), value);
                map.insert(Name::clone(&name), value);
                prop_assert_eq!(small.is_empty(), map.is_empty());
                prop_assert_eq!(small.get_mut(&name).copied(), Some(value));
                prop_assert_eq!(small.get("ab"), map.get("ab"));
                prop_assert!(small.iter().eq(map.iter()));
            }
            prop_assert_eq!(small.take(), map.into_iter().collect::<Vec<_>>());
            prop_assert!(small.is_empty());
        }
    }
}
