//! License notices of the libraries that are linked into the programs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context, Result};
use serde_json::Value;

/// Notices of the libraries that cargo does not list: the standard library of Rust, and musl.
const STANDARD_LIBRARIES: &str = include_str!("release/notices");

/// Own license, whose second paragraph names the owner.
const MIT: &str = include_str!("../LICENSE-MIT");

/// Arguments of cargo that print the libraries of a release.
pub(crate) const TREE: [&str; 9] = [
    "tree",
    "--locked",
    "--workspace",
    "--target",
    "x86_64-unknown-linux-musl",
    "--edges",
    "normal,no-proc-macro",
    "--prefix",
    "none",
];

/// Returns the notices of the libraries in a tree of dependencies, which `cargo tree` printed. A
/// shared notice appears once.
pub(crate) fn all(tree: &str, packages: &[Value]) -> Result<String> {
    let linked: Vec<_> = tree.lines().filter_map(|line| line.split_once(" v")).collect();
    let mut notices: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for package in packages {
        let text = |name: &str| package[name].as_str().unwrap_or_default();
        let (name, version) = (text("name"), text("version"));
        let is_it = |(linked, rest): &&(&str, &str)| {
            *linked == name && rest.split(' ').next() == Some(version)
        };
        if package["source"].is_null() || !linked.iter().any(|it| is_it(&it)) {
            continue;
        }
        let folder =
            Path::new(text("manifest_path")).parent().context("a manifest has no folder")?;
        let license = text("license").replace('/', " or ").replace(" OR ", " or ");
        let notice = match notice(folder)? {
            Some(notice) => notice,
            None => mit(package).with_context(|| format!("there is no license in {name}"))?,
        };
        notices.entry((notice, license)).or_default().push(format!("{name} {version}"));
    }
    let mut parts: Vec<_> = notices.into_iter().map(|(it, names)| (names, it)).collect();
    parts.sort();
    let part = |(names, (notice, license)): (Vec<String>, (String, String))| {
        format!("{}\n{license}\n\n{notice}", names.join(", "))
    };
    let parts: Vec<_> = parts.into_iter().map(part).collect();
    let crates = parts.join(&format!("\n{}\n", "-".repeat(72)));
    Ok(format!("{crates}\n{STANDARD_LIBRARIES}"))
}

/// Returns the text of the MIT license for a package that has this license, but no file with it.
fn mit(package: &Value) -> Option<String> {
    let license = package["license"].as_str()?;
    license.split([' ', '/']).find(|name| *name == "MIT")?;
    let authors: Vec<_> = package["authors"].as_array()?.iter().filter_map(Value::as_str).collect();
    let owners = match &authors[..] {
        [] => format!("the authors of {}", package["name"].as_str()?),
        authors => authors.join(", "),
    };
    let (title, rest) = MIT.split_once("\n\n")?;
    let (_, rest) = rest.split_once("\n\n")?;
    Some(format!("{title}\n\nCopyright (c) {owners}\n\n{rest}"))
}

/// Returns the license with the fewest conditions, if there is a file with a license. A program
/// must include its text.
fn notice(folder: &Path) -> Result<Option<String>> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    files.sort();
    let named = |words: &[&str]| {
        files.iter().find(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
            file.is_file() && words.iter().all(|word| name.contains(word))
        })
    };
    let file = named(&["MIT"]).or_else(|| named(&["LICEN"])).or_else(|| named(&["COPYING"]));
    let Some(file) = file else { return Ok(None) };
    let text =
        fs::read_to_string(file).with_context(|| format!("can't read {}", file.display()))?;
    Ok(Some(text.trim().to_owned() + "\n"))
}
