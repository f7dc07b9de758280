//! Imports have no circles inside a crate. Rooms, the folders and files directly below a crate's
//! root, have doors of few names, and their imports point downwards.

use std::collections::{BTreeMap, BTreeSet};

use super::tidy::{assert_none, code};

/// Crates whose rooms have doors.
const WITH_DOORS: [&str; 2] = ["ftsh-machine", "ftsh-process"];

/// Maximum number of names that the door of a room shows. A public module counts as a name.
const MOST_NAMES: usize = 10;

/// A module: the names from the crate's root.
type Path = Vec<String>;

/// Modules of a crate with their imports.
struct Crate {
    /// Modules with the names of their files.
    files: BTreeMap<Path, String>,
    /// Imported names of each module with their paths.
    names: BTreeMap<Path, BTreeMap<String, Path>>,
}

impl Crate {
    fn read() -> (Self, Vec<(Path, String)>) {
        let modules: Vec<(Path, String, String)> =
            code().into_iter().map(|(name, text)| (module(&name), name, text)).collect();
        let mut this = Self { files: BTreeMap::new(), names: BTreeMap::new() };
        for (path, name, _) in &modules {
            this.files.insert(path.clone(), name.clone());
        }
        for (path, _, text) in &modules {
            let mut names = BTreeMap::new();
            for (name, target) in declared(text) {
                if let Some(target) = this.absolute(path, &target) {
                    names.insert(name, target);
                }
            }
            this.names.insert(path.clone(), names);
        }
        (this, modules.into_iter().map(|(path, _, text)| (path, text)).collect())
    }

    /// Resolves a path from the root; none for a path outside of the crate.
    fn absolute(&self, from: &Path, path: &Path) -> Option<Path> {
        let (first, rest) = path.split_first()?;
        let mut start = match first.as_str() {
            "crate" => from[..1].to_vec(),
            "self" => from.clone(),
            "super" => from.split_last()?.1.to_vec(),
            child => {
                let path: Path = from.iter().cloned().chain([child.to_owned()]).collect();
                self.files.contains_key(&path).then_some(path)?
            }
        };
        let mut rest = rest;
        while let Some((next, others)) = rest.split_first().filter(|(next, _)| *next == "super") {
            debug_assert_eq!(next, "super");
            start.pop();
            rest = others;
        }
        start.extend_from_slice(rest);
        Some(start)
    }

    /// Returns the module that defines the target of a path.
    fn home(&self, path: &Path, depth: usize) -> Option<Path> {
        let mut module: Path = Vec::new();
        for name in path {
            module.push(name.clone());
            if self.files.contains_key(&module) {
                continue;
            }
            let rest = &path[module.len()..];
            module.pop();
            // Imported from elsewhere, or defined here.
            let Some(target) = self.names.get(&module).and_then(|names| names.get(name)) else {
                break;
            };
            if depth == 0 {
                break;
            }
            let target = target.iter().chain(rest).cloned().collect();
            return self.home(&target, depth - 1);
        }
        self.files.contains_key(&module).then_some(module)
    }

    /// Returns each use of a module by another one. What a door shows is no use. Where rooms have
    /// no doors, uses of the modules of the folders around a file are not counted, since a folder's
    /// own module defines names for the files below it.
    fn arrows(&self, modules: &[(Path, String)]) -> BTreeSet<(Path, Path)> {
        let mut arrows = BTreeSet::new();
        for (from, text) in modules {
            let has_doors = from.first().is_some_and(|it| WITH_DOORS.contains(&it.as_str()));
            let text = if has_doors { &without_door(text) } else { text };
            let declared = declared(text).into_iter().map(|(_, path)| path);
            let children =
                self.files.keys().filter(|path| path.split_last().is_some_and(|it| it.1 == from));
            let children: Vec<&str> =
                children.filter_map(|path| Some(path.last()?.as_str())).collect();
            for path in declared.chain(mentioned(text, &children)) {
                let home = self.absolute(from, &path).and_then(|path| self.home(&path, 9));
                let is_counted =
                    |home: &Path| home != from && (has_doors || !from.starts_with(home));
                if let Some(home) = home.filter(is_counted) {
                    arrows.insert((from.clone(), home));
                }
            }
        }
        arrows
    }
}

/// Returns the module of a file.
fn module(file: &str) -> Path {
    let name = file.trim_start_matches("crates/").trim_end_matches(".rs");
    let name = name.strip_suffix("/mod").or_else(|| name.strip_suffix("/lib")).unwrap_or(name);
    // The crate's name stands for its root.
    let parts = name.split('/').filter(|part| *part != "src" || name.starts_with("src/"));
    parts.map(str::to_owned).collect()
}

/// Removes comments.
fn without_comments(text: &str) -> String {
    let line = |line: &str| line.split_once("//").map_or(line, |(code, _)| code).to_owned() + "\n";
    text.lines().map(line).collect()
}

/// Removes the names that a module shows of the files in its folder.
fn without_door(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("\npub") {
        let (before, shown) = rest.split_at(at + 1);
        let is_use = shown.lines().next().is_some_and(|line| line.contains(" use "));
        let end = if is_use { shown.find(';').map_or(0, |end| end + 1) } else { "pub".len() };
        kept.extend([before, if is_use { "" } else { &shown[..end] }]);
        rest = &shown[end..];
    }
    kept + rest
}

/// Returns the names of a module that other modules can use.
fn shown(text: &str) -> Vec<String> {
    const ITEMS: [&str; 8] = ["struct", "enum", "trait", "fn", "const", "static", "type", "mod"];
    let text = without_comments(text);
    let mut names = Vec::new();
    for (at, _) in text.match_indices("\npub") {
        let item = &text[at + 1..];
        let words =
            item.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|it| !it.is_empty());
        let mut words = words.skip_while(|it| matches!(*it, "pub" | "crate" | "super" | "in"));
        match words.next() {
            Some("use") => {
                let end = item.find(';').map_or(item.len(), |end| end + 1);
                names.extend(declared(&item[..end]).into_iter().map(|(name, _)| name));
            }
            Some(kind) if ITEMS.contains(&kind) => {
                // `const fn`
                names.extend(words.find(|it| *it != "fn").map(str::to_owned));
            }
            _ => {}
        }
    }
    names
}

/// Returns the names that `use` declares, each with its path.
fn declared(text: &str) -> Vec<(String, Path)> {
    let mut found = Vec::new();
    let text = without_comments(text);
    let mut rest = text.as_str();
    while let Some(at) = rest.find("use ") {
        let begins = rest[..at].chars().next_back().is_none_or(char::is_whitespace);
        rest = &rest[at + 4..];
        if begins && let Some((tree, after)) = rest.split_once(';') {
            branches(tree, &Vec::new(), &mut found);
            rest = after;
        }
    }
    found
}

/// Returns the paths in a tree such as `a::{b, c::{d, self}}`.
fn branches(tree: &str, before: &Path, found: &mut Vec<(String, Path)>) {
    let tree = tree.trim();
    let mut path = before.clone();
    if let Some((start, group)) = tree.split_once('{') {
        path.extend(
            start.split("::").map(str::trim).filter(|name| !name.is_empty()).map(Into::into),
        );
        let group = group.trim_end().strip_suffix('}').unwrap_or(group);
        let mut depth = 0;
        let part = |c: char| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            c == ',' && depth == 0
        };
        return group
            .split(part)
            .filter(|it| !it.trim().is_empty())
            .for_each(|it| branches(it, &path, found));
    }
    let (tree, alias) = tree.split_once(" as ").map_or((tree, None), |(path, to)| (path, Some(to)));
    path.extend(tree.split("::").map(|name| name.trim().to_owned()));
    path.retain(|name| name != "*");
    if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
        path.pop();
    }
    let name = alias.map(|alias| alias.trim().to_owned()).or_else(|| path.last().cloned());
    found.extend(name.map(|name| (name, path)));
}

/// Returns the paths in code that begin at the root of this crate, beside the module or at one of
/// its `children`.
fn mentioned(text: &str, children: &[&str]) -> Vec<Path> {
    let text = without_comments(text);
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for start in ["crate", "super", "self"].iter().chain(children) {
        for (at, _) in text.match_indices(&format!("{start}::")) {
            if text[..at].ends_with(|c| is_name(c) || c == ':') {
                continue;
            }
            let end = text[at..].find(|c| !is_name(c) && c != ':').unwrap_or(text.len() - at);
            let path = text[at..at + end].split("::").filter(|name| !name.is_empty());
            found.push(path.map(str::to_owned).collect());
        }
    }
    found
}

/// Returns the modules reachable from each module.
fn reachable(arrows: &BTreeSet<(Path, Path)>) -> BTreeMap<&Path, BTreeSet<&Path>> {
    let mut direct: BTreeMap<&Path, Vec<&Path>> = BTreeMap::new();
    for (from, to) in arrows {
        direct.entry(from).or_default().push(to);
    }
    let all = direct.keys().map(|&from| {
        let mut seen = BTreeSet::new();
        let mut stack = vec![from];
        while let Some(next) = stack.pop() {
            let new = direct.get(next).into_iter().flatten().filter(|to| seen.insert(**to));
            stack.extend(new);
        }
        (from, seen)
    });
    all.collect()
}

/// Returns the circles of imports in `src`, each once.
fn circles(arrows: &BTreeSet<(Path, Path)>) -> BTreeSet<BTreeSet<&Path>> {
    let reachable = reachable(arrows);
    let is_around =
        |from: &Path, to: &Path| reachable.get(from).is_some_and(|all| all.contains(to));
    let in_circles = reachable.keys().filter(|path| is_around(path, path));
    let circle = |&path: &&Path| {
        reachable[path].iter().filter(|other| is_around(other, path)).copied().collect()
    };
    in_circles.map(circle).collect()
}

#[test]
fn no_imports_go_in_a_circle() {
    let (all, modules) = Crate::read();
    let arrows = all.arrows(&modules);
    let mut problems = Vec::new();
    for circle in circles(&arrows) {
        for (from, to) in &arrows {
            if circle.contains(from) && circle.contains(to) {
                let (from, to) = (&all.files[from], &all.files[to]);
                problems.push(format!("in a circle: {from} uses {to}"));
            }
        }
    }
    assert_none(&problems);
}

#[test]
fn doors_show_few_names() {
    let (all, modules) = Crate::read();
    let mut problems = Vec::new();
    for (path, text) in &modules {
        let [package, rest @ ..] = &path[..] else { continue };
        if !WITH_DOORS.contains(&package.as_str()) {
            continue;
        }
        let file = &all.files[path];
        if rest.len() == 1 {
            let names = shown(text);
            if names.len() > MOST_NAMES {
                problems.push(format!("{file} shows {} names: {}", names.len(), names.join(", ")));
            }
        }
        // The compiler rejects an import around a door, unless a module is open to the crate.
        if text.contains("\npub(crate) mod ") {
            problems.push(format!("{file} shows a module, and all names in it, to its crate"));
        }
    }
    assert_none(&problems);
}

#[test]
fn rooms_with_doors_are_used_from_above() {
    let (all, modules) = Crate::read();
    let arrows = all.arrows(&modules);
    let room = |path: &Path| path[..path.len().min(2)].to_vec();
    let has_doors = |path: &Path| path.len() > 1 && WITH_DOORS.contains(&path[0].as_str());
    let between = arrows.iter().filter(|(from, to)| has_doors(from) && has_doors(to));
    let between = between.map(|(from, to)| (room(from), room(to))).filter(|(from, to)| from != to);
    let between: BTreeSet<(Path, Path)> = between.collect();
    let mut problems = Vec::new();
    for circle in circles(&between) {
        for (from, to) in &arrows {
            let (above, below) = (room(from), room(to));
            if above != below && circle.contains(&above) && circle.contains(&below) {
                let (from, to) = (&all.files[from], &all.files[to]);
                problems.push(format!("in a circle of rooms: {from} uses {to}"));
            }
        }
    }
    assert_none(&problems);
}

#[test]
fn circles_are_found() {
    let path = |text: &str| text.split("::").map(str::to_owned).collect::<Path>();
    let arrow = |(from, to): &(&str, &str)| (path(from), path(to));
    let drawn = [("a", "b::c"), ("b::c", "d"), ("d", "a"), ("d", "e"), ("e", "f")];
    let arrows: BTreeSet<_> = drawn.iter().map(arrow).collect();
    let found: Vec<Vec<Path>> =
        circles(&arrows).into_iter().map(|circle| circle.into_iter().cloned().collect()).collect();
    assert_eq!(found, [[path("a"), path("b::c"), path("d")]]);
    let text = "use a::{b, c::{self, D}};\npub use super::e as f; // use g::h;\nx(crate::i::j())";
    let imports = declared(text).into_iter();
    let imports = imports.map(|(name, path)| format!("{name}={}", path.join("::")));
    assert_eq!(imports.collect::<Vec<_>>(), ["b=a::b", "c=a::c", "D=a::c::D", "f=super::e"]);
    assert_eq!(mentioned(text, &[]), [path("crate::i::j"), path("super::e")]);
    assert_eq!(mentioned("c::D::e(bc::d)", &["c"]), [path("c::D::e")]);
    let text = "mod a;\npub mod b;\nuse self::a::E;\npub(crate) use self::a::{C, D};\n\
                pub const fn f() {\n    pub g: u8,\n}\n";
    assert_eq!(shown(text), ["b", "C", "D", "f"]);
    let imports = declared(&without_door(text)).into_iter();
    assert_eq!(imports.map(|(name, _)| name).collect::<Vec<_>>(), ["E"]);
}
