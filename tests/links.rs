//! Links between documents, and the table of contents of the book.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::documents;
use crate::support::skipped::skipped;
use crate::tidy::{assert_none, texts};

/// Documents of the forge, which the book does not have.
const OF_THE_FORGE: [&str; 2] = ["CODE_OF_CONDUCT.md", "RELEASE-CHECKLIST.md"];

/// Pages of the book outside of `docs/`.
pub(crate) const OTHERS: [&str; 6] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "lab/README.md",
];

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the lines of a document outside of its code blocks.
pub(crate) fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_fence && !is_code
    })
}

/// Returns the targets of a document's links.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    prose(text).flat_map(|line| line.split("](").skip(1)).filter_map(|it| it.split(')').next())
}

/// Returns the targets of a document's relative links.
fn links(text: &str) -> Vec<&str> {
    targets(text).filter(|target| !target.contains(':') && !target.is_empty()).collect()
}

/// Returns the anchors of a document's headings, as GitHub and mdBook name them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen = BTreeMap::new();
    let headings = prose(text).filter(|line| line.starts_with('#'));
    let name = |heading: &str| {
        let heading = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        heading
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
            .collect::<String>()
    };
    let mut anchors = BTreeSet::new();
    for anchor in headings.map(name) {
        let count = seen.entry(anchor.clone()).or_insert(0);
        anchors.insert(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
        *count += 1;
    }
    anchors
}

/// Returns a path without `..`; none if the path leaves the repository.
fn normalized(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => normal.pop().then_some(())?,
            part => normal.push(part),
        }
    }
    Some(normal)
}

/// Returns the problem of a link in a document, if there is one.
fn problem(document: &str, text: &str, link: &str) -> Option<String> {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let Some(target) = normalized(&Path::new(document).with_file_name(path)) else {
        return Some(format!("{document}: `{link}` leaves the repository"));
    };
    let is_here = path.is_empty();
    if !is_here && !Path::new(env!("CARGO_MANIFEST_DIR")).join(&target).exists() {
        return Some(format!("{document}: `{link}`: no such file"));
    }
    if anchor.is_empty() {
        return None;
    }
    let other = (!is_here).then(|| read(target.to_str().expect("a path in UTF-8")));
    let has_it = anchors(other.as_deref().unwrap_or(text)).contains(anchor);
    (!has_it).then(|| format!("{document}: `{link}`: no such heading"))
}

#[test]
fn every_link_has_a_target() {
    let mut problems = Vec::new();
    let mut count = 0;
    let documents = ["docs", "crates"].map(documents::below).concat();
    let others = OTHERS.into_iter().chain(OF_THE_FORGE).map(str::to_owned);
    for document in documents.into_iter().chain(others) {
        let text = read(&document);
        for link in links(&text) {
            problems.extend(problem(&document, &text, link));
            count += 1;
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(count > 200, "{count} links");
}

#[test]
fn a_broken_link_is_found() {
    let text = "# A page\n\n[here](#a-page)\n\n```sh\n# code\n```\n";
    assert_eq!(problem("docs/a.md", text, "#a-page"), None);
    assert_eq!(problem("docs/a.md", text, "../Cargo.toml"), None);
    for link in ["#code", "nosuch.md", "../README.md#nosuch", "../../README.md"] {
        assert!(problem("docs/a.md", text, link).is_some(), "{link}");
    }
}

#[test]
fn the_book_has_every_page_once() {
    let summary = read("docs/SUMMARY.md");
    let mut listed: Vec<_> = links(&summary)
        .into_iter()
        .filter_map(|link| normalized(&Path::new("docs").join(link)))
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    listed.sort();
    let mut pages = documents::below("docs");
    pages.retain(|page| page != "docs/SUMMARY.md" && !page.starts_with("docs/recordings/"));
    pages.extend(OTHERS.map(str::to_owned));
    pages.sort();
    assert_eq!(listed, pages, "docs/SUMMARY.md lists other pages than there are");
}

/// Returns the value of a key in a file of TOML, if there is one.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix('='));
    Some(line?.trim().trim_matches('"'))
}

/// Address of the repository before there is one.
const PLACEHOLDER: &str = "https://example.org/ftsh";

fn repository() -> String {
    value(&read("Cargo.toml"), "repository").expect("a repository").to_owned()
}

/// Pages of the book take the address from `Cargo.toml`. Other files may contain the placeholder
/// as long as `Cargo.toml` does.
#[test]
fn the_repository_is_named_in_one_place() {
    let repository = repository();
    assert!(repository.starts_with("https://"), "{repository}");
    let mut problems = Vec::new();
    for (name, text) in texts("") {
        let is_page = name.starts_with("docs/") || OTHERS.contains(&name.as_str());
        // The line that readers copy first.
        let text = text.replace(&format!("git clone {repository}\n"), "");
        let is_stale = repository != PLACEHOLDER && text.contains(PLACEHOLDER);
        if (is_page && text.contains(&repository)) || (is_stale && name != file!()) {
            problems.push(format!("{name} names the repository, which Cargo.toml does"));
        }
    }
    assert_none(&problems);
}

/// Returns the pages of the book as mdBook's preprocessor prints them; none without Python.
fn chapters() -> Option<BTreeMap<String, String>> {
    let book = read("book.toml");
    let places: BTreeMap<_, _> = OTHERS
        .map(|page| format!("../{page}"))
        .into_iter()
        .filter_map(|page| Some((value(&book, &format!("\"{page}\""))?.to_owned(), page)))
        .map(|(place, page)| (page, place))
        .collect();
    let summary = read("docs/SUMMARY.md");
    let chapter = |path: &str| {
        let content = read(&format!("docs/{path}"));
        json!({ "Chapter": { "path": path, "content": content, "sub_items": [] } })
    };
    let items: Vec<_> = links(&summary).into_iter().map(chapter).collect();
    let context = json!({
        "root": env!("CARGO_MANIFEST_DIR"),
        "config": { "book": { "src": "docs" }, "preprocessor": { "pages": { "places": places } } },
    });
    let mut python = Command::new("python3")
        .args(["-B", "packaging/book/pages.py"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .inspect_err(|_| skipped("python3"))
        .ok()?;
    let mut input = python.stdin.take().expect("standard input");
    let text = json!([context, { "items": items }]).to_string();
    // The preprocessor reads all of its input before it prints.
    input.write_all(text.as_bytes()).expect("the preprocessor reads");
    drop(input);
    let output = python.wait_with_output().expect("the preprocessor ends");
    assert!(output.status.success(), "{}", output.status);
    let book: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let pages = book["items"].as_array().expect("pages").iter().map(|item| &item["Chapter"]);
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    Some(pages.map(|page| (text(&page["path"]), text(&page["content"]))).collect())
}

/// A link in the book leads to a page or file of the book, or to a file of the repository that is
/// not in the book.
#[test]
fn the_book_has_no_dead_links() {
    let Some(chapters) = chapters() else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = format!("{}/blob/main/", repository());
    let mut problems = Vec::new();
    let mut counts = [0; 2];
    for (page, text) in &chapters {
        for target in targets(text).filter(|target| !target.starts_with('#')) {
            let is_alive = if let Some(path) = target.strip_prefix(&files) {
                counts[0] += 1;
                let is_in_book = path.starts_with("docs/") || OTHERS.contains(&path);
                !is_in_book && root.join(path).exists()
            } else if target.contains(':') {
                continue;
            } else {
                counts[1] += 1;
                let (path, _) = target.split_once('#').unwrap_or((target, ""));
                let path = normalized(&Path::new(page).with_file_name(path)).unwrap_or_default();
                let is_page = path.extension().is_some_and(|extension| extension == "md");
                match path.to_str() {
                    Some(path) if is_page => chapters.contains_key(path),
                    _ => root.join("docs").join(&path).is_file(),
                }
            };
            if !is_alive {
                problems.push(format!("{page} in the book leads to {target}"));
            }
        }
    }
    assert_none(&problems);
    assert!(counts[0] > 20 && counts[1] > 200, "{counts:?} links");
}

/// Pages outside of `docs/` have a place in the book.
#[test]
fn pages_outside_of_docs_have_a_place_in_the_book() {
    let book = read("book.toml");
    for page in OTHERS {
        assert!(value(&book, &format!("\"../{page}\"")).is_some(), "book.toml has no {page}");
    }
}

/// Largest number of words in a page of the guide, without its code.
const GUIDE_WORDS: usize = 600;

#[test]
fn pages_of_the_guide_are_short_and_begin_with_an_example() {
    let pages = documents::below("docs/guide");
    assert!(pages.len() >= 8, "{pages:?}");
    for page in pages {
        let text = read(&page);
        let words =
            prose(&text).flat_map(str::split_whitespace).filter(|word| *word != "|").count();
        assert!(words <= GUIDE_WORDS, "{page}: {words} words");
        let second = text.lines().filter(|line| !line.is_empty()).nth(1).expect("a second line");
        assert!(second.starts_with("```ftsh"), "{page} begins with `{second}`");
    }
}
