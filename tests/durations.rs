//! `usual` with real files: what runs record, list and forget.

use std::fs;
use std::path::Path;

use crate::support::Ftsh;

/// Attempts that take no time, and then one that hangs until its limit.
const LEARNS: &str = "for n in 1 .to. 12
    try 1 time each usual or 1 hour
        if $n .eql. 12
            sleep 1 hour
        end
    end
end
";

/// Returns a run with durations in a directory of the test's own.
fn at(directory: &Path, script: &Path) -> Ftsh {
    Ftsh::new().arg(script).env("FTSH_DURATIONS", directory.join("durations"))
}

/// Returns a script of a name in a directory.
fn script(directory: &Path, name: &str, text: &str) -> std::path::PathBuf {
    let path = directory.join(name);
    fs::write(&path, text).expect("a script");
    path
}

fn records(directory: &Path) -> Vec<String> {
    let all = fs::read_dir(directory.join("durations")).into_iter().flatten();
    let names = all.map(|it| it.expect("a file").file_name().to_string_lossy().into_owned());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

#[test]
fn a_run_learns_lists_and_forgets() {
    let place = tempfile::tempdir().expect("a directory");
    let path = script(place.path(), "learn.ftsh", LEARNS);
    let failed = at(place.path(), &path).failure(124);
    failed.expect_stderr("ran out of time after 1 s");
    let list = at(place.path(), &path).options(["--durations"]).success().text();
    let row: Vec<&str> = list.lines().nth(1).unwrap_or_default().split_whitespace().collect();
    assert_eq!((row[0], row[1]), ("2", "11"), "{list}");
    assert!(list.contains(" 1 s ") && list.ends_with(" try 1 time each usual\n"), "{list}");
    let checked = at(place.path(), &path).options(["-n"]).success().errors();
    assert!(checked.contains("learn.ftsh:2: usual: 11 samples, median 0 ms"), "{checked}");
    assert!(checked.contains("the limit is now 1 s"), "{checked}");
    let forgotten = at(place.path(), &path).options(["--durations-forget"]).success().text();
    assert_eq!(forgotten, "the durations are dropped\n");
    let forgotten = at(place.path(), &path).options(["--durations-forget"]).success().text();
    assert_eq!(forgotten, "there are no durations\n");
    assert!(records(place.path()).is_empty());
}

#[test]
fn the_next_run_of_a_text_or_a_line_knows_the_last_one() {
    let place = tempfile::tempdir().expect("a directory");
    let durations = place.path().join("durations");
    let line = |command: &str| {
        let words = ["try", "1", "time", "each", "usual", "or", "1", "hour", "--", "sh", "-c"];
        let run = Ftsh::new().env("FTSH_DURATIONS", &durations).env("COMMAND", command);
        words.into_iter().fold(run, Ftsh::arg).arg("eval \"$COMMAND\"")
    };
    for _ in 0..10 {
        line(":").success();
    }
    // The limit depends on the speed of the machine.
    line("sleep 3600").failure(124);
    assert_eq!(records(place.path()).len(), 1);
}

#[test]
fn a_damaged_record_is_set_aside_and_reported_once() {
    let place = tempfile::tempdir().expect("a directory");
    let path = script(place.path(), "one.ftsh", "try each usual or 1 hour\n    success\nend\n");
    at(place.path(), &path).success();
    let [name] = <[_; 1]>::try_from(records(place.path())).expect("one record");
    let record = place.path().join("durations").join(&name);
    fs::write(&record, "nonsense\n").expect("a record");
    let noted = at(place.path(), &path).success().errors();
    assert!(noted.contains("a damaged record of durations is now"), "{noted}");
    assert_eq!(at(place.path(), &path).success().errors(), "");
    assert_eq!(records(place.path()), [name.clone(), format!("{name}.damaged")]);
}

#[test]
fn without_a_place_the_bound_holds() {
    let text = "try each usual or 1 hour\n    success\nend\n";
    let off = Ftsh::script(text).env("FTSH_DURATIONS", "").options(["-l", "20"]);
    assert_eq!(off.success().errors().matches("durations").count(), 0);
    let homeless = Ftsh::script(text).env("HOME", "").options(["-l", "30"]).success().errors();
    assert!(homeless.contains("no durations are kept: there is no home directory"), "{homeless}");
    let place = tempfile::tempdir().expect("a directory");
    let home = place.path().join("home");
    for variable in [None, Some("XDG_STATE_HOME"), Some("FTSH_DURATIONS")] {
        let run = |level| {
            let run = Ftsh::script(text).env("HOME", &home).options(["-l", level]);
            match variable {
                Some(variable) => run.env(variable, home.join("inside")),
                None => run,
            }
        };
        let errors = run("30").success().errors();
        assert!(errors.contains("can't record durations in `"), "{errors}");
        let reason = format!("`: there is no home directory `{}`", home.display());
        assert!(errors.contains(&reason), "{errors}");
        assert_eq!(run("20").success().errors().matches("durations").count(), 0);
        assert!(!home.exists());
    }
    fs::write(place.path().join("file"), "").expect("a file");
    let run = Ftsh::script(text).env("FTSH_DURATIONS", place.path().join("file"));
    let errors = run.options(["-l", "20"]).success().errors();
    assert!(errors.contains("can't read durations in"), "{errors}");
}

#[test]
fn two_runs_at_once_lose_nothing() {
    let place = tempfile::tempdir().expect("a directory");
    let text = "for n in 1 .to. 40\n    try each usual or 1 hour\n        success\n    end\nend\n";
    let path = script(place.path(), "many.ftsh", text);
    let runs: Vec<_> = (0..4).map(|_| at(place.path(), &path).start()).collect();
    for run in runs {
        run.wait().expect_code(0);
    }
    let list = at(place.path(), &path).options(["--durations"]).success().text();
    let row: Vec<&str> = list.lines().nth(1).unwrap_or_default().split_whitespace().collect();
    assert_eq!(row[1], "160", "{list}");
}

#[test]
fn a_sourced_file_has_a_record_of_its_own() {
    let place = tempfile::tempdir().expect("a directory");
    script(place.path(), "lib.ftsh", "try each usual or 1 hour\n    success\nend\n");
    let text = format!("cd {}\nsource lib.ftsh\n", place.path().display());
    let path = script(place.path(), "main.ftsh", &text);
    at(place.path(), &path).success();
    let lib = place.path().join("lib.ftsh");
    let list = at(place.path(), &lib).options(["--durations"]).success().text();
    assert!(list.lines().nth(1).is_some_and(|row| row.starts_with("1     1 ")), "{list}");
    let list = at(place.path(), &path).options(["--durations"]).success().text();
    assert_eq!(list, "the script has no `usual`\n");
}
