//! Writes what a Debian package holds besides the pages: its changelog, and the notices of the libraries
//! that are linked into the program, which their licences ask for. The folder is `dist` if none is named.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

fn main() -> Result<()> {
    let folder = PathBuf::from(env::args_os().nth(1).unwrap_or_else(|| "dist".into()));
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let metadata = said(&cargo, &["metadata", "--locked", "--format-version", "1"])?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let packages = metadata["packages"].as_array().context("cargo tells of no packages")?;
    let tree =
        ["tree", "--locked", "--workspace", "--edges", "normal,no-proc-macro", "--prefix", "none"];
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("notices"), notices(&said(&cargo, &tree)?, packages)?)?;
    fs::write(folder.join("changelog"), changelog(packages)?)?;
    Ok(())
}

/// What a command prints.
fn said(program: impl AsRef<OsStr>, arguments: &[&str]) -> Result<String> {
    let program = program.as_ref();
    let output = Command::new(program).args(arguments).output();
    let output = output.with_context(|| format!("can't run `{}`", program.display()))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{}` failed: {errors}", program.display());
    Ok(String::from_utf8(output.stdout)?)
}

/// Returns the entry of this version, with the time of the last commit. A tree without history has that of its changelog.
fn changelog(packages: &[Value]) -> Result<String> {
    let own = packages.iter().find(|package| package["name"] == "ftsh").context("no ftsh")?;
    let maintainer = own["metadata"]["deb"]["maintainer"].as_str().context("no maintainer")?;
    let version = env!("CARGO_PKG_VERSION");
    let date = said("git", &["log", "-1", "--format=%cD"])
        .or_else(|_| said("date", &["--rfc-email", "--reference", "CHANGELOG.md"]))?;
    Ok(format!(
        "ftsh ({version}-1) unstable; urgency=medium\n\n  * What is new is told by changelog.gz.\n\n \
         -- {maintainer}  {date}"
    ))
}

/// The notices of the libraries in a tree of dependencies. One that several share is there once.
fn notices(tree: &str, packages: &[Value]) -> Result<String> {
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
        let folder = Path::new(text("manifest_path")).parent().context("a manifest is nowhere")?;
        let licence = text("license").replace('/', " or ").replace(" OR ", " or ");
        let notice =
            notice(folder).with_context(|| format!("no licence of {name} is to be read"))?;
        notices.entry((notice, licence)).or_default().push(format!("{name} {version}"));
    }
    let mut parts: Vec<_> = notices.into_iter().map(|(it, names)| (names, it)).collect();
    parts.sort();
    let part = |(names, (notice, licence)): (Vec<String>, (String, String))| {
        format!("{}\n{licence}\n\n{notice}", names.join(", "))
    };
    let parts: Vec<_> = parts.into_iter().map(part).collect();
    Ok(parts.join(&format!("\n{}\n", "-".repeat(72))))
}

/// The licence of a library that asks least: who links it has to pass on its text.
fn notice(folder: &Path) -> Result<String> {
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
    let file = file.with_context(|| format!("nothing in {}", folder.display()))?;
    Ok(fs::read_to_string(file)?.trim().to_owned() + "\n")
}
