//! Commands: programs of the world, builtins, calls and assignments, with their redirections.

use super::LIBRARY;
use super::generate::{FUNCTIONS, Generator};
use super::tries::CHANNELS;

/// Generator of a command.
type Make = fn(&mut Generator) -> String;

/// Commands with their weights.
pub(super) const COMMANDS: &[(u32, Make)] = &[
    (30, redirected),
    (8, pipeline),
    (5, call),
    (3, deep),
    (8, assignment),
    (2, list),
    (3, here_document),
    (3, |g| format!("sleep {}", g.dice.pick(&["100ms", "0.5", "2 seconds", "1m"]))),
    (3, |g| format!("read {}{}", g.variable(), g.input())),
    (2, |g| format!("export {}", g.variable())),
    (2, |g| format!("export {}=exported", g.variable())),
    (2, |g| format!("export {}={}", g.variable(), g.number(2))),
    (1, |g| format!("unset {}", g.variable())),
    (2, |g| {
        let head = *g.dice.pick(&["limit $limit", "for z in 1 2", "forall z in a b", "in /here"]);
        let inner = g.maybe(0.3, |_| "limit 1 minute -- ".into());
        format!("{head} -- {inner}{}", g.simple())
    }),
    (2, |g| format!("cd {}", g.dice.pick(&["/", "/here", "there", ""]))),
    (2, |g| format!("pwd{}", g.redirects())),
    (1, |g| {
        let name = *g.dice.pick(&CHANNELS);
        g.channel(name)
    }),
    (1, |g| format!("umask {}", g.dice.pick(&["022", "0", "077", "rw"]))),
    (1, |g| format!("umask{}", g.redirects())),
    (2, |g| if g.may_source { format!("source {LIBRARY}") } else { "success".into() }),
    (1, |_| "source /nowhere".into()),
    (1, |_| "success".into()),
    (2, |g| format!("failure{}", g.maybe(0.5, |_| " on purpose".into()))),
    (2, |g| format!("giveup{}", g.maybe(0.5, |g| format!(" \"{}\"", g.value())))),
    (4, |g| format!("shift{}", g.maybe(0.5, |_| " 2".into()))),
    (2, end),
    (9, jump),
];

/// Statements that leave an iteration of a loop, mostly by chance.
fn jump(g: &mut Generator) -> String {
    if g.jumps.is_empty() {
        return g.program();
    }
    let jump = *g.dice.pick(g.jumps);
    if g.dice.chance(0.4) { jump.into() } else { format!("if {}; {jump}; end", g.condition(1)) }
}

/// Statements that end more than themselves, mostly by chance.
fn end(g: &mut Generator) -> String {
    let end = match g.dice.number(0, if g.returns { 3 } else { 1 }) {
        // No statement leaves a `finally`.
        _ if !g.leaves => return "failure".into(),
        0 => format!("exit {}", g.dice.pick(&["", "0", "4"])),
        1 if g.atomic > 0 => "exit 0".into(),
        1 => format!("exec {}", g.program()),
        2 => "return".into(),
        _ => format!("return {}", g.number(1)),
    };
    if g.dice.chance(0.3) { end } else { format!("if {}; {end}; end", g.condition(1)) }
}

fn redirected(g: &mut Generator) -> String {
    let environment = g.maybe(0.1, |_| "A=here ".into());
    let accept =
        g.maybe(0.1, |g| format!("accept {},{} ", g.dice.number(0, 15), g.dice.number(1, 4)));
    let keep = g.maybe(if g.views > 0 { 0.0 } else { 0.1 }, |_| "keep ".into());
    format!("{environment}{accept}{keep}{}{}", g.simple(), g.redirects())
}

fn pipeline(g: &mut Generator) -> String {
    let mut stages = g.simple();
    for _ in 0..g.dice.number(1, 3) {
        let (pipe, stage) = (g.pipe(), g.simple());
        let redirects = g.maybe(0.2, Generator::redirects);
        stages = format!("{stages}{pipe}{stage}{redirects}");
    }
    stages
}

fn call(g: &mut Generator) -> String {
    match g.function() {
        Some(name) => format!("{name} {}{}", g.words(), g.redirects()),
        None => g.program(),
    }
}

/// A recursive call; not inside the function itself, which would be endless.
fn deep(g: &mut Generator) -> String {
    if g.callable < FUNCTIONS { "deep 2".into() } else { g.program() }
}

fn assignment(g: &mut Generator) -> String {
    let name = g.variable();
    match g.dice.number(0, 7) {
        0 => format!("{name}="),
        1 => format!("{name}={}", g.condition(2)),
        2 => format!("{name}=${name}${name}"),
        3 => format!("{name}=\"{} {}\"", g.value(), g.value()),
        4 => format!("{name}={}", g.text()),
        _ => format!("{name}={}", g.number(2)),
    }
}

fn list(g: &mut Generator) -> String {
    let head = *g.dice.pick(&["list l in", "list add l first"]);
    let words = if g.dice.chance(0.3) { g.list() } else { "a \"b c\" 1 .to. 3".into() };
    format!(
        "{head} {words}\nlist add l more\necho ${{l[@]}} ${{l[1]}} ${{l[2..]}} $l ${{count($l)}}{}",
        g.redirects()
    )
}

fn here_document(g: &mut Generator) -> String {
    let (word, value) = (if g.dice.chance(0.5) { "END" } else { "'END'" }, g.value());
    let (sign, indent) = if g.dice.chance(0.3) { ("<<-", "  ") } else { ("<<", "") };
    let target = g.maybe(0.4, |g| format!(" -> {}", g.variable()));
    format!("cat {sign}{word}{target}\n{indent}some {value}\n{indent}END")
}

impl Generator {
    /// Returns a program of the world with its arguments.
    pub(super) fn program(&mut self) -> String {
        let seconds = *self.dice.pick(&["0.1", "0.7", "1", "3", "8"]);
        let number = self.dice.number(1, 15);
        match self.dice.number(0, 25) {
            0..=4 => "ok".into(),
            5..=7 => format!("fail {number}"),
            8..=10 => format!("work {seconds}"),
            11 | 12 => format!("slowfail {seconds}"),
            13..=15 => "flaky".into(),
            16 => "hang".into(),
            17 => "stubborn".into(),
            18 => format!("obeys {seconds}"),
            19 => "daemon".into(),
            20 => "demon".into(),
            21 => format!("dies {number}"),
            22 => "noisy".into(),
            23 => "cat".into(),
            24 => "deaf".into(),
            _ => "nosuch".into(),
        }
    }

    /// Returns a stage of a pipeline.
    pub(super) fn simple(&mut self) -> String {
        match self.dice.number(0, 9) {
            0 => format!("echo {}", self.words()),
            1 => format!("echo -n {}", self.words()),
            2 => format!("cat {}", self.words()),
            3 => self.function().map_or("cat".into(), |name| format!("{name} {}", self.words())),
            4 => format!("read {}", self.variable()),
            _ => self.program(),
        }
    }

    pub(super) fn pipe(&mut self) -> &'static str {
        if self.dice.chance(0.2) { " |& " } else { " | " }
    }

    pub(super) fn function(&mut self) -> Option<String> {
        let first = self.callable;
        if let Some(used) = self.used_name
            && first < FUNCTIONS
            && self.dice.chance(0.2)
        {
            return Some(used.to_owned());
        }
        (first < FUNCTIONS).then(|| format!("f{}", self.dice.number(first, FUNCTIONS - 1)))
    }

    pub(super) fn variable(&mut self) -> &'static str {
        const NAMES: [&str; 6] = ["n", "v", "w", "o", "p", "q"];
        NAMES[self.dice.number(0, NAMES.len() - 1)]
    }

    /// Returns a word with a variable or with text.
    pub(super) fn value(&mut self) -> String {
        let name = self.variable();
        match self.dice.number(0, 10) {
            0..=2 => format!("${name}"),
            3 => format!("${{{name}:-none}}"),
            4 => format!("${{{name}:+some}}"),
            5 => (*self.dice.pick(&["$attempt", "$remaining", "${elapsed:-}", "$scratch"])).into(),
            6 => (*self.dice.pick(&[
                "${error_kind:-}",
                "${error:-}",
                "$error_code",
                "$error_errno",
                "$error_signal",
                "$error_output",
            ]))
            .into(),
            8 => format!("${{{name}:?no {name}}}"),
            7 => (*self.dice.pick(&["$#", "$1", "$$", "$*"])).into(),
            _ => (*self.dice.pick(&["a", "7", "b.c"])).into(),
        }
    }

    pub(super) fn words(&mut self) -> String {
        let mut words = Vec::new();
        for _ in 0..self.dice.number(0, 3) {
            words.push(match self.dice.number(0, 15) {
                12 => format!("$({})", self.simple()),
                13 => format!("\"$(if ok; {}; end)\"", self.simple()),
                14 => "$((n + 2 * (1 - $#)))".into(),
                15 => (*self.dice.pick(&["$(v)", "$(pwd)"])).into(),
                0 => (*self.dice.pick(&["/*.c", "/[ab].c", "/?.d", "one\\ word"])).into(),
                1 => (*self.dice.pick(&["~", "~/a", "~user"])).into(),
                2 => "'single $n'".into(),
                3 => "\"$@\"".into(),
                4 => format!("\"a ${{{}}} b\"", self.call()),
                5 => format!("\"{}\"", self.value()),
                6 => format!("${{{}}}", self.call()),
                _ => self.value(),
            });
        }
        words.join(" ")
    }

    pub(super) fn input(&mut self) -> String {
        let name = self.variable();
        match self.dice.number(0, 3) {
            0 => " < /data".into(),
            1 => " < /nodata".into(),
            2 => format!(" -< {name}"),
            _ => format!(" <<< \"{}\"", self.value()),
        }
    }

    /// Returns redirections, mostly none.
    pub(super) fn redirects(&mut self) -> String {
        let mut redirects = String::new();
        while redirects.len() < 20 && self.dice.chance(0.3) {
            let name = self.variable();
            let file = *self.dice.pick(&["/out", "/data", "relative", "/$v", "$scratch/a"]);
            let to = *self.dice.pick(&[">", ">", ">>", "2>", "2>>", ">&", ">>&", "3>"]);
            let into = *self.dice.pick(&["->", "->", "->>", "->>", "2->", "2->>", "->&", "->>&"]);
            redirects += &match self.dice.number(0, 13) {
                0..=2 => self.input(),
                3..=6 => format!(" {to} {file}"),
                7 => (*self.dice.pick(&[" 2>&1", " 1>&2", " 3>&1"])).into(),
                _ => format!(" {into} {name}"),
            };
        }
        redirects
    }
}
