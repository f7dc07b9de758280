//! Environment of a branch: the variables of the run, and the node's variables about the node
//! itself.

use std::collections::BTreeSet;

use bstr::BString;

use ftsh_machine::packed::{PackedValue, PackedVariable};
use ftsh_syntax::ast::Name;

/// Variables that describe a machine or a login.
const OF_NODE: [&str; 14] = [
    "CUDA_VISIBLE_DEVICES",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "GPU_DEVICE_ORDINAL",
    "HOSTNAME",
    "ROCR_VISIBLE_DEVICES",
    "TEMP",
    "TMP",
    "TMPDIR",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
    "XDG_SESSION_ID",
    "ZE_AFFINITY_MASK",
];
/// Prefixes of variables that launchers other than engines set.
const PREFIXES: [&str; 4] = ["PMI_", "PMIX_", "OMPI_", "KUBERNETES_"];

/// Merges the variables of a run with the environment of a node, and returns the variables of the
/// branch.
///
/// A variable that describes the node keeps the node's value, or is unset as on the node, unless
/// the script has set the variable. The names in `OF_NODE` and the names with a prefix in
/// `prefixes` describe the node. Any other variable of the node applies if the run neither had nor
/// has unset the variable.
pub fn merge(
    variables: Vec<PackedVariable>,
    unset: &[Name],
    prefixes: &[&str],
    node: impl IntoIterator<Item = (BString, BString)>,
) -> Vec<PackedVariable> {
    let is_of_node = |name: &str| {
        OF_NODE.contains(&name) || PREFIXES.iter().chain(prefixes).any(|it| name.starts_with(it))
    };
    let mut merged = variables;
    merged.retain(|variable| !(variable.inherited && is_of_node(&variable.name)));
    let set: BTreeSet<Name> = merged.iter().map(|it| Name::clone(&it.name)).collect();
    for (name, value) in node {
        let name = Name::from(name.to_string());
        if !set.contains(&name) && (is_of_node(&name) || !unset.contains(&name)) {
            let value = PackedValue::Text(value);
            merged.push(PackedVariable { name, value, exported: true, inherited: true });
        }
    }
    merged
}
