//! How clients use something that many use, after Thain and Livny, *The Ethernet Approach to Grid
//! Computing*, 2003.

use clap::ValueEnum;

use crate::common::{Crowd, labels};

/// How a client uses what many use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Discipline {
    /// Repeats at once what failed
    Fixed,
    /// Repeats what failed after a delay that grows
    Aloha,
    /// Does as aloha, but looks first whether there is room
    Ethernet,
}

impl Discipline {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Aloha => "aloha",
            Self::Ethernet => "ethernet",
        }
    }
}

/// The clients of one line in the picture.
#[derive(Clone, Debug)]
pub struct Kind {
    /// What they do.
    pub discipline: Discipline,
    /// Their delays. Those of `fixed` have none.
    pub crowd: Option<Crowd>,
    /// The number of the crowd among those to compare.
    pub number: usize,
    /// What to call them.
    pub name: String,
}

impl Kind {
    /// The delays, as scripts write them.
    pub fn backoff(&self) -> String {
        self.crowd.as_ref().map_or_else(|| "none".into(), ToString::to_string)
    }
}

/// Each discipline, with each of the crowds if it delays.
pub fn kinds(disciplines: &[Discipline], crowds: &[Crowd]) -> Vec<Kind> {
    let labels = labels(crowds);
    let mut kinds = Vec::new();
    for discipline in disciplines.iter().copied() {
        let name = discipline.name().to_owned();
        if discipline == Discipline::Fixed {
            kinds.push(Kind { discipline, crowd: None, number: 0, name });
            continue;
        }
        for (number, (crowd, label)) in crowds.iter().zip(&labels).enumerate() {
            let name = if crowds.len() == 1 { name.clone() } else { format!("{name}, {label}") };
            kinds.push(Kind { discipline, crowd: Some(crowd.clone()), number, name });
        }
    }
    kinds
}

/// Says which delays there were.
pub fn policies(kinds: &[Kind]) -> Option<String> {
    let mut policies: Vec<_> =
        kinds.iter().filter_map(|kind| kind.crowd.as_ref()).map(ToString::to_string).collect();
    policies.sort();
    policies.dedup();
    let fixed = kinds.iter().any(|kind| kind.crowd.is_none());
    let but = if fixed { ", but of fixed, which has none" } else { "" };
    (!policies.is_empty()).then(|| format!("Delays{but}: {}.", policies.join("; ")))
}
