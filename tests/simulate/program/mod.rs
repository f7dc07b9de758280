//! Random programs, as trees that can be shrunk, with the promises of their text.

mod commands;
mod expressions;
mod generate;
mod sites;
mod structures;
mod tries;

use std::collections::BTreeMap;
use std::time::Duration;

use ftsh_syntax::Script;
use ftsh_syntax::error::SyntaxErrors;
use ftsh_syntax::signal::Signal;
use ftsh_syntax::uses::{UsedFile, UsedFiles, parse_with_files};

pub(crate) use generate::generate;

/// File that programs may `source`.
pub(crate) const LIBRARY: &str = "/library";
/// File that programs may `use`.
pub(crate) const USED: &str = "/used.ftsh";
/// Name of the script.
pub(crate) const SCRIPT: &str = "script";

/// A script, the file that it may source, and the file that it may use.
#[derive(Clone, Default)]
pub(crate) struct Program {
    pub script: Vec<Node>,
    pub library: Vec<Node>,
    pub used: Vec<Node>,
}

/// Text of the used file.
struct UsedText(String);

impl UsedFiles for UsedText {
    fn read(&mut self, _: &str, path: &str) -> Result<UsedFile, String> {
        let text = self.0.clone().into_bytes();
        Ok(UsedFile { name: path.to_owned(), identity: path.into(), text })
    }
}

/// A command or a structure.
#[derive(Clone)]
pub(crate) enum Node {
    /// A command; a here-document takes several lines.
    Line(String),
    /// A structure up to its `end`.
    Block {
        /// Promises that hold in any case.
        promise: Option<Promise>,
        /// Groups, each after its line: the head, `else`, `catch`, `finally`.
        groups: Vec<(String, Vec<Node>)>,
        /// Redirections after the `end`.
        redirects: String,
    },
    /// Stages, each with the following pipe; none after the last.
    Pipeline(Vec<(Node, &'static str)>),
}

/// Promises of a structure.
#[derive(Clone, Debug)]
pub(crate) enum Promise {
    Try(Limits),
    Branches(Site),
}

/// Promises of the head of a `try`.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each can be true of any `try`")]
pub(crate) struct Limits {
    pub limit: Option<Duration>,
    /// Time limit, if there is one.
    pub times: Option<u64>,
    pub each: Option<Duration>,
    /// True if `each` is the bound of a learned limit.
    pub usual: bool,
    pub every: Option<Duration>,
    /// Policy as written; none for the policy of the run.
    pub policy: Option<String>,
    /// First signal to canceled attempts.
    pub signal: Option<Signal>,
    /// True if the attempts use a channel.
    pub through: bool,
    /// True if a condition decides about attempts, by `while`.
    pub conditional: bool,
    /// True if a success leaves no processes either.
    pub no_leftovers: bool,
    /// True if the head has no value, so no attempt is made.
    pub headless: bool,
}

impl Limits {
    /// Returns the maximum number of attempts.
    pub(crate) fn most(&self) -> u64 {
        self.times.unwrap_or(if self.limit.is_some() { u64::MAX } else { 1 })
    }
}

/// A `forall` or a hedged `forany` that reports its branches. The name of its variable is unique.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub variable: String,
    /// Words, all distinct.
    pub words: Vec<String>,
    /// Required number of successes, if not all.
    pub at_least: Option<usize>,
    pub keep_going: bool,
    pub finish_running: bool,
    /// Maximum number of branches at once.
    pub at_most: Option<usize>,
    /// `output grouped`; true with `in order`.
    pub grouped: Option<bool>,
}

/// A `finally` group.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Line of its `try`.
    pub line: u32,
    /// True if a `catch` comes before the group.
    pub catch: bool,
    /// True if the structure is a `try`, whose attempts are logged.
    pub is_try: bool,
}

/// Promises of the structures of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Promises {
    /// Promises of tries by file and line.
    pub tries: BTreeMap<(String, u32), Limits>,
    /// `finally` groups by file and line.
    pub groups: BTreeMap<(String, u32), Group>,
    /// Sites by variable.
    pub sites: BTreeMap<String, Site>,
}

impl Program {
    /// Returns the texts of the script and the library, and the promises of their tries.
    pub(crate) fn texts(&self) -> (String, String, Promises) {
        let mut promises = Promises::default();
        let mut text = |name: &str, nodes: &[Node]| {
            let mut lines = Vec::new();
            write(nodes, name, 0, &mut lines, &mut promises);
            lines.join("\n") + "\n"
        };
        let (script, library) = (text(SCRIPT, &self.script), text(LIBRARY, &self.library));
        text(USED, &self.used);
        (script, library, promises)
    }

    /// Returns the text of the used file.
    pub(crate) fn used_text(&self) -> String {
        let mut lines = Vec::new();
        write(&self.used, USED, 0, &mut lines, &mut Promises::default());
        lines.join("\n") + "\n"
    }

    /// Parses the text of the script, with the used file.
    pub(crate) fn parse(&self, script: &str) -> Result<Script, SyntaxErrors> {
        parse_with_files(SCRIPT, script.as_bytes(), &mut UsedText(self.used_text()))
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
        // Lines of a here-document are taken literally.
        lines.extend(last.split('\n').map(Into::into));
    }
}

/// Writes a node from the middle of a line, except for its last line, which is returned.
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
                    let is_try = groups[0].0.starts_with("try");
                    promises.groups.insert(place, Group { line: first, catch, is_try });
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
