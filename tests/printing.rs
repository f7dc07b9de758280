//! `-p` prints a program so that it means the same.

use std::path::Path;

use crate::scripts::{root, scripts};
use crate::support::Ftsh;

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
