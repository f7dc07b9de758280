//! `try` with its limits, clauses and policies.

use std::time::Duration;

use ftsh_syntax::backoff::{Clause, PolicyKind};
use ftsh_syntax::signal::Signal;

use super::generate::{Generator, line};
use super::{Limits, Node, Promise};

/// Literal lengths of time.
const TIMES: [(&str, u64); 8] = [
    ("$limit", 700),
    ("300 ms", 300),
    ("1 second", 1000),
    ("2s", 2000),
    ("(2 .add. 3) seconds", 5000),
    ("10 sec", 10_000),
    ("0.5 minutes", 30_000),
    ("1m30s", 90_000),
];

/// Names of signals, literal or in a variable.
const SIGNALS: [(&str, Signal); 6] = [
    ("INT", Signal::Int),
    ("SIGHUP", Signal::Hup),
    ("\"SIGUSR2\"", Signal::Usr2),
    ("TERM", Signal::Term),
    ("KILL", Signal::Kill),
    ("$signal", Signal::Quit),
];
/// Sizes of memory.
const SIZES: [&str; 4] = ["2 GB", "$n GiB", "5000MB", "(1 .add. 0.5) GB"];

/// Channels that scripts declare.
pub(super) const CHANNELS: [&str; 2] = ["mirror", "disk"];

/// Generates a `try`, possibly with a `catch`.
pub(super) fn attempts(g: &mut Generator, depth: usize) -> Node {
    let kinds = *g.dice.pick(&["", "n", "d", "d", "dn", "nd"]);
    let (head, limits) = g.head(kinds);
    let mut groups = vec![g.attempt(head, depth)];
    g.handle(&mut groups, 0.4, depth);
    let redirects = g.outputs(&groups[0].0);
    Node::Block { promise: Some(Promise::Try(limits)), groups, redirects }
}

impl Generator {
    /// Adds a `catch` with a probability, and sometimes a `finally`.
    pub(super) fn handle(
        &mut self,
        groups: &mut Vec<(String, Vec<Node>)>,
        probability: f64,
        depth: usize,
    ) {
        if self.dice.chance(probability) {
            groups.push(("catch".into(), self.group(depth)));
        }
        if self.dice.chance(0.9 * probability) {
            if let Some(out) = self.way_out().filter(|_| self.dice.chance(0.2)) {
                // The body of a loop has other ways out.
                if !groups[0].0.starts_with("for") {
                    groups[0].1.push(line(out));
                }
            }
            let jumps = std::mem::take(&mut self.jumps);
            let leaves = std::mem::replace(&mut self.leaves, false);
            groups.push(("finally".into(), self.group(depth)));
            (self.jumps, self.leaves) = (jumps, leaves);
        }
    }
}

/// Generates a `limit`, possibly with a `catch` or a `finally`.
pub(super) fn limit(g: &mut Generator, depth: usize) -> Node {
    let (length, _) = g.dice.pick(&TIMES);
    let mut groups = vec![(format!("limit {length}"), g.group(depth))];
    if length.starts_with('(') {
        groups[0].0 = "limit $n seconds".into();
    }
    if g.dice.chance(0.2) {
        groups[0].0 += &format!(" signal {}", g.dice.pick(&SIGNALS).0);
    }
    groups[0].0 += &g.maybe(0.2, |g| format!(" memory {}", g.dice.pick(&SIZES)));
    groups[0].0 += &g.maybe(0.2, |_| " no leftovers".into());
    if g.dice.chance(0.2) {
        groups[0].0 += " stalled";
        groups[0].0 += &g.length(&mut None);
    }
    if g.dice.chance(0.3) {
        groups.push(("catch".into(), g.group(depth)));
    }
    Node::Block { promise: None, groups, redirects: g.around() }
}

/// Generates attempts that are sometimes deferred, within their time.
pub(super) fn deferrals(g: &mut Generator, depth: usize) -> Node {
    let kinds = *g.dice.pick(&["d", "dn", "nd"]);
    let (head, limits) = g.head(kinds);
    let by = *g.dice.pick(&["1 second busy", "4", "20s"]);
    let deferral = format!("if {}; defer {by}; end", g.condition(1));
    let mut body = g.group(depth);
    body.insert(g.dice.number(0, body.len()), line(deferral));
    Node::Block {
        promise: Some(Promise::Try(limits)),
        groups: vec![(head, body)],
        redirects: g.around(),
    }
}

/// Generates attempts that fail repeatedly, on a channel whose budget may be used up.
pub(super) fn retries(g: &mut Generator, _: usize) -> Node {
    let channel = *g.dice.pick(&CHANNELS);
    let limits = Limits {
        times: Some(30),
        policy: Some("fixed from 50 ms".into()),
        through: true,
        ..Limits::default()
    };
    let head = format!("try 30 times backoff fixed from 50 ms through {channel}");
    let body = vec![line(*g.dice.pick(&["fail 1", "flaky", "slowfail 0.1"])), line("failure")];
    Node::Block {
        promise: Some(Promise::Try(limits)),
        groups: vec![(head, body), ("catch".into(), vec![line("ok")])],
        redirects: g.around(),
    }
}

/// Generates a part of a script that neither fails nor hangs.
pub(super) fn contained(g: &mut Generator, depth: usize) -> Node {
    let (head, limits) = g.head("dn");
    let groups = vec![g.attempt(head, depth), ("catch".into(), vec![line("ok")])];
    let redirects = g.outputs(&groups[0].0);
    Node::Block { promise: Some(Promise::Try(limits)), groups, redirects }
}

impl Generator {
    /// Generates the head of a `try` and its body, which is sometimes atomic.
    fn attempt(&mut self, head: String, depth: usize) -> (String, Vec<Node>) {
        if !self.dice.chance(0.3) {
            return (head, self.group(depth));
        }
        let clause = self.atomic_clause();
        let in_view = clause.len() > " atomic".len();
        self.atomic += 1;
        self.views += usize::from(in_view);
        let body = self.group(depth);
        self.views -= usize::from(in_view);
        self.atomic -= 1;
        (head + &clause, body)
    }

    /// Returns `atomic`, with directories sometimes, and more rarely inside another view.
    pub(super) fn atomic_clause(&mut self) -> String {
        const DIRECTORIES: [&str; 4] = ["/d", ". /e", "$w", "\"${v}\" /d/*"];
        let chance = if self.views > 0 { 0.25 } else { 0.4 };
        let directories = self.maybe(chance, |g| format!(" in {}", g.dice.pick(&DIRECTORIES)));
        format!(" atomic{directories}")
    }

    /// Returns redirections after the `end` of a `try`, mostly of its output if it is atomic.
    fn outputs(&mut self, head: &str) -> String {
        const OUTPUTS: [&str; 4] =
            [" > /out", " > /out 2> /errors", " >> /log 2> /errors", " < /data >& /out -> v"];
        let atomic = head.contains(" atomic") && self.dice.chance(0.5);
        if atomic { (*self.dice.pick(&OUTPUTS)).into() } else { self.around() }
    }

    /// Returns a command that leaves a `try` and more.
    fn way_out(&mut self) -> Option<&'static str> {
        let ends: &[&str] = match (self.leaves, self.returns) {
            (true, true) => &["return", "exit", "exit 4"],
            (true, false) => &["exit", "exit 4"],
            (false, _) => &[],
        };
        let ways = [self.jumps, self.jumps, ends].concat();
        (!ways.is_empty()).then(|| *self.dice.pick(&ways))
    }

    /// Generates the line of a `try`, with a limit for each `d` (a duration) and `n` (a number).
    pub(super) fn head(&mut self, kinds: &str) -> (String, Limits) {
        let mut limits = Limits::default();
        let mut head = "try".to_owned();
        if self.dice.chance(0.03) {
            // A head without a value makes no attempt and runs the `catch`.
            limits.headless = true;
            return ("try $no_number times each $n seconds".into(), limits);
        }
        for (index, limit) in kinds.chars().enumerate() {
            head += if index > 0 { " or" } else { *self.dice.pick(&["", " for"]) };
            if limit == 'd' {
                head += &self.length(&mut limits.limit);
            } else {
                let times = self.dice.number(1, 5);
                limits.times = Some(times as u64);
                head += &format!(" {times} times");
            }
        }
        if self.dice.chance(0.25) {
            head += " each";
            limits.usual = self.dice.chance(0.4);
            head += if limits.usual { " usual or" } else { "" };
            head += &self.length(&mut limits.each);
        }
        if self.dice.chance(0.2) {
            head += " stalled";
            head += &self.length(&mut None);
        }
        if self.dice.chance(0.15) {
            head += &format!(" memory {}", self.dice.pick(&SIZES));
        }
        if self.dice.chance(0.05) {
            head += " every 0 seconds";
        } else if self.dice.chance(0.2) {
            head += " every";
            head += &self.length(&mut limits.every);
        } else if self.dice.chance(0.6) {
            let policy = self.policy();
            head += &format!(" backoff {policy}");
            limits.policy = Some(policy);
        }
        if self.dice.chance(0.25) {
            limits.through = true;
            head += &format!(" through {}", self.dice.pick(&CHANNELS));
        }
        if self.dice.chance(0.1) {
            head += " same input";
        }
        if self.dice.chance(0.15) {
            limits.no_leftovers = true;
            head += " no leftovers";
        }
        if self.dice.chance(0.2) {
            let (text, signal) = self.dice.pick(&SIGNALS);
            limits.signal = Some(*signal);
            head += &format!(" signal {text}");
        }
        if self.dice.chance(0.2) {
            limits.conditional = true;
            head += &format!(" while {}", self.condition(1));
        }
        (head, limits)
    }

    /// Generates the declaration of a channel.
    pub(super) fn channel(&mut self, name: &str) -> String {
        let mut rules = [
            self.maybe(0.6, |g| format!(" at most {}", g.dice.pick(&["1", "2", "(1 .add. 2)"]))),
            self.maybe(0.4, |g| {
                let count = *g.dice.pick(&["1", "5", "$n"]);
                format!(" rate {count} per {}", g.dice.pick(&["second", "$limit", "10 seconds"]))
            }),
            self.maybe(0.4, |g| {
                format!(" budget {}", g.dice.pick(&["10%", "100%", "(5 .mul. 5) %"]))
            }),
            self.maybe(0.25, |g| {
                let count = *g.dice.pick(&["1", "3", "$n"]);
                format!(" breaker {count} failures {}", g.dice.pick(&["2s", "$limit", "1 minute"]))
            }),
        ];
        if rules.concat().is_empty() {
            rules[0] = " at most 1".into();
        }
        let first = self.dice.number(0, rules.len() - 1);
        rules.rotate_left(first);
        // The log has lines of commands.
        format!("channel {name}{}; success", rules.concat())
    }

    fn length(&mut self, into: &mut Option<Duration>) -> String {
        let (text, millis) = self.dice.pick(&TIMES);
        *into = Some(Duration::from_millis(*millis));
        format!(" {text}")
    }

    fn policy(&mut self) -> String {
        let kind = *self.dice.pick(&PolicyKind::ALL);
        let mut policy = kind.name().to_owned();
        for (clause, values) in [
            (Clause::From, ["50 ms", "200 ms", "1 s"]),
            (Clause::To, ["1 s", "5 s", "1 minute"]),
            (Clause::By, ["1", "2", "3.5"]),
            (Clause::Jitter, ["0%", "10%", "80%"]),
        ] {
            if kind.takes(clause) && self.dice.chance(0.7) {
                policy += &format!(" {} {}", clause.name(), self.dice.pick(&values));
            }
        }
        policy
    }
}
