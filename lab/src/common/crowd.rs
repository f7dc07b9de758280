//! Clients and their policies.

use std::fmt;
use std::str::FromStr;

use ftsh_syntax::backoff::{Policy, PolicyError};

/// Policies of a crowd of clients, assigned in turn: `full from 1 s + fixed` gives each policy to
/// half of the clients.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientCrowd(
    /// At least one policy.
    pub Vec<Policy>,
);

impl ClientCrowd {
    /// Returns the policy of client number `client`.
    pub fn policy(&self, client: usize) -> &Policy {
        &self.0[client % self.0.len()]
    }

    /// Returns the policy of all clients, if they share one.
    pub fn single(&self) -> Option<&Policy> {
        match &self.0[..] {
            [policy] => Some(policy),
            _ => None,
        }
    }
}

impl From<Policy> for ClientCrowd {
    fn from(policy: Policy) -> Self {
        Self(vec![policy])
    }
}

impl FromStr for ClientCrowd {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let policies = text.split('+').map(str::parse).collect::<Result<_, PolicyError>>();
        policies.map(Self).map_err(|error| error.one_line())
    }
}

impl fmt::Display for ClientCrowd {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for (index, policy) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { " + " };
            write!(f, "{separator}{policy}")?;
        }
        Ok(())
    }
}

/// Returns short, distinct names of crowds: the name of each policy with the clauses in which
/// policies of that name differ.
pub fn labels(crowds: &[ClientCrowd]) -> Vec<String> {
    let all: Vec<_> = crowds.iter().flat_map(|crowd| &crowd.0).collect();
    let label = |policy: &Policy| {
        let mut label = policy.kind.name().to_owned();
        let same: Vec<_> = all.iter().filter(|other| other.kind == policy.kind).collect();
        for clause in policy.kind.clauses() {
            if same.iter().any(|other| other.value(*clause) != policy.value(*clause)) {
                label += &format!(" {} {}", clause.name(), policy.value(*clause));
            }
        }
        label
    };
    let labels = crowds.iter().map(|crowd| crowd.0.iter().map(label).collect::<Vec<_>>());
    labels.map(|labels| labels.join(" + ")).collect()
}

/// Explains the labels of crowds.
pub fn legend(crowds: &[ClientCrowd], labels: &[String]) -> String {
    let mut legend = String::from("Policies:");
    for (crowd, label) in crowds.iter().zip(labels) {
        let shown = crowd.to_string();
        legend +=
            &if shown == *label { format!("\n  {label}") } else { format!("\n  {label}: {shown}") };
    }
    legend
}
