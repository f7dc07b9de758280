//! `--storm`: runs with one fault each, and what they find.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use crate::atomic_in::can_cover;
use crate::cookbook;
use crate::support::Ftsh;
use crate::support::run::Finished;
use crate::support::side_by_side::{found, none};

/// Scripts with a command that cannot be repeated, and others.
const PLANTED: &str = include_str!("repeatable/planted.txt");

/// A script with the line of the command that cannot be repeated, if any.
struct Planted<'t> {
    title: &'t str,
    line: Option<u64>,
    /// Commands of `sh` that prepare the directory.
    before: String,
    script: String,
}

fn planted() -> Vec<Planted<'static>> {
    let entries = PLANTED.split("\n## ").skip(1);
    entries
        .map(|entry| {
            let (title, text) = entry.split_once('\n').expect("a script");
            let (title, line) = title.rsplit_once(": ").expect("a line");
            let (before, script): (Vec<_>, Vec<_>) =
                text.trim_end().lines().partition(|line| line.starts_with("! "));
            let before: Vec<_> = before.into_iter().map(|line| &line[2..]).collect();
            let (before, script) = (before.join("\n"), script.join("\n") + "\n");
            Planted { title, line: line.parse().ok(), before, script }
        })
        .collect()
}

/// Runs a storm in JSON in a directory that is prepared first.
fn storm(text: &str, before: &str) -> Finished {
    let prepare = format!("set -e\n{before}\nexec \"$0\" \"$@\"");
    let run = Ftsh::script(text).options(["--storm", "--json", "--seed", "1"]);
    let run = run.env("GIT_CONFIG_NOSYSTEM", "1").through(["/bin/sh", "-c", &prepare]);
    run.limit(Duration::from_secs(300)).run()
}

/// Returns the lines of the commands that cannot be repeated.
fn causes(run: &Finished) -> BTreeSet<u64> {
    let report: Value = serde_json::from_str(&run.text())
        .unwrap_or_else(|error| panic!("{error}: {}", run.story()));
    let commands = report["commands"].as_array().expect("commands").iter();
    let findings = commands.flat_map(|it| it["faults"].as_array().expect("faults"));
    let bad = findings.filter(|it| it["verdict"] == "not repeatable");
    bad.map(|it| it["cause"].as_u64().expect("a line")).collect()
}

/// The bar is 95 % of the planted faults, and no false alarm.
#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn planted_faults_are_found_and_attributed() {
    if !can_cover(false) {
        return;
    }
    let all = planted();
    let check = |it: &Planted| {
        let found = causes(&storm(&it.script, &it.before));
        let right: BTreeSet<u64> = it.line.into_iter().collect();
        (found != right).then(|| format!("{}: {found:?} instead of {right:?}", it.title))
    };
    let wrong: Vec<(bool, String)> =
        found(all.iter().collect(), |it: &Planted| check(it).map(|what| (it.line.is_none(), what)));
    let alarms: Vec<_> = wrong.iter().filter(|(is_alarm, _)| *is_alarm).collect();
    assert!(alarms.is_empty(), "{alarms:?}");
    assert!(wrong.len() * 20 <= all.len(), "{} of {}: {wrong:#?}", wrong.len(), all.len());
}

/// A recipe of the cookbook.
struct CookbookRecipe {
    heading: &'static str,
    args: &'static [&'static str],
    /// Programs, as texts of `sh`.
    programs: &'static [(&'static str, &'static str)],
    files: &'static [(&'static str, &'static str)],
}

const RECIPES: [CookbookRecipe; 21] = [
    CookbookRecipe {
        heading: "One of several mirrors",
        args: &["p"],
        programs: &[("wget", "echo data > $3")],
        files: &[],
    },
    CookbookRecipe {
        heading: "Hedge a slow mirror",
        args: &["p"],
        programs: &[("wget", "echo data")],
        files: &[],
    },
    CookbookRecipe {
        heading: "A copy that continues where it stopped",
        args: &["from", "to"],
        programs: &[("rsync", "cp $4 $5")],
        files: &[("from", "data\n")],
    },
    CookbookRecipe {
        heading: "An API with a rate limit",
        args: &["http://api.example.org/"],
        programs: &[("curl", "printf 'HTTP/1.1 200\\r\\n'; echo body > reply")],
        files: &[],
    },
    CookbookRecipe {
        heading: "Keep what came in",
        args: &["http://example.org/"],
        programs: &[("curl", "cat > sent")],
        files: &[],
    },
    CookbookRecipe {
        heading: "Values from JSON",
        args: &["http://example.org/"],
        programs: &[(
            "curl",
            "case $1 in -fsSO) echo x > ${2##*/};; \
             *) echo '{\"state\": \"ok\", \"artifacts\": [{\"url\": \"h/a\"}]}';; esac",
        )],
        files: &[],
    },
    CookbookRecipe {
        heading: "A producer and its workers",
        args: &[],
        programs: &[
            ("aws", "case $2 in ls) echo 1 a; echo 2 b;; *) mkdir -p in; echo x > \"$4\";; esac"),
            ("thumbnail", "cp \"$1\" \"$1.png\""),
        ],
        files: &[],
    },
    CookbookRecipe {
        heading: "A backup that raises an alarm",
        args: &["shop"],
        programs: &[
            ("pg_dump", "echo data"),
            ("rsync", "cp $2 vault"),
            ("mail", "cat > /dev/null"),
        ],
        files: &[],
    },
    CookbookRecipe {
        heading: "A backup with warnings",
        args: &["home"],
        programs: &[("restic", "echo x > snapshot")],
        files: &[],
    },
    CookbookRecipe {
        heading: "A database migration",
        args: &["new.sql"],
        programs: &[("pg_isready", ""), ("psql", "echo done > migrated")],
        files: &[],
    },
    CookbookRecipe {
        heading: "Clean up after a failure",
        args: &["a.zip"],
        programs: &[("unzip", "echo x > $4/f"), ("index", "ls $1")],
        files: &[],
    },
    CookbookRecipe {
        heading: "A job that a reboot interrupts",
        args: &["."],
        programs: &[("pg_dump", "echo data"), ("rsync", "cat *.sql > vault")],
        files: &[],
    },
    CookbookRecipe {
        heading: "A batch that may be interrupted",
        args: &[],
        programs: &[("convert", "cp $1 $2")],
        files: &[("in/a.raw", "a"), ("in/b.raw", "b"), ("out/.keep", "")],
    },
    CookbookRecipe {
        heading: "Only what failed",
        args: &[],
        programs: &[("convert", "cp $1 $2")],
        files: &[("in/a.raw", "a"), ("in/b.raw", "b"), ("out/.keep", "")],
    },
    CookbookRecipe {
        heading: "A GPU for each job",
        args: &[],
        programs: &[("train", "echo x > $1.model")],
        files: &[("jobs/a.json", "{}"), ("jobs/b.json", "{}")],
    },
    CookbookRecipe {
        heading: "Wait for room on a disk",
        args: &["a.tar", "to"],
        programs: &[("tar", "echo x > $4/f")],
        files: &[("to/.keep", "")],
    },
    CookbookRecipe {
        heading: "Deploy to many hosts",
        args: &["a", "b"],
        programs: &[("rsync", "echo x > deployed.${4%%:*}"), ("ssh", "")],
        files: &[("build/f", "")],
    },
    CookbookRecipe {
        heading: "Roll back",
        args: &["new"],
        programs: &[("systemctl", ""), ("curl", "")],
        files: &[("before/f", ""), ("new/f", "")],
    },
    CookbookRecipe {
        heading: "Two of three",
        args: &["f"],
        // A branch may be canceled at any moment, so the file appears as a whole.
        programs: &[("curl", "ln f stored 2> /dev/null; :")],
        files: &[("f", "")],
    },
    CookbookRecipe {
        heading: "Instead of GNU parallel",
        args: &[],
        programs: &[("convert", "cp $1 ${2#png:}")],
        files: &[("a.svg", "a"), ("b.svg", "b")],
    },
    CookbookRecipe {
        heading: "A job in a container",
        args: &[],
        programs: &[("fetch", "echo x")],
        files: &[],
    },
];

/// No recipe that can be repeated gives an alarm.
#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn the_cookbook_can_be_repeated() {
    if !can_cover(false) {
        return;
    }
    let check = |it: &CookbookRecipe| {
        let mut run = Ftsh::script(cookbook::script(it.heading)).args(it.args);
        for (name, body) in it.programs {
            run = run.program(&format!("bin/{name}"), &format!("#!/bin/sh\n{body}\n"));
        }
        for (name, content) in it.files {
            run = run.file(name, content);
        }
        std::os::unix::fs::symlink("before", run.path("current")).expect("a link");
        let path = format!("{}:/usr/bin:/bin", run.path("bin").display());
        let run = run
            .env("PATH", path)
            .env("TMPDIR", "/tmp")
            .options(["--storm"])
            .limit(Duration::from_secs(300))
            .run();
        // `ln` makes the link under another name first, which a kill in between leaves behind.
        let is_known = |row: &str| row.contains("  ln -sfn ") && row.ends_with("is left behind");
        let is_found = |row: &str| row.starts_with("line") && !is_known(row);
        let is_good = !run.text().is_empty() && !run.text().lines().any(is_found);
        let story = (!is_good).then(|| run.story());
        story.map(|story| format!("{}: {story}", it.heading))
    };
    none(RECIPES.iter().collect(), check);
}

#[test]
fn a_report_names_lines_and_differences() {
    if !can_cover(false) {
        return;
    }
    let text = "\
        day=mon\n\
        try 3 times backoff none\n\
        \x20   echo \"$day done\" >> ledger\n\
        end\n\
        cp ledger copy\n\
        sh -c 'date +%N > stamp'\n\
        mv part data\n\
        ping -c 1 localhost\n";
    let run = Ftsh::script(text).file("part", "x").options(["--storm"]);
    let run = run.options(["--command", "ping takes 1 hour"]);
    let run = run.failure(1);
    // On a busy machine, a short command may take long enough for a kill halfway.
    let report = run.text().replace(" or a kill halfway", "");
    let expected = "\
        line 3  echo \"$day done\" >> ledger  not repeatable: after a lost answer or a kill of the shell \
        `ledger` has the line `mon done` twice\n\
        line 5  cp ledger copy              not judged: line 3 is in the way\n\
        line 6  sh -c 'date +%N > stamp'    not judged: line 3 is in the way\n\
        line 7  mv part data                not repeatable: after a lost answer or a kill of the shell \
        it fails with status 1 when it runs again\n\
        line 8  ping -c 1 localhost         not judged: line 7 is in the way\n\
        0 of 5 commands bear every fault; 3 could not be judged; ";
    assert!(report.starts_with(expected), "{report}");
    assert!(report.ends_with("compared without the parts that vary: `stamp`\n"), "{report}");
    let left: Vec<_> = std::fs::read_dir(run.directory.path()).expect("a directory").collect();
    assert_eq!(left.len(), 2, "the script and the part");
    run.nothing_left();
}

#[test]
fn the_same_seed_gives_the_same_report() {
    if !can_cover(false) {
        return;
    }
    let text = "forall x in a b c d at most 2\n\
        try 3 times\nsh -c 'echo $0 >> $0.log' $x\nsleep 10 seconds\nend\nend\n\
        try 2 times\nshuf -n 1 -i 1-1000000000 > choice\nend\n";
    let [one, other] = [(); 2].map(|()| {
        let run = storm(text, "");
        let mut report: Value = serde_json::from_str(&run.text()).expect("a report");
        // On a busy machine, a short command may take long enough for a kill halfway.
        report["runs"].take();
        for command in report["commands"].as_array_mut().expect("commands") {
            let faults = command["faults"].as_array_mut().expect("faults");
            faults.retain(|it| it["fault"] != "killed halfway");
            // A killed shell repeats the branches of that moment as well, one of which is named.
            for fault in faults {
                fault["difference"].take();
            }
        }
        report
    });
    assert_eq!(one, other);
}

#[test]
fn delays_and_hangs_take_no_time() {
    if !can_cover(false) {
        return;
    }
    let text = "try for 3 days each 1 hour\nsh -c 'echo x > f'\nend\n\
        try 3 times stalled 20 minutes\ncp f g\nend\nsleep 1 day\n";
    let run =
        Ftsh::script(text).options(["--storm", "--json"]).limit(Duration::from_secs(100)).run();
    run.expect_code(0);
    let report: Value = serde_json::from_str(&run.text()).expect("a report");
    let hangs = report["commands"].as_array().expect("commands").iter().map(|command| {
        let faults = command["faults"].as_array().expect("faults").iter();
        faults.filter(|it| it["fault"] == "hang" && it["verdict"] == "repeatable").count()
    });
    assert_eq!(hangs.collect::<Vec<_>>(), [1, 1], "{}", run.text());
}

#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn a_run_without_an_end_is_cut() {
    if !can_cover(false) {
        return;
    }
    let text = "try for 30 days backoff none\nmkdir d\nend\n";
    let run = storm(text, "");
    assert_eq!(causes(&run), BTreeSet::from([2]), "{}", run.story());
    assert!(run.text().contains("the run does not end"), "{}", run.text());
}

#[test]
fn a_storm_needs_a_script_that_succeeds() {
    let run = Ftsh::script("echo out\nsh -c 'echo why >&2; exit 3'").options(["--storm"]);
    if can_cover(false) {
        run.stderr("why")
            .failure(2)
            .expect_stderr("the script fails without any fault, with status 3");
    }
    Ftsh::script("true").options(["--json"]).refused(&["`--json` needs `--storm`"]);
    Ftsh::script("true")
        .options(["--storm", "--command", "curl fials 3%"])
        .refused(&["`--command` can't be `curl fials 3%`", "did you mean `fails`?"]);
    Ftsh::new().args(["--storm", "-n"]).refused(&["`--storm` needs a script to run"]);
    Ftsh::script("true")
        .options(["--storm", "--in", "missing"])
        .refused(&["--storm: `missing`: no such file or directory"]);
}

/// Text and JSON count the same: a command is not vouched for while another one is in its way.
#[test]
fn a_finding_is_in_the_way_of_others() {
    if !can_cover(false) {
        return;
    }
    let text = "sh -c 'mkdir a'\necho x >> log\n";
    let report = Ftsh::script(text).options(["--storm"]).failure(1).text();
    let expected = "line 1  sh -c 'mkdir a'  not repeatable: ";
    assert!(report.starts_with(expected), "{report}");
    let expected = "\nline 2  echo x >> log    not judged: line 1 is in the way\n\
        0 of 2 commands bear every fault; 1 could not be judged; ";
    assert!(report.contains(expected), "{report}");
    assert_eq!(verdicts(&storm(text, "")), ["not repeatable", "not judged"]);
    let report = Ftsh::script("cd d\ncd new\ntouch x\nmv ../new ../old")
        .file("d/new/f", "")
        .options(["--storm", "--json"])
        .failure(1);
    // A builtin that fails in the next run is counted as well.
    assert_eq!(verdicts(&report), ["not repeatable", "repeatable", "not judged"]);
}

/// Returns the verdicts of the commands of a report.
fn verdicts(run: &Finished) -> Vec<String> {
    let report: Value = serde_json::from_str(&run.text()).expect("a report");
    let commands = report["commands"].as_array().expect("commands").iter();
    commands.map(|it| it["verdict"].as_str().expect("a verdict").to_owned()).collect()
}
