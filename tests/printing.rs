//! `-p` prints a program so that it means the same.

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
fn printing_what_was_printed_changes_nothing() {
    let printed = |text: &[u8]| Some(print(&parse_bytes("a script", text).ok()?));
    let changed = |path: PathBuf| {
        let first = printed(&fs::read(&path).expect("a script"))?;
        let second = printed(first.as_bytes()).unwrap_or_default();
        (first != second).then(|| format!("{}:\n{first}\n---\n{second}", path.display()))
    };
    none(all(), changed);
}

#[test]
fn what_can_be_run_can_be_printed() {
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

/// What is about meaning, not about places or time, must hold for the printed program as well.
#[test]
fn what_was_printed_means_the_same() {
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
