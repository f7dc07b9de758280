//! `-p` prints a program so that it means the same.

use std::path::Path;

use crate::scripts::{root, scripts};
use crate::support::{Ftsh, expectations};

fn all() -> Vec<std::path::PathBuf> {
    let mut all = scripts(&root());
    all.extend(scripts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")));
    all
}

#[test]
fn printing_what_was_printed_changes_nothing() {
    let mut changed = Vec::new();
    for path in all() {
        let first = Ftsh::new().arg("-p").arg(&path).run();
        if first.status.and_then(|status| status.code()) != Some(0) {
            continue;
        }
        let second = Ftsh::script(&first.stdout).options(["-p"]).run();
        if second.stdout != first.stdout {
            changed.push(format!(
                "{}:\n{}\n---\n{}{}",
                path.display(),
                first.text(),
                second.text(),
                second.errors()
            ));
        }
    }
    assert!(changed.is_empty(), "{} changed:\n{}", changed.len(), changed.join("\n"));
}

#[test]
fn what_can_be_run_can_be_printed() {
    let mut failed = Vec::new();
    for path in all() {
        let checked = Ftsh::new().arg("-n").arg(&path).run().status;
        let printed = Ftsh::new().arg("-p").arg(&path).run().status;
        if checked != printed {
            failed.push(path.display().to_string());
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
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
    let printed = tempfile::TempDir::new().expect("a temporary directory");
    let mut changed = Vec::new();
    for folder in [
        "words",
        "variables",
        "commands",
        "redirection",
        "pipelines",
        "groups",
        "loops",
        "functions",
        "expressions",
    ] {
        for path in scripts(&root().join(folder)) {
            let print = Ftsh::new().arg("-p").arg(&path).run();
            if print.status.and_then(|status| status.code()) != Some(0) {
                continue;
            }
            let copy = printed.path().join(path.file_name().expect("scripts have names"));
            std::fs::write(&copy, &print.stdout).expect("a copy of the script");
            let troubles = expectations::run(&copy);
            if !troubles.is_empty() {
                changed.push(format!("{}\n{troubles}\nprinted:\n{}", path.display(), print.text()));
            }
        }
    }
    assert!(changed.is_empty(), "{} changed:\n{}", changed.len(), changed.join("\n"));
}
