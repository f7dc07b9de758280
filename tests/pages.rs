//! Programs of single pages: a migrated script, a pipeline, a shell for make, and a driver.

use std::fs;
use std::path::Path;

use crate::cookbook::{Recipe, count, script_of};
use crate::docs::blocks;
use crate::support::{Ftsh, has};

/// Stand-in that prints half a dump, and fails as often as the variable `BAD` says.
const PG_DUMP: &str = "echo half; [ $(wc -l < calls) -gt $BAD ] || exit 1; echo whole";
/// Stand-in that copies its first file to a file named after the host.
const RSYNC: &str = "cat \"$2\" > \"copy-${3%%:*}\"";

fn migrated(bad: &str) -> Recipe {
    let script = script_of("docs/start/migrating.md", "After").replace("/tmp/backup.lock", "lock");
    let run = Ftsh::new().env("BAD", bad);
    let recipe = Recipe::running(script, run).program("pg_dump", PG_DUMP);
    recipe.program("rsync", RSYNC).args(&["shop"])
}

#[test]
fn the_migrated_script_copies_whole_dumps_only() {
    let finished = migrated("2").stdout("").success();
    assert_eq!(count(&finished, "calls", "pg_dump -Fc shop"), 3);
    for copy in ["copy-nas", "copy-vault"] {
        assert_eq!(finished.read(copy), "half\nwhole\n");
    }
    let finished = migrated("9").failure(1);
    assert_eq!((count(&finished, "calls", "pg_dump"), count(&finished, "calls", "rsync")), (5, 0));
}

#[test]
fn the_script_before_the_migration_copies_half_a_dump() {
    if !["bash", "flock"].into_iter().all(has) {
        return;
    }
    let before = &blocks("docs/start/migrating.md", "bash")[0].text;
    assert_eq!(before.lines().count(), 60);
    let run = |bad| {
        let script = before.replace("/tmp/backup.lock", "lock");
        let run = Ftsh::new().file("before.sh", script).env("BAD", bad);
        let recipe = Recipe::running(String::new(), run.through(["bash", "before.sh", "shop"]));
        recipe.program("pg_dump", PG_DUMP).program("rsync", RSYNC).success().read("copy-nas")
    };
    assert_eq!((run("0").as_str(), run("9").as_str()), ("half\nwhole\n", "half\n"));
}

/// The pipeline, with a journal and stand-ins.
fn pipeline() -> Recipe {
    let script = script_of("docs/start/workflow-engines.md", "A pipeline of five steps");
    let script = script.replace("/var/lib/jobs/orders.journal", "journal");
    let recipe = Recipe::running(script, Ftsh::new()).args(&["monday"]);
    recipe
        .program("curl", "echo order > \"$3\"")
        .program("check-orders", "grep -q order \"$1\"")
        .program("split-orders", "mkdir -p \"$2\"; touch \"$2/a.json\" \"$2/b.json\"")
        .program("enrich", "case $1 in *b.json) exit 3;; esac; touch \"$2\"")
}

#[test]
fn the_pipeline_sets_failed_parts_aside() {
    let finished = pipeline().program("load-orders", "").success();
    assert_eq!(finished.read("dead-letters"), "parts/b.json\n");
    assert_eq!(count(&finished, "calls", "enrich parts/b.json"), 3);
    assert_eq!(count(&finished, "calls", "load-orders monday parts/a.json.out"), 1);
}

#[test]
fn the_pipeline_stops_at_a_wrong_file() {
    let finished = pipeline().program("curl", "echo page > \"$3\"").failure(1);
    assert_eq!((count(&finished, "calls", "check"), count(&finished, "calls", "split")), (1, 0));
}

#[test]
fn a_shell_of_three_lines_runs_recipes_of_make() {
    if !has("make") {
        return;
    }
    let shell = &blocks("docs/operate/other-programs.md", "sh")[0].text;
    let makefile = "all:\n\t@x=5; printf '%s\\n' \"two words\" $$x; exit 3\n";
    let run = Ftsh::new().program("limited-sh", shell).file("Makefile", makefile);
    let make = "exec make SHELL=\"$PWD/limited-sh\"";
    let finished = run.through(["sh", "-c", make]).stdout("two words\n5\n").failure(2);
    finished.expect_stderr("ftsh: /bin/sh exited with 3\n");
}

#[test]
fn the_driver_of_the_page_is_the_example() {
    let example = "crates/ftsh-machine/examples/embed.rs";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(example);
    let text = fs::read_to_string(path).expect("an example");
    let shown = blocks("docs/project/embedding.md", "rust");
    assert_eq!(shown.len(), 2);
    for block in shown {
        assert!(text.contains(&block.text), "{example} differs from\n{}", block.text);
    }
}
