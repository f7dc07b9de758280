//! The environment of a branch: that of the run and that of the node, which is right about itself.

use std::collections::BTreeSet;

use bstr::BString;

use ftsh_machine::packed::{PackedValue, PackedVariable};

/// What an engine, a login or a machine says of itself.
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
/// How the names of more begin.
const BEGINNINGS: [&str; 8] =
    ["SLURM_", "SLURMD_", "SRUN_", "SSH_", "PMI_", "PMIX_", "OMPI_", "KUBERNETES_"];

/// Whether what the environment says by this name is the node's own.
pub fn is_of_node(name: &str) -> bool {
    OF_NODE.contains(&name) || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

/// The variables of a branch on a node with this environment. What is the node's own is as the node has it,
/// or isn't there; but what the script itself has set stays. What else the node has is there unless the run
/// had it, or has `unset` it.
pub fn merge(
    variables: Vec<PackedVariable>,
    unset: &[String],
    node: impl IntoIterator<Item = (BString, BString)>,
) -> Vec<PackedVariable> {
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
