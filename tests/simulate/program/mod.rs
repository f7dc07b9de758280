//! Random programs, as trees that can be made smaller, and what their text promises.

mod commands;
mod expressions;
mod generate;
mod sites;
mod structures;
mod tries;

use std::collections::BTreeMap;
use std::time::Duration;

pub use generate::generate;

/// The file that programs may `source`.
pub const LIBRARY: &str = "/library";
/// The script's name.
pub const SCRIPT: &str = "script";

/// A script and the file that it may source.
#[derive(Clone, Default)]
pub struct Program {
    pub script: Vec<Node>,
    pub library: Vec<Node>,
}

/// A command or a structure.
#[derive(Clone)]
pub enum Node {
    /// A command; with a here-document it has several lines.
    Line(String),
    /// A structure up to its `end`.
    Block {
        /// What can be said of it whatever happens.
        promise: Option<Promise>,
        /// The groups in it, each after its line: the head, `else`, `catch`, `finally`.
        groups: Vec<(String, Vec<Node>)>,
        /// Redirections after the `end`.
        redirects: String,
    },
    /// Stages, each with the pipe after it; none after the last.
    Pipeline(Vec<(Node, &'static str)>),
}

/// What a structure promises.
#[derive(Clone, Debug)]
pub enum Promise {
    Try(Limits),
    Branches(Site),
}

/// What the head of a `try` promises.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    pub limit: Option<Duration>,
    /// None without a limit.
    pub times: Option<u64>,
    pub each: Option<Duration>,
    pub every: Option<Duration>,
    /// The policy as written; none for the run's.
    pub policy: Option<String>,
    /// Whether its attempts go through a channel.
    pub through: bool,
    /// Whether its head has no value, so that it makes no attempt.
    pub headless: bool,
}

impl Limits {
    /// How many attempts may be made.
    pub fn most(&self) -> u64 {
        self.times.unwrap_or(if self.limit.is_some() { u64::MAX } else { 1 })
    }
}

/// A `forall` or a hedged `forany` that says aloud what becomes of it. Its variable has a name that no
/// other one has.
#[derive(Clone, Debug)]
pub struct Site {
    pub variable: String,
    /// No two are the same.
    pub words: Vec<String>,
    /// How many are to succeed, if not all.
    pub at_least: Option<usize>,
    pub keep_going: bool,
    /// `output grouped`; with `in order` if that is true.
    pub grouped: Option<bool>,
}

/// A `finally` group.
#[derive(Clone, Debug)]
pub struct Group {
    /// The line of its `try`.
    pub line: u32,
    /// Whether a `catch` comes before it.
    pub catch: bool,
}

/// What the structures of a program promise.
#[derive(Clone, Debug, Default)]
pub struct Promises {
    /// By file and line.
    pub tries: BTreeMap<(String, u32), Limits>,
    /// By file and line of the `finally`.
    pub groups: BTreeMap<(String, u32), Group>,
    /// By variable.
    pub sites: BTreeMap<String, Site>,
}

impl Program {
    /// The texts of the script and the library, and what their tries promise.
    pub fn texts(&self) -> (String, String, Promises) {
        let mut promises = Promises::default();
        let mut text = |name: &str, nodes: &[Node]| {
            let mut lines = Vec::new();
            write(nodes, name, 0, &mut lines, &mut promises);
            lines.join("\n") + "\n"
        };
        let (script, library) = (text(SCRIPT, &self.script), text(LIBRARY, &self.library));
        (script, library, promises)
    }
}

fn write(
    nodes: &[Node],
    name: &str,
    depth: usize,
    lines: &mut Vec<String>,
    promises: &mut Promises,
) {
    for node in nodes {
        let last = write_after("    ".repeat(depth), node, name, depth, lines, promises);
        // The lines of a here-document are taken as they are.
        lines.extend(last.split('\n').map(Into::into));
    }
}

/// Writes a node on from a line that has begun, but for its last line, which is returned.
fn write_after(
    mut line: String,
    node: &Node,
    name: &str,
    depth: usize,
    lines: &mut Vec<String>,
    promises: &mut Promises,
) -> String {
    let indent = "    ".repeat(depth);
    match node {
        Node::Line(text) => line + text,
        Node::Block { promise, groups, redirects } => {
            let first = lines.len() as u32 + 1;
            match promise {
                Some(Promise::Try(limits)) => {
                    promises.tries.insert((name.into(), first), limits.clone());
                }
                Some(Promise::Branches(site)) => {
                    promises.sites.insert(site.variable.clone(), site.clone());
                }
                None => {}
            }
            for (head, body) in groups {
                if head == "finally" {
                    let catch = groups.len() > 2;
                    let place = (name.into(), lines.len() as u32 + 1);
                    promises.groups.insert(place, Group { line: first, catch });
                }
                lines.push(format!("{line}{head}"));
                write(body, name, depth + 1, lines, promises);
                line.clone_from(&indent);
            }
            format!("{indent}end{redirects}")
        }
        Node::Pipeline(stages) => {
            for (stage, pipe) in stages {
                line = write_after(line, stage, name, depth, lines, promises) + pipe;
            }
            line
        }
    }
}
