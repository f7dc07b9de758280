//! Branches for other processes to run, and their results.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use ftsh_machine::driver;
use ftsh_machine::packed::{BranchEnd, PackedBranch};
use ftsh_machine::{Config, Machine};
use ftsh_remote::{
    Branch, BranchRecord, ERRORS_MARK, Frames, Go, Identity, Listener, NodeLine, Nonce, OPENING,
    Piece, StoreId, ToHead, ToNode, frame,
};
use ftsh_sim::{Model, Simulated};
use ftsh_syntax::parse;

use super::run::{Finished, Running};
use super::{FTSH, Ftsh};

/// Nonce of the records.
pub(crate) const NONCE: Nonce = Nonce([9; 16]);
/// Lease of branches, longer than any test.
pub(crate) const LEASE: Duration = Duration::from_secs(60);

/// Returns the identity of the program under test.
pub(crate) fn identity() -> Identity {
    Identity::of(File::open(FTSH).expect("the program")).expect("all of it")
}

/// Returns the branches of a script's `forall`s at their start, in a world where `ok` is the only
/// command.
pub(crate) fn packed(script: &str, directory: &Path) -> Vec<PackedBranch> {
    packed_with_kill_timeout(script, directory, Duration::from_secs(4))
}

/// Returns the branches of a script's `forall`s as [`packed`], with this kill timeout.
pub(crate) fn packed_with_kill_timeout(
    script: &str,
    directory: &Path,
    kill_timeout: Duration,
) -> Vec<PackedBranch> {
    let script = parse("script", script).expect("a script");
    let path = std::env::var("PATH").expect("a path").as_str().into();
    let environment = vec![("PATH".into(), path), ("TMPDIR".into(), "/nowhere".into())];
    let config = Config { kill_timeout, ..Config::default() };
    let mut machine = Machine::new(&script, vec!["script".into()], environment, config, 7);
    machine.pack_branches();
    let mut world = Simulated::new(1)
        .command("ok", |_, _| Model::succeeds().prints("written\n"))
        .command("sh", |_, _| Model::succeeds());
    let outcome = driver::run(&mut machine, &mut world);
    let packed = machine.take_packed().into_iter().map(|(_, packed)| packed.expect("a branch"));
    let directory = directory.to_str().expect("a name").as_bytes();
    let packed: Vec<_> =
        packed.map(|it| PackedBranch { directory: directory.into(), ..it }).collect();
    assert!(!packed.is_empty(), "{outcome:?}");
    packed
}

/// Returns the first message of a head, with the branch.
pub(crate) fn offer(packed: PackedBranch) -> Vec<u8> {
    let store = StoreId::default();
    let branch = Branch { identity: identity(), packed, child_env: Vec::new(), store };
    let mut offer = frame(&ToNode::Branch(Box::new(branch))).expect("short");
    offer.insert(0, OPENING);
    offer
}

/// Returns the message of a head that begins the branch on the start of a node that is ready.
pub(crate) fn go(start: Nonce, waited: Duration, lease: Duration) -> Vec<u8> {
    frame(&ToNode::Go(Go { nonce: NONCE, start, waited, lease })).expect("short")
}

/// Makes a run a node that begins a branch as soon as it is ready.
pub(crate) fn node(run: Ftsh, packed: PackedBranch, waited: Duration, lease: Duration) -> Ftsh {
    let mut node = run.arg("--branch").stdin(offer(packed)).stdin_stays_open();
    node.go = Some((waited, lease));
    node
}

/// Begins the branch of a node.
pub(super) fn begin(running: &mut Running, (waited, lease): (Duration, Duration)) {
    let mut start = None;
    running.until("a node that is ready", |run| {
        start = ready(&run.output());
        start.is_some()
    });
    running.write(&go(start.expect("it is ready"), waited, lease));
}

/// Returns the nonce of a start that is ready, from its output.
pub(crate) fn ready(output: &[u8]) -> Option<Nonce> {
    let mut frames = Frames::default();
    frames.push(output);
    std::iter::from_fn(|| frames.message().expect("whole")).find_map(|message| match message {
        ToHead::Ready(start) => Some(start),
        ToHead::Hello(_) | ToHead::Refused(_) | ToHead::Wants(_) => None,
    })
}

/// Messages of a node, output of its branch, and the record.
pub(crate) struct NodeOutput {
    pub said: Vec<ToHead>,
    pub printed: String,
    pub errors: String,
    pub record: Option<BranchRecord>,
}

/// Parses the output of a node.
pub(crate) fn node_output(finished: &Finished) -> NodeOutput {
    let mut frames = Frames::default();
    frames.push(&finished.stdout);
    let mut said = Vec::new();
    while !matches!(said.last(), Some(ToHead::Ready(_) | ToHead::Refused(_)))
        && let Some(message) = frames.message().expect("whole")
    {
        said.push(message);
    }
    let (mut errors, mut record) = (Vec::new(), None);
    let mut listener = Listener::new(&NONCE);
    let errors_of_node =
        finished.stderr.strip_prefix(ERRORS_MARK.as_bytes()).unwrap_or(&finished.stderr);
    for piece in listener.push(errors_of_node) {
        match piece {
            Piece::Printed(bytes) => errors.extend(bytes),
            Piece::Line(NodeLine::Record(found)) => record = Some(*found),
            Piece::Line(_) => {}
        }
    }
    errors.extend(listener.end());
    let end = NodeLine::OutputEnded.encode(&NONCE);
    let printed = String::from_utf8_lossy(&frames.into_rest()).replace(&end, "");
    NodeOutput { said, printed, errors: String::from_utf8_lossy(&errors).into(), record }
}

impl NodeOutput {
    /// Returns the end of the branch.
    pub(crate) fn end(&self) -> &BranchEnd {
        let record = self.record.as_ref();
        &record.unwrap_or_else(|| panic!("a record, not:\n{}", self.errors)).ended.end
    }
}
