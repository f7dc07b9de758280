//! `-p` prints a program without changing its meaning.

use std::fs;
use std::path::{Path, PathBuf};

use ftsh_syntax::{parse_bytes, print};

use crate::scripts::{root, scripts};
use crate::support::side_by_side::none;
use crate::support::{Ftsh, expectations};

fn all() -> Vec<PathBuf> {
    let mut all = scripts(&root());
    all.extend(scripts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")));
    all
}

#[test]
fn printing_is_idempotent() {
    let printed = |text: &[u8]| Some(print(&parse_bytes("a script", text).ok()?));
    let changed = |path: PathBuf| {
        let first = printed(&fs::read(&path).expect("a script"))?;
        let second = printed(first.as_bytes()).unwrap_or_default();
        (first != second).then(|| format!("{}:\n{first}\n---\n{second}", path.display()))
    };
    none(all(), changed);
}

#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn runnable_scripts_can_be_printed() {
    none(all(), |path| {
        let checked = Ftsh::new().arg("-n").arg(&path).run().status;
        let printed = Ftsh::new().arg("-p").arg(&path).run().status;
        (checked != printed).then(|| path.display().to_string())
    });
}

#[test]
fn a_printed_program_runs_nothing() {
    Ftsh::script("echo   never;touch ran")
        .options(["-p"])
        .stdout("echo never\ntouch ran\n")
        .success();
}

/// Checks the printed program with the expectations that do not depend on positions or time.
#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn a_printed_script_has_the_same_meaning() {
    let folders = [
        "words",
        "variables",
        "commands",
        "redirection",
        "pipelines",
        "groups",
        "loops",
        "functions",
        "expressions",
    ];
    let scripts = folders.iter().flat_map(|folder| scripts(&root().join(folder))).collect();
    let printed = tempfile::TempDir::new().expect("a temporary directory");
    none(scripts, |path| {
        let print = Ftsh::new().arg("-p").arg(&path).run();
        if print.status.and_then(|status| status.code()) != Some(0) {
            return None;
        }
        let folder = path.parent().and_then(Path::file_name).expect("scripts are in folders");
        let copy = printed.path().join(folder);
        fs::create_dir_all(&copy).expect("a folder for copies");
        let copy = copy.join(path.file_name().expect("scripts have names"));
        fs::write(&copy, &print.stdout).expect("a copy of the script");
        let troubles = expectations::run(&copy);
        (!troubles.is_empty())
            .then(|| format!("{}\n{troubles}\nprinted:\n{}", path.display(), print.text()))
    });
}
