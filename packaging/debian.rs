//! Generator of the changelog and the license notices of the packages. The notices cover the
//! libraries linked into the programs, as their licenses require. The default folder is `dist`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Notices of the libraries that cargo does not list: the standard library of Rust, and musl.
const STANDARD_LIBRARIES: &str = include_str!("release/notices");

fn main() -> Result<()> {
    let folder = PathBuf::from(env::args_os().nth(1).unwrap_or_else(|| "dist".into()));
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let metadata = output_of(&cargo, &["metadata", "--locked", "--format-version", "1"])?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let packages = metadata["packages"].as_array().context("cargo lists no packages")?;
    let tree =
        ["tree", "--locked", "--workspace", "--edges", "normal,no-proc-macro", "--prefix", "none"];
    fs::create_dir_all(&folder)?;
    let crates = notices(&output_of(&cargo, &tree)?, packages)?;
    fs::write(folder.join("notices"), format!("{crates}\n{STANDARD_LIBRARIES}"))?;
    fs::write(folder.join("changelog"), changelog(packages)?)?;
    Ok(())
}

/// Returns the output of a command.
fn output_of(program: impl AsRef<OsStr>, arguments: &[&str]) -> Result<String> {
    let program = program.as_ref();
    let output = Command::new(program).args(arguments).output();
    let output = output.with_context(|| format!("can't run `{}`", program.display()))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{}` failed: {errors}", program.display());
    Ok(String::from_utf8(output.stdout)?)
}

/// Returns the entry of this version with the time of the last commit. A tree without history uses
/// the time of its changelog.
fn changelog(packages: &[Value]) -> Result<String> {
    let own = packages.iter().find(|package| package["name"] == "ftsh").context("no ftsh")?;
    let maintainer = own["metadata"]["deb"]["maintainer"].as_str().context("no maintainer")?;
    let version = env!("CARGO_PKG_VERSION");
    let date = output_of("git", &["log", "-1", "--format=%cD"])
        .or_else(|_| output_of("date", &["--rfc-email", "--reference", "CHANGELOG.md"]))?;
    Ok(format!(
        "ftsh ({version}-1) unstable; urgency=medium\n\n  * See changelog.gz.\n\n \
         -- {maintainer}  {date}"
    ))
}

/// Returns the notices of the libraries in a tree of dependencies. A shared notice appears once.
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
        let folder =
            Path::new(text("manifest_path")).parent().context("a manifest has no folder")?;
        let license = text("license").replace('/', " or ").replace(" OR ", " or ");
        let notice = notice(folder).with_context(|| format!("can't read the license of {name}"))?;
        notices.entry((notice, license)).or_default().push(format!("{name} {version}"));
    }
    let mut parts: Vec<_> = notices.into_iter().map(|(it, names)| (names, it)).collect();
    parts.sort();
    let part = |(names, (notice, license)): (Vec<String>, (String, String))| {
        format!("{}\n{license}\n\n{notice}", names.join(", "))
    };
    let parts: Vec<_> = parts.into_iter().map(part).collect();
    Ok(parts.join(&format!("\n{}\n", "-".repeat(72))))
}

/// Returns the license with the fewest conditions. A program must include its text.
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
    let file = file.with_context(|| format!("no license in {}", folder.display()))?;
    Ok(fs::read_to_string(file)?.trim().to_owned() + "\n")
}
