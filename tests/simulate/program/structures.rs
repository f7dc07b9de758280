//! Structures around groups.

use super::Node;
use super::generate::{Generator, line};
use super::sites;
use super::tries::{attempts, deferrals, limit, retries};

/// Generator of a structure whose groups may nest to a depth.
type Make = fn(&mut Generator, usize) -> Node;

/// Structures with their weights. Each generator receives the maximum depth of its groups.
pub(super) const STRUCTURES: &[(u32, Make)] = &[
    (14, attempts),
    (2, deferrals),
    (3, limit),
    (2, retries),
    (4, decision),
    (3, case),
    (4, |g, depth| looping(g, depth, "for", Generator::JUMPS, |_| String::new())),
    (4, |g, depth| looping(g, depth, "forany", &Generator::JUMPS[..1], Generator::in_order)),
    (4, |g, depth| looping(g, depth, "forany", &[], Generator::hedge)),
    (7, |g, depth| looping(g, depth, "forall", &[], Generator::clauses_of_forall)),
    (3, while_loop),
    (8, sites::forall),
    (6, sites::hedge),
    (4, sites::inside),
    (4, sites::beside),
    (4, pipeline),
];

fn decision(g: &mut Generator, depth: usize) -> Node {
    let mut groups = vec![(format!("if {}", g.decision(2)), g.group(depth))];
    if g.dice.chance(0.3) {
        groups.push((format!("else if {}", g.decision(1)), g.group(depth)));
    }
    if g.dice.chance(0.5) {
        groups.push(("else".into(), g.group(depth)));
    }
    Node::Block { promise: None, groups, redirects: g.around() }
}

fn case(g: &mut Generator, depth: usize) -> Node {
    const PATTERNS: [&str; 7] = ["1", "'2' 3", "[0-9]*", "true f*", "\"$n\"", "${n}*", "\"$@\""];
    let value = if g.dice.chance(0.5) { g.number(1) } else { g.text() };
    let mut groups = vec![(format!("case {value}"), Vec::new())];
    for _ in 0..g.dice.number(1, 3) {
        groups.push((format!("when {}", g.dice.pick(&PATTERNS)), g.group(depth)));
    }
    if g.dice.chance(0.5) {
        groups.push(("else".into(), g.group(depth)));
    }
    Node::Block { promise: None, groups, redirects: g.around() }
}

fn looping(
    g: &mut Generator,
    depth: usize,
    kind: &str,
    jumps: &'static [&'static str],
    clause: fn(&mut Generator) -> String,
) -> Node {
    let name = *g.dice.pick(&["i", "j", "v"]);
    let reads = g.dice.chance(0.15);
    let words = if reads { g.words_of_input() } else { format!("in {}", g.list()) };
    let mut head = format!("{kind} {name} {words}{}", clause(g));
    let in_view = kind != "for" && g.views < 2 && g.dice.chance(0.1);
    if in_view {
        head += " atomic in /d";
    }
    g.atomic += usize::from(in_view);
    g.views += usize::from(in_view);
    let mut groups = vec![(head, g.body(jumps, depth))];
    g.views -= usize::from(in_view);
    g.atomic -= usize::from(in_view);
    g.handle(&mut groups, 0.15, depth);
    let redirects = if reads { g.own_input() } else { g.around() };
    Node::Block { promise: None, groups, redirects }
}

fn while_loop(g: &mut Generator, depth: usize) -> Node {
    let count = g.fresh("count");
    let condition = g.maybe(0.3, |g| format!(" .and. ({})", g.condition(1)));
    let mut body = vec![line(format!("{count}=${{{count}:-0}} .add. 1"))];
    body.extend(g.body(Generator::JUMPS, depth));
    let mut groups = vec![(format!("while ${{{count}:-0}} .lt. 3{condition}"), body)];
    g.handle(&mut groups, 0.15, depth);
    Node::Block { promise: None, groups, redirects: String::new() }
}

/// Generates stages with at least one structure; each stage only ends at its end.
fn pipeline(g: &mut Generator, depth: usize) -> Node {
    let around = (std::mem::take(&mut g.jumps), std::mem::replace(&mut g.returns, false));
    let count = g.dice.number(2, 3);
    let structure = g.dice.number(0, count - 1);
    let mut stages = Vec::new();
    for index in 0..count {
        let stage = if index == structure || g.dice.chance(0.3) {
            let only_structures = &STRUCTURES[..STRUCTURES.len() - 1];
            let make = g.dice.weighted(only_structures);
            make(g, depth)
        } else {
            line(g.simple())
        };
        stages.push((stage, if index + 1 < count { g.pipe() } else { "" }));
    }
    (g.jumps, g.returns) = around;
    Node::Pipeline(stages)
}

impl Generator {
    pub(super) const JUMPS: &'static [&'static str] = &["break", "continue"];

    /// Generates the body of a loop with the allowed jumps.
    pub(super) fn body(&mut self, jumps: &'static [&'static str], depth: usize) -> Vec<Node> {
        let around = std::mem::replace(&mut self.jumps, jumps);
        let body = self.group(depth);
        self.jumps = around;
        body
    }

    fn words_of_input(&mut self) -> String {
        const ENDS: [&str; 3] = ["\"\\0\"", "' '", "$v"];
        format!("from input{}", self.maybe(0.4, |g| format!(" by {}", g.dice.pick(&ENDS))))
    }

    /// Returns a redirection of standard input, or none, for the input of the script.
    fn own_input(&mut self) -> String {
        const INPUTS: [&str; 4] = [" < /data", " <<< \"one two\"", " -< w", ""];
        (*self.dice.pick(&INPUTS)).into()
    }

    fn in_order(&mut self) -> String {
        self.maybe(0.4, |_| " in order".into())
    }

    fn hedge(&mut self) -> String {
        const AFTER: [&str; 5] = ["$limit", "300 ms", "2s", "$n seconds", "(2 .mul. 3) seconds"];
        let mut clauses = [
            {
                let usual = self.maybe(0.3, |_| " usual or".into());
                format!(" hedge after{usual} {}", self.dice.pick(&AFTER))
            },
            self.in_order(),
            self.maybe(0.4, |g| format!(" at most {}", g.dice.pick(&["1", "2", "(1 .add. 1)"]))),
        ];
        let first = self.dice.number(0, clauses.len() - 1);
        clauses.rotate_left(first);
        clauses.concat()
    }

    fn clauses_of_forall(&mut self) -> String {
        let mut clauses = [
            self.maybe(0.4, |g| format!(" at most {}", g.dice.pick(&["1", "2", "(1 .add. 1)"]))),
            self.maybe(0.3, |g| format!(" at least {}", g.dice.pick(&["1", "2", "$n", "3"]))),
            self.maybe(0.4, |_| " keep going".into()),
            self.maybe(0.15, |g| format!(" while free {}", g.dice.pick(&["2 GB", "$n MB"]))),
            self.maybe(0.15, |g| format!(" while load {}", g.dice.pick(&["8", "9.5", "$n"]))),
            self.maybe(0.6, |g| match g.dice.number(0, 2) {
                0 => " output tagged".into(),
                _ => format!(" output grouped{}", g.maybe(0.5, |_| " in order".into())),
            }),
        ];
        let first = self.dice.number(0, clauses.len() - 1);
        clauses.rotate_left(first);
        clauses.concat() + &self.maybe(0.4, Self::elsewhere)
    }

    fn elsewhere(&mut self) -> String {
        let engine = *self.dice.pick(&["slurm", "ssh 'n1 n2*2'", "liar", "liar 'a b'"]);
        let again = self.maybe(0.6, |g| format!(" retry lost {} times", g.dice.number(1, 3)));
        format!(" on {engine}{again}")
    }

    /// Returns redirections after an `end`, mostly none.
    pub(super) fn around(&mut self) -> String {
        self.maybe(0.3, Self::redirects)
    }
}
