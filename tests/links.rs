//! Links between documents, and the table of contents of the book.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::support::documents;

/// Documents outside of `docs/`.
const OTHERS: [&str; 6] = [
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
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_fence && !is_code
    })
}

/// Returns the targets of a document's relative links.
fn links(text: &str) -> Vec<&str> {
    let targets =
        prose(text).flat_map(|line| line.split("](").skip(1)).filter_map(|it| it.split(')').next());
    targets.filter(|target| !target.contains(':') && !target.is_empty()).collect()
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
    for document in documents.into_iter().chain(OTHERS.map(str::to_owned)) {
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

/// `book.toml` alone names the repository for links of the book, and `Cargo.toml` agrees.
#[test]
fn the_repository_is_named_in_one_place() {
    let (book, manifest) = (read("book.toml"), read("Cargo.toml"));
    let repository = value(&book, "git-repository-url").expect("a repository");
    assert!(repository.starts_with("https://"), "{repository}");
    if let Some(known) = value(&manifest, "repository") {
        assert_eq!(repository, known, "book.toml and Cargo.toml");
    }
    for page in documents::below("docs") {
        assert!(!read(&page).contains(repository), "{page} names the repository");
    }
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
