//! Structures whose branches report their progress to oracles.

use super::generate::{FUNCTIONS, Generator, block, line};
use super::{Limits, Node, Promise, Site};

/// Generates a `forall` that prints `@start` and, with its variable, `@done` or `@failed`. Each
/// branch prints `@branch`.
pub(super) fn forall(g: &mut Generator, depth: usize) -> Node {
    let mut site = site(g, depth);
    let mut head = format!("forall {} in {}", site.variable, site.words.join(" "));
    if g.dice.chance(0.3) {
        let most = g.dice.number(1, 3);
        site.at_most = Some(most);
        head += &format!(" at most {most}");
    }
    if g.dice.chance(0.6) {
        let too_many = usize::from(g.dice.chance(0.1));
        let least = g.dice.number(1, site.words.len() + too_many);
        site.at_least = Some(least);
        head += &format!(" at least {least}");
    }
    if g.dice.chance(0.4) {
        site.keep_going = true;
        head += " keep going";
    } else if g.dice.chance(0.3) {
        site.finish_running = true;
        head += " finish running";
    }
    if g.dice.chance(0.5) {
        let in_order = g.dice.chance(0.5);
        site.grouped = Some(in_order);
        head += if in_order { " output grouped in order" } else { " output grouped" };
    }
    let mut body = body(g, depth);
    body[0] = line("echo @branch $slot");
    reporting(
        site,
        head,
        body,
        "@done",
        "@failed {} $failed / $succeeded / ${count(${failed_errors[@]})}",
    )
}

/// Generates attempts of a `forall` that records its words, in a file that nothing else uses, or whose
/// branches take and give files.
pub(super) fn recorded(g: &mut Generator) -> Node {
    let has_files = g.dice.chance(0.4);
    let variable = g.fresh(if has_files { "files" } else { "once" });
    let times = g.dice.number(1, 4);
    let mut head = if has_files {
        let missing = g.maybe(0.1, |_| " missing".into());
        let again = g.maybe(0.1, |_| " a".into());
        format!(
            "forall {variable} in a b c{again} takes taken{missing} gives ${variable}.{variable}"
        )
    } else {
        format!("forall {variable} in a b c a once in /{variable}")
    };
    head += &g.maybe(0.4, |g| format!(" at most {}", g.dice.number(1, 3)));
    head += *g.dice.pick(&["", " keep going", " finish running", " at least 2"]);
    let mut body = body(g, 1);
    let mut before = Vec::new();
    if has_files {
        before.push(line("echo a > taken"));
        if g.dice.chance(0.9) {
            body.push(line(format!("echo a > ${variable}.{variable}")));
        }
    }
    let branches =
        Node::Block { promise: None, groups: vec![(head, body)], redirects: String::new() };
    before.push(branches);
    let tries = Limits { times: Some(times as u64), ..Limits::default() };
    Node::Block {
        promise: Some(Promise::Try(tries)),
        groups: vec![
            (format!("try {times} times"), before),
            ("catch".into(), vec![line("echo $failed_errors")]),
        ],
        redirects: String::new(),
    }
}

/// Generates attempts that print `@taken` with a word into a file or variable that nothing else uses.
/// The script prints its first line or its content after `@seen`.
pub(super) fn taken_back(g: &mut Generator) -> Node {
    let name = g.fresh("taken");
    let is_loop = g.dice.chance(0.3);
    let (head, limits) = if is_loop {
        ("forany w in a b c d".to_owned(), None)
    } else {
        let kinds = *g.dice.pick(&["n", "dn", "d"]);
        let (head, limits) = g.head(kinds);
        (head, Some(limits))
    };
    let word = if is_loop { "$w" } else { "$attempt" };
    let mut body = vec![line(format!("echo @taken {name} {word}"))];
    for _ in 0..g.dice.number(1, 3) {
        let programs =
            ["flaky", "flaky", "work 1", "slowfail 2", "noisy", "demon", "hang", "dies 9"];
        body.push(line(*g.dice.pick(&programs)));
    }
    let (end, read) = match g.dice.number(0, 4) {
        0 => (format!(" > /{name}"), format!("read {name} < /{name}")),
        1 => (format!(" >> /{name}"), format!("read {name} < /{name}")),
        2 => (format!(" -> {name}"), "success".into()),
        3 => (format!(" ->> {name}"), "success".into()),
        _ => (String::new(), "success".into()),
    };
    let is_value = end.is_empty();
    let mut groups = vec![(head, body)];
    if !is_loop && g.dice.chance(0.6) {
        groups.push(("catch".into(), vec![line("ok")]));
    }
    if is_value {
        groups[0].0.insert_str(0, &format!("{name}=$("));
    }
    let redirects = if is_value { ")".into() } else { end };
    let attempts = Node::Block { promise: limits.map(Promise::Try), groups, redirects };
    let seen = line(format!("echo @seen {name} \"${{{name}:-}}\""));
    Node::Block {
        promise: Some(Promise::Try(Limits::default())),
        groups: vec![
            ("try".into(), vec![attempts, line(read), seen]),
            ("catch".into(), vec![line("ok")]),
        ],
        redirects: String::new(),
    }
}

/// Generates a hedged `forany` that prints `@start` and, with its variable, `@won` or `@lost`. Each
/// word prints `@branch`, and `@end` before its success.
pub(super) fn hedge(g: &mut Generator, depth: usize) -> Node {
    let site = site(g, depth);
    let after = *g.dice.pick(&["$limit", "300 ms", "2s"]);
    let usual = g.maybe(0.3, |_| " usual or".into());
    let mut head =
        format!("forany {} in {} hedge after{usual} {after}", site.variable, site.words.join(" "));
    head += &g.maybe(0.4, |_| " in order".into());
    head += &g.maybe(0.3, |g| format!(" at most {}", g.dice.number(1, 3)));
    // No other exit is possible.
    let around = (g.leaves, g.callable, g.may_source);
    (g.leaves, g.callable, g.may_source) = (false, FUNCTIONS, false);
    let mut body = body(g, depth);
    (g.leaves, g.callable, g.may_source) = around;
    body.push(line("echo @end"));
    reporting(site, head, body, "@won", "@lost {}")
}

/// Generates an `in` with commands before and after it, which run in the same directory.
pub(super) fn inside(g: &mut Generator, depth: usize) -> Node {
    let name = g.fresh("in");
    let directory = *g.dice.pick(&["/", "/here", "there", "$v", "dirname(\"/a/b\")", "/data"]);
    let is_loop = g.dice.chance(0.4);
    let jumps = if is_loop { Generator::JUMPS } else { g.jumps };
    let mut body = vec![line(format!("cd {}", g.dice.pick(&["/", "deeper"])))];
    body.extend(g.body(jumps, depth));
    let mut groups = vec![(format!("in {directory}"), body)];
    // Other statements in a `catch` could change the directory around the `in`.
    if g.dice.chance(0.2) {
        groups.push(("catch".into(), vec![line("ok")]));
    }
    let redirects = if is_loop { String::new() } else { g.around() };
    let inside = Node::Block { promise: None, groups, redirects };
    let inside = if is_loop { block(format!("for {name} in 1 2"), vec![inside]) } else { inside };
    let marks = ["before", "after"].map(|mark| line(format!("ok {mark} {name}")));
    let [before, after] = marks;
    block("if true".into(), vec![before, inside, after])
}

/// Generates a `with` whose command and group name it, and a command behind it.
pub(super) fn beside(g: &mut Generator, depth: usize) -> Node {
    let name = g.fresh("with");
    let program =
        *g.dice.pick(&["hang", "hang", "hang", "work 2", "slowfail 1", "flaky", "nosuch"]);
    let stage = g.maybe(0.1, |_| " | cat".into());
    // `exec` cannot stand here.
    g.atomic += 1;
    let mut body = g.body(g.jumps, depth);
    g.atomic -= 1;
    body.push(line(format!("ok group {name}")));
    let mut groups = vec![(format!("with {program} beside {name}{stage}"), body)];
    g.handle(&mut groups, 0.3, depth);
    let with = Node::Block { promise: None, groups, redirects: g.around() };
    block("if true".into(), vec![with, line(format!("ok behind {name}"))])
}

/// Deeper structures have fewer words, because their numbers multiply.
fn site(g: &mut Generator, depth: usize) -> Site {
    let words = ["a", "b", "c", "d", "e"][..g.dice.number(1, 1 + depth.min(4))].iter();
    Site {
        variable: g.fresh("branch"),
        words: words.map(|word| (*word).to_owned()).collect(),
        at_least: None,
        keep_going: false,
        finish_running: false,
        at_most: None,
        grouped: None,
    }
}

/// Returns statements that may fail, or any statements.
fn body(g: &mut Generator, depth: usize) -> Vec<Node> {
    let mut body = vec![line("echo @branch")];
    if g.dice.chance(0.5) {
        for _ in 0..g.dice.number(1, 3) {
            let programs = [
                "ok",
                "flaky",
                "work 1",
                "work 3",
                "slowfail 2",
                "obeys 1",
                "noisy",
                "demon",
                "giveup",
            ];
            body.push(line(*g.dice.pick(&programs)));
        }
    } else {
        body.extend(g.body(&[], depth));
    }
    body
}

fn reporting(site: Site, head: String, body: Vec<Node>, done: &str, failed: &str) -> Node {
    let variable = site.variable.clone();
    let promise = Some(Promise::Branches(site));
    let branches = Node::Block { promise, groups: vec![(head, body)], redirects: String::new() };
    let tried = vec![
        line(format!("echo @start {variable}")),
        branches,
        line(format!("echo {done} {variable} ${{{variable}:-}}")),
    ];
    let caught = vec![line(format!("echo {}", failed.replace("{}", &variable)))];
    Node::Block {
        promise: Some(Promise::Try(Limits::default())),
        groups: vec![("try".into(), tried), ("catch".into(), caught)],
        redirects: String::new(),
    }
}
