//! The environment of a branch: that of the run and that of the node, which is right about itself.

use std::collections::BTreeSet;

use bstr::BString;

use ftsh_machine::packed::{PackedValue, PackedVariable};

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
/// Beginnings of names of variables that launchers set which are no engines.
const PREFIXES: [&str; 4] = ["PMI_", "PMIX_", "OMPI_", "KUBERNETES_"];

/// The variables of a branch on a node with this environment. What is the node's own is as the node has it,
/// or isn't there; but what the script itself has set stays. What else the node has is there unless the run
/// had it, or has `unset` it. Variables whose names begin with one of `prefixes` are the node's own, too.
pub fn merge(
    variables: Vec<PackedVariable>,
    unset: &[String],
    prefixes: &[&str],
    node: impl IntoIterator<Item = (BString, BString)>,
) -> Vec<PackedVariable> {
    let is_of_node = |name: &str| {
        OF_NODE.contains(&name) || PREFIXES.iter().chain(prefixes).any(|it| name.starts_with(it))
    };
    let mut merged = variables;
    merged.retain(|variable| !(variable.inherited && is_of_node(&variable.name)));
    let set: BTreeSet<String> = merged.iter().map(|variable| variable.name.clone()).collect();
    for (name, value) in node {
        let name = name.to_string();
        if !set.contains(&name) && (is_of_node(&name) || !unset.contains(&name)) {
            let value = PackedValue::Text(value);
            merged.push(PackedVariable { name, value, exported: true, inherited: true });
        }
    }
    merged
}
