//! Files for forges and CI services: workflows, the action, the hooks of pre-commit, and the
//! snippets of the documents. All are parsed, and their commands are run outside of the services.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use saphyr::{LoadableYamlNode, Scalar, Yaml};
use serde_json::Value;

use crate::support::run::Finished;
use crate::support::{FTSH, Ftsh, documents};

const PAGE: &str = "docs/operate/ci-and-containers.md";
const CI: &str = ".github/workflows/ci.yml";
const RELEASE: &str = ".github/workflows/release.yml";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn json(yaml: &Yaml<'_>) -> Value {
    match yaml {
        Yaml::Mapping(map) => {
            map.iter().map(|(key, value)| (key.as_str().expect("a name"), json(value))).collect()
        }
        Yaml::Sequence(items) => items.iter().map(json).collect(),
        Yaml::Value(Scalar::Null) => Value::Null,
        Yaml::Value(Scalar::Boolean(value)) => (*value).into(),
        Yaml::Value(Scalar::Integer(value)) => (*value).into(),
        Yaml::Value(Scalar::String(value)) => Value::from(&**value),
        other => panic!("{other:?}"),
    }
}

/// Parses a text with one document of YAML. Panics with `name` if the text is another one.
pub(crate) fn parsed(name: &str, text: &str) -> Value {
    let documents = Yaml::load_from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let [document] = &documents[..] else { panic!("{name}: {} documents", documents.len()) };
    json(document)
}

fn yaml(path: &str) -> Value {
    parsed(path, &read(path))
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value} is no list"))
}

fn names(value: &Value) -> impl Iterator<Item = &str> {
    value.as_object().unwrap_or_else(|| panic!("{value} has no names")).keys().map(String::as_str)
}

/// Returns the code blocks of a page in a language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let begin = format!("```{language}\n");
    let text = read(page);
    let blocks = text.split(&begin).skip(1).map(|rest| rest.split("```").next().expect("an end"));
    blocks.map(str::to_owned).collect()
}

#[test]
fn every_file_of_yaml_can_be_read() {
    let mut count = 0;
    for folder in ["", ".github", ".github/workflows", ".github/ISSUE_TEMPLATE"] {
        for entry in fs::read_dir(root().join(folder)).expect("a folder").flatten() {
            let name = Path::new(folder).join(entry.file_name()).display().to_string();
            if [".yml", ".yaml"].iter().any(|end| name.ends_with(end)) {
                assert!(yaml(&name).is_object() || yaml(&name).is_array(), "{name}");
                count += 1;
            }
        }
    }
    for page in documents::below("docs") {
        for block in blocks(&page, "yaml") {
            assert!(parsed(&page, &block).is_object(), "{page}");
            count += 1;
        }
    }
    assert!(count >= 12, "{count} files and blocks");
}

/// Returns the steps of all jobs of a workflow.
fn steps(workflow: &Value) -> impl Iterator<Item = &Value> {
    let jobs = workflow["jobs"].as_object().expect("jobs").values();
    jobs.flat_map(|job| items(&job["steps"]))
}

#[test]
fn jobs_end_and_use_actions_that_cannot_change() {
    for name in [CI, RELEASE] {
        let workflow = yaml(name);
        for (job, content) in workflow["jobs"].as_object().expect("jobs") {
            assert!(content["timeout-minutes"].is_u64(), "{name}: {job} has no limit");
        }
        for used in steps(&workflow).filter_map(|step| step["uses"].as_str()) {
            let commit = used.split_once('@').map_or("", |(_, commit)| commit);
            let is_pinned = commit.len() == 40 && commit.bytes().all(|it| it.is_ascii_hexdigit());
            assert!(is_pinned || used == "./", "{name}: {used}");
        }
    }
}

/// Returns the problem of a command in a workflow: a recipe or a file that is missing.
fn missing(command: &str, recipes: &BTreeSet<&str>) -> Option<String> {
    let mut words = command.split_whitespace();
    let program = words.next()?;
    if program == "just" {
        let recipe = words.next().unwrap_or_default();
        return (!recipes.contains(recipe)).then(|| format!("no recipe `{recipe}`"));
    }
    let is_file = program.contains('/') && !program.contains(['$', '*', '"', '^']);
    (is_file && !root().join(program).exists()).then(|| format!("no file {program}"))
}

#[test]
fn workflows_run_recipes_and_files_that_exist() {
    let justfile = read("justfile");
    let recipes = justfile.lines().filter(|line| line.starts_with(|c: char| c.is_alphabetic()));
    let recipes: BTreeSet<_> = recipes.filter_map(|line| line.split([' ', ':']).next()).collect();
    assert!(missing("just nosuch", &recipes).is_some());
    assert!(missing("packaging/nosuch x", &recipes).is_some());
    let (workflow, release) = (yaml(CI), yaml(RELEASE));
    let lines = |workflow| steps(workflow).filter_map(|it| it["run"].as_str()).flat_map(str::lines);
    let run: BTreeSet<_> = lines(&workflow).chain(lines(&release)).collect();
    let problems: Vec<_> = run.iter().filter_map(|line| missing(line, &recipes)).collect();
    assert!(problems.is_empty(), "{problems:?}");
    for needed in [
        ".ci/run",
        "just msrv",
        "just deny",
        "just doc",
        "just book",
        "just editors",
        "just release",
        "packaging/release/try dist/release",
    ] {
        assert!(run.contains(needed), "no job runs {needed}");
    }
    let machines = items(&workflow["jobs"]["checks"]["strategy"]["matrix"]["os"]);
    assert!(machines.iter().any(|machine| text(machine).ends_with("-arm")), "{machines:?}");
}

#[test]
fn the_version_is_the_same_everywhere() {
    let version = env!("CARGO_PKG_VERSION");
    for (file, line) in [
        ("CHANGELOG.md", format!("## [{version}] - ")),
        ("editors/tree-sitter/tree-sitter.json", format!("\"version\": \"{version}\"")),
        ("editors/vscode/package.json", format!("\"version\": \"{version}\"")),
        ("packaging/homebrew/ftsh.rb", format!("version \"{version}\"")),
        (PAGE, format!("uses: owner/ftsh@v{version}")),
        (PAGE, format!("rev: v{version}")),
    ] {
        assert!(read(file).contains(&line), "{file} lacks `{line}`");
    }
    let manifest = read("Cargo.toml");
    let own = manifest.lines().filter(|line| line.starts_with("ftsh") && line.contains("version"));
    for line in own {
        assert!(line.contains(&format!("version = \"{version}\"")), "{line}");
    }
}

/// Names and values of inputs.
type Inputs<'a> = &'a [(&'a str, &'a str)];

/// Returns the step of the action with inputs, as GitHub runs the step.
fn step(inputs: Inputs<'_>) -> Ftsh {
    let action = yaml("action.yml");
    let step = &action["runs"]["steps"][1];
    let value = |name: &str| {
        let given = inputs.iter().find(|(input, _)| *input == name).map(|(_, value)| *value);
        given.or(action["inputs"][name]["default"].as_str()).unwrap_or_default().to_owned()
    };
    let script = text(&step["run"]);
    let mut run =
        Ftsh::new().through(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]);
    for (name, expression) in step["env"].as_object().expect("an environment") {
        let input = text(expression).strip_prefix("${{ inputs.").expect("an input");
        run = run.env(name, value(input.strip_suffix(" }}").expect("an input")));
    }
    let output = run.path("output");
    run.env("GITHUB_ACTION_PATH", root()).env("GITHUB_OUTPUT", output)
}

/// Returns an output of the step.
fn output(finished: &Finished, name: &str) -> String {
    let outputs = finished.read("output");
    let mut values = outputs.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    values.next().unwrap_or_else(|| panic!("no {name} in {outputs}")).to_owned()
}

/// Inputs of nick-fields/retry 4.
const INPUTS: [&str; 13] = [
    "command",
    "continue_on_error",
    "max_attempts",
    "new_command_on_retry",
    "on_retry_command",
    "polling_interval_seconds",
    "retry_on",
    "retry_on_exit_code",
    "retry_wait_seconds",
    "shell",
    "timeout_minutes",
    "timeout_seconds",
    "warning_on_retry",
];

#[test]
fn the_action_has_the_known_inputs_and_outputs() {
    let (action, page) = (yaml("action.yml"), read(PAGE));
    let inputs: BTreeSet<_> = names(&action["inputs"]).collect();
    assert_eq!(inputs, BTreeSet::from(INPUTS));
    let outputs: BTreeSet<_> = names(&action["outputs"]).collect();
    assert_eq!(outputs, BTreeSet::from(["exit_code", "exit_error", "total_attempts"]));
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let step = &action["runs"]["steps"][1];
    let script = read("packaging/action/retry.ftsh");
    for input in inputs {
        let row = rows.iter().find(|row| row.contains(&format!("`{input}`")));
        let row = row.unwrap_or_else(|| panic!("{PAGE} lacks {input}"));
        if let Some(default) = action["inputs"][input]["default"].as_str() {
            let cell = row.split('|').nth(2).unwrap_or_default().trim().trim_matches('`');
            assert_eq!(cell, default, "{input} in {PAGE}");
        }
        if input != "polling_interval_seconds" {
            let variable = format!("INPUT_{}", input.to_uppercase());
            assert_eq!(step["env"][&variable], format!("${{{{ inputs.{input} }}}}"));
            assert!(script.contains(&variable), "{input} is not used");
        }
    }
}

#[test]
fn the_script_of_the_action_is_right() {
    let checked = Ftsh::script(read("packaging/action/retry.ftsh")).options(["-n"]).success();
    assert_eq!(checked.warnings(), "");
}

#[test]
fn the_action_retries() {
    let wait = ("retry_wait_seconds", "0.01");
    let command = "echo a >> log; test $(wc -l < log) = 3";
    let finished = step(&[("command", command), wait]).success();
    assert_eq!(output(&finished, "total_attempts"), "3");
    assert_eq!(output(&finished, "exit_code"), "0");
    assert_eq!(output(&finished, "exit_error"), "");
    assert_eq!(finished.text().matches("::warning::attempt ").count(), 2, "{}", finished.story());
    // The action leaves nothing behind, not even what an attempt left behind.
    let command = "echo 'a%b'; sleep 100 & exit 7";
    let finished =
        step(&[("command", command), wait, ("max_attempts", "2"), ("warning_on_retry", "false")])
            .failure(7);
    finished.nothing_left();
    assert_eq!(output(&finished, "total_attempts"), "2");
    assert_eq!(output(&finished, "exit_code"), "7");
    assert!(output(&finished, "exit_error").contains("exited with 7"));
    let out = finished.text();
    assert!(out.contains("::notice::attempt 1 failed: ") && out.contains("::error::"), "{out}");
    assert!(out.contains("a%25b") && !out.contains("::warning::"), "{out}");
}

#[test]
fn the_action_retries_some_failures_only() {
    let wait = ("retry_wait_seconds", "0.01");
    let late = [("command", "sleep 100"), ("timeout_seconds", "0.2"), wait];
    let cases: [(Inputs<'_>, i32, u32); 10] = [
        (&[("command", "exit 3"), ("retry_on", "timeout"), wait], 3, 1),
        (&[("command", "exit 3"), ("retry_on", "error"), wait], 3, 3),
        (&[("command", "exit 3"), ("retry_on_exit_code", "4"), wait], 3, 1),
        (&[("command", "exit 3"), ("retry_on_exit_code", "3"), wait], 3, 3),
        (&[("command", "kill -9 $$"), wait], 137, 3),
        (&[("command", "kill -TERM $$"), ("retry_on_exit_code", "15"), wait], 143, 1),
        (&[("retry_on", "any")], 124, 3),
        (&[("retry_on", "timeout")], 124, 3),
        (&[("retry_on", "error")], 124, 1),
        (&[("retry_on_exit_code", "124")], 124, 1),
    ];
    for (more, status, attempts) in cases {
        let is_late = !more.iter().any(|(name, _)| *name == "command");
        let inputs = [if is_late { &late[..] } else { &[] }, more].concat();
        let finished = step(&inputs).failure(status);
        finished.nothing_left();
        assert_eq!(output(&finished, "total_attempts"), attempts.to_string(), "{inputs:?}");
        assert_eq!(output(&finished, "exit_code"), status.to_string(), "{inputs:?}");
    }
}

#[test]
fn the_action_runs_other_commands_before_and_in_later_attempts() {
    let wait = ("retry_wait_seconds", "0.01");
    let finished = step(&[
        ("command", "printf 1 >> log; exit 3"),
        ("new_command_on_retry", "printf 2 >> log; test $(cat log) = 1b2b2"),
        ("on_retry_command", "printf b >> log; exit 5"),
        ("shell", "sh"),
        wait,
    ])
    .success();
    assert_eq!(finished.read("log"), "1b2b2");
    assert!(finished.text().contains("::warning::on_retry_command: "), "{}", finished.story());
    let finished = step(&[("command", "exit 3"), ("continue_on_error", "true"), wait]).success();
    assert_eq!(output(&finished, "exit_code"), "3");
    let minutes = [("timeout_minutes", "1"), ("command", "true")];
    step(&minutes).success();
    let both = step(&[&minutes[..], &[("timeout_seconds", "1")]].concat()).failure(2);
    assert!(
        both.text().starts_with("::error::the inputs timeout_minutes and "),
        "{}",
        both.story()
    );
}

#[test]
fn inputs_of_the_action_may_be_zero_or_empty() {
    let command = ("command", "echo a >> log; test $(wc -l < log) = 3");
    for wait in ["0", "0.0", "00"] {
        let finished = step(&[command, ("retry_wait_seconds", wait)]).success();
        assert_eq!(output(&finished, "total_attempts"), "3", "{wait}");
    }
    let no_limits = [("timeout_minutes", "0"), ("timeout_seconds", "0")];
    let finished =
        step(&[&no_limits[..], &[("command", "exit 3"), ("retry_wait_seconds", "0")]].concat());
    assert_eq!(output(&finished.failure(3), "total_attempts"), "3");
    let finished = step(&[command, ("retry_wait_seconds", ""), ("max_attempts", "1")]).failure(1);
    assert_eq!(output(&finished, "total_attempts"), "1");
    // An empty input has its default.
    let empty = INPUTS.map(|input| (input, ""));
    let given = [("command", "exit 3"), ("retry_wait_seconds", "0")];
    let finished = step(&[&given[..], &empty].concat()).failure(3);
    assert_eq!(output(&finished, "total_attempts"), "3");
    assert_eq!(finished.text().matches("::warning::attempt ").count(), 2, "{}", finished.story());
}

#[test]
fn a_wrong_input_of_the_action_is_named() {
    let command = ("command", "touch ran");
    for (input, value, expected) in [
        ("max_attempts", "x", "a whole number above zero"),
        ("max_attempts", "0", "a whole number above zero"),
        ("max_attempts", "1.5", "a whole number above zero"),
        ("timeout_minutes", "5m", "a number"),
        ("timeout_seconds", "-1", "a number"),
        ("retry_wait_seconds", "soon", "a number"),
        ("retry_on_exit_code", "3,4", "a whole number"),
        ("retry_on", "success", "any, error or timeout"),
        ("warning_on_retry", "yes", "true or false"),
        ("continue_on_error", "1", "true or false"),
    ] {
        let finished = step(&[command, (input, value)]).failure(2);
        let expected = format!("::error::input {input} is {value}: expected {expected}\n");
        assert_eq!(finished.text(), expected);
        assert!(!finished.directory.path().join("ran").exists());
    }
}

/// Runs a command outside of the shell. Returns whether the command succeeded, and its output.
fn run(command: &mut Command) -> (bool, String) {
    let output = command.output().expect("it starts");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn the_action_installs_the_program_of_its_version() {
    let directory = tempfile::tempdir().expect("a directory");
    let folder = directory.path();
    let script = "set -e
        name=ftsh-$VERSION-$(uname -m)-unknown-linux-musl
        mkdir -p releases/v$VERSION $name bin temp
        printf '#!/bin/sh\\necho it works\\n' > $name/ftsh
        chmod +x $name/ftsh
        tar -czf releases/v$VERSION/$name.tar.gz $name
        (cd releases/v$VERSION; echo \"$(sha256sum $name.tar.gz)\" > SHA256SUMS)
        printf '#!/bin/sh\\ncp \"$9\" \"$8\"\\n' > bin/curl
        chmod +x bin/curl
        for it in bash cp dirname env find grep gzip mkdir sed sha256sum sh tar uname; do
            ln -s $(command -v $it) bin/
        done";
    let mut prepare = Command::new("sh");
    prepare.args(["-c", script]).env("VERSION", env!("CARGO_PKG_VERSION")).current_dir(folder);
    assert_eq!(run(&mut prepare), (true, String::new()));
    let action = yaml("action.yml");
    let install = || {
        let mut bash = Command::new("bash");
        bash.args(["-eo", "pipefail", "-c", text(&action["runs"]["steps"][0]["run"])])
            .env("PATH", folder.join("bin"))
            .env("RUNNER_TEMP", folder.join("temp"))
            .env("GITHUB_PATH", folder.join("path"))
            .env("GITHUB_ACTION_PATH", root())
            .env("RELEASES", folder.join("releases"));
        run(&mut bash)
    };
    let (is_installed, report) = install();
    assert!(is_installed, "{report}");
    let path = fs::read_to_string(folder.join("path")).expect("a folder for the path");
    let found = run(&mut Command::new(Path::new(path.trim_end()).join("ftsh")));
    assert_eq!(found, (true, "it works\n".into()));
    // An archive with another checksum is refused.
    let sums = folder.join(format!("releases/v{}/SHA256SUMS", env!("CARGO_PKG_VERSION")));
    let right = fs::read_to_string(&sums).expect("sums");
    fs::write(&sums, "0".repeat(64) + &right[64..]).expect("sums");
    let (is_installed, report) = install();
    assert!(!is_installed && report.contains("FAILED"), "{report}");
}

#[test]
fn the_hooks_check_every_script() {
    let hooks = yaml(".pre-commit-hooks.yaml");
    let [built, installed] = items(&hooks) else { panic!("two hooks") };
    assert_eq!((text(&built["id"]), text(&installed["id"])), ("ftsh", "ftsh-system"));
    assert_eq!(built["entry"], installed["entry"]);
    // pre-commit splits an entry as a shell does, and appends the names of files.
    let line = format!("exec {} \"$@\"", text(&built["entry"]));
    let directory = tempfile::tempdir().expect("a directory");
    let scripts = ["good.ftsh", "wrong.ftsh", "also wrong.ftsh", "warned.ftsh"];
    let texts = ["true\n", "echo `date`\n", "echo `date`\n", "rm -rf \"$1/cache\"\n"];
    for (name, script) in scripts.into_iter().zip(texts) {
        fs::write(directory.path().join(name), script).expect("a script");
    }
    let programs = Path::new(FTSH).parent().expect("a folder");
    let check = |scripts: &[&str]| {
        let mut sh = Command::new("sh");
        sh.args(["-c", line.as_str(), "hook"]).args(scripts).current_dir(directory.path());
        run(sh.env("PATH", format!("{}:/usr/bin:/bin", programs.display())))
    };
    assert_eq!(check(&scripts[..1]), (true, String::new()));
    let (is_right, errors) = check(&scripts);
    assert!(!is_right && errors.matches("error[").count() == 2, "{errors}");
    assert!(errors.contains("also wrong.ftsh"), "{errors}");
    let (is_right, warnings) = check(&scripts[3..]);
    assert!(!is_right && warnings.contains("warning["), "{warnings}");
}
