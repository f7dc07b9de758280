//! Generator of programs. A new construct is a line in one of two tables: `COMMANDS` in `commands`
//! and `STRUCTURES` in `structures`.

use super::tries::{self, contained};
use super::{Node, Program, USED, commands, sites, structures};
use crate::dice::Dice;

/// State of the generator.
pub(super) struct Generator {
    pub dice: Dice,
    /// Remaining number of nodes.
    left: usize,
    /// First function that may be called here; later ones only, so that calls end.
    pub callable: usize,
    /// True if the library may be sourced here.
    pub may_source: bool,
    /// Jumps that the enclosing loop allows.
    pub jumps: &'static [&'static str],
    /// True if the script or a function may end here.
    pub leaves: bool,
    /// True if `return` is allowed here.
    pub returns: bool,
    /// Number of enclosing atomic attempts, in which `exec` is not allowed.
    pub atomic: usize,
    /// Number of enclosing attempts of `atomic in`, in which `keep` is not allowed.
    pub views: usize,
    /// Counter for names.
    pub names: usize,
    /// Function in the file that the script uses, if any.
    pub used_name: Option<&'static str>,
}

/// Number of functions. Each function may call later ones.
pub(super) const FUNCTIONS: usize = 3;

/// Function in the file that a script uses.
const USED_FUNCTION: &str = "used";

/// Generates a random program.
pub(crate) fn generate(mut dice: Dice) -> Program {
    let used_name = dice.chance(0.3).then_some(USED_FUNCTION);
    let mut generator = Generator {
        dice,
        used_name,
        left: 0,
        callable: 0,
        may_source: true,
        jumps: &[],
        leaves: true,
        returns: true,
        atomic: 0,
        views: 0,
        names: 0,
    };
    let mut script: Vec<Node> =
        ["n=1", "v=value", "w=\"two words\"", "limit=700ms", "signal=QUIT", "echo first -> o"]
            .map(line)
            .into();
    script.extend(tries::CHANNELS.map(|name| line(generator.channel(name))));
    generator.left = generator.dice.number(3, 50);
    while generator.left > 0 {
        let is_safe = generator.dice.chance(0.9);
        let node = if is_safe { contained(&mut generator, 5) } else { generator.node(5) };
        script.push(node);
    }
    if generator.dice.chance(0.3) {
        generator.left = 5;
        let at = generator.dice.number(0, script.len());
        script.insert(at, sites::recorded(&mut generator));
    }
    if generator.dice.chance(0.3) {
        generator.left = 4;
        let at = generator.dice.number(0, script.len());
        script.insert(at, sites::taken_back(&mut generator));
    }
    for function in 0..FUNCTIONS {
        generator.left = generator.dice.number(2, 8);
        generator.callable = function + 1;
        let mut body = generator.group(2);
        let local = match generator.dice.number(0, 3) {
            0 => format!("local {}", generator.variable()),
            1 | 2 => format!("local {}={}", generator.variable(), generator.number(1)),
            _ => "read n v w <<< \"1 two three four\"".into(),
        };
        body.insert(generator.dice.number(0, body.len()), line(local));
        // As a command, an integer would be the code of a failure.
        body.push(line(if generator.dice.chance(0.1) {
            "return $# .add. 1"
        } else {
            "return $# .add. 1.5"
        }));
        let parameters = generator.dice.pick(&["", "", " rest...", " n v='d w' rest...", " n v"]);
        let mut groups = vec![(format!("function f{function}{parameters}"), body)];
        generator.handle(&mut groups, 0.2, 1);
        script.push(Node::Block { promise: None, groups, redirects: String::new() });
    }
    generator.callable = FUNCTIONS;
    generator.left = 6;
    script.push(block("function deep".into(), {
        let recursion = vec![line("m=$1 .sub. 1"), line("deep $m")];
        let mut body = vec![block("if $1 .gt. 0".into(), recursion)];
        body.insert(generator.dice.number(0, 1), generator.node(1));
        body
    }));
    let used: Vec<Node> = used_name.map(|_| generator.used_function()).into_iter().collect();
    generator.may_source = false;
    let library = generator.group(2);
    if used_name.is_some() {
        script.insert(0, line(format!("use {USED}")));
    }
    if generator.dice.chance(0.2) {
        script.insert(0, line("args first second=x --level=3 -q"));
    }
    Program { script, library, used }
}

impl Generator {
    /// Generates a function that calls no other one, and uses no channel of the script.
    fn used_function(&mut self) -> Node {
        self.callable = FUNCTIONS;
        self.left = 5;
        let bodies = (0..5).map(|_| self.group(2)).collect::<Vec<_>>();
        let is_alone = |body: &Vec<Node>| {
            let mut lines = Vec::new();
            super::write(body, USED, 0, &mut lines, &mut super::Promises::default());
            !lines.iter().any(|line| line.contains(" through ") || line.contains("channel "))
        };
        let mut body = bodies.into_iter().find(is_alone).unwrap_or_else(|| vec![line("ok")]);
        body.push(line("return $# .add. 1.5"));
        block(format!("function {USED_FUNCTION}"), body)
    }

    /// Generates the commands of a script or a structure.
    pub(super) fn group(&mut self, depth: usize) -> Vec<Node> {
        let mut group = vec![self.node(depth)];
        while group.len() < 5 && self.left > 0 && self.dice.chance(0.6) {
            group.push(self.node(depth));
        }
        group
    }

    fn node(&mut self, depth: usize) -> Node {
        self.left = self.left.saturating_sub(1);
        if depth > 0 && self.left > 0 && self.dice.chance(0.5) {
            let make = self.dice.weighted(structures::STRUCTURES);
            make(self, depth - 1)
        } else {
            let make = self.dice.weighted(commands::COMMANDS);
            Node::Line(make(self))
        }
    }

    /// Returns a unique name.
    pub(super) fn fresh(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    /// Returns the text or nothing.
    pub(super) fn maybe(
        &mut self,
        probability: f64,
        make: impl FnOnce(&mut Self) -> String,
    ) -> String {
        if self.dice.chance(probability) { make(self) } else { String::new() }
    }
}

pub(super) fn line(text: impl Into<String>) -> Node {
    Node::Line(text.into())
}

pub(super) fn block(head: String, body: Vec<Node>) -> Node {
    Node::Block { promise: None, groups: vec![(head, body)], redirects: String::new() }
}
