//! Generator of the changelog and the license notices of the packages. The notices cover the
//! libraries linked into the programs, as their licenses require. The default folder is `dist`.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

mod notices;

fn main() -> Result<()> {
    let folder = PathBuf::from(env::args_os().nth(1).unwrap_or_else(|| "dist".into()));
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let metadata = output_of(&cargo, &["metadata", "--locked", "--format-version", "1"])?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let packages = metadata["packages"].as_array().context("cargo lists no packages")?;
    fs::create_dir_all(&folder)?;
    let notices = notices::all(&output_of(&cargo, &notices::TREE)?, packages)?;
    fs::write(folder.join("notices"), notices)?;
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
