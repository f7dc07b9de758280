//! Tests of the resolution of options and environment.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use crate::cli::options::flags::{self, Request};
use crate::cli::options::topics::{self, OF_COMMANDS};
use crate::cli::options::{SETTINGS, WITHOUT_OPTION, names};
use crate::cli::plan::resolve::ProcessContext;
use crate::cli::plan::source::ScriptSource;
use crate::cli::plan::{Action, RunPlan};
use crate::log::Format;
use ftsh_ide::help;
use ftsh_machine::Time;
use ftsh_machine::record::Level;
use ftsh_machine::time::Deadline;
use ftsh_process::{KillTimeout, LimitClocks};
use ftsh_syntax::backoff::Policy;

fn resolve(words: &[&str], environment: &[(&str, &str)]) -> Result<RunPlan, String> {
    resolve_at(false, words, environment)
}

fn resolve_at(
    terminal: bool,
    words: &[&str],
    environment: &[(&str, &str)],
) -> Result<RunPlan, String> {
    let mut words = words.iter().map(OsString::from).collect();
    let Request::Work(flags) = flags::parse(&mut words).map_err(|error| error.to_string())? else {
        panic!("help");
    };
    let variable = |name: &str| {
        environment.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
    };
    let context = ProcessContext {
        variable: &variable,
        kill_timeout: &KillTimeout::of,
        directory: Path::new("/here"),
        clocks: &|| LimitClocks {
            since_1970: Duration::from_secs(1000),
            since_boot: Duration::from_secs(50),
            boot: "this".into(),
        },
        pid: 7,
        umask: 0o027,
        passing_input: false,
        terminal,
        status_line: terminal,
    };
    RunPlan::resolve(&flags, &context).map_err(|error| error.to_string())
}

fn plan(words: &[&str], environment: &[(&str, &str)]) -> RunPlan {
    resolve(words, environment).expect("good usage")
}

fn child_env(plan: &RunPlan) -> Vec<String> {
    plan.process.child_env.iter().map(|(name, value)| format!("{name}={value}")).collect()
}

fn policy(text: &str) -> Policy {
    text.parse().expect("a policy")
}

#[test]
fn the_definition_is_sound() {
    flags::command().debug_assert();
}

#[test]
fn each_variable_is_examined_and_has_an_option() {
    let known: Vec<_> = flags::command().get_arguments().flat_map(names).collect();
    let files = ["FTSH_LOG_FILE", "FTSH_LOCK", "FTSH_METRICS", "FTSH_OTLP", "FTSH_JOURNAL"];
    let is_file = |variable| files.contains(&variable);
    for setting in &SETTINGS {
        assert!(known.iter().any(|name| name == setting.option), "{setting:?}");
        let refused = resolve(&["s"], &[(setting.variable, "!")]);
        assert_eq!(refused.is_err(), !is_file(setting.variable), "{setting:?}");
    }
}

#[test]
fn without_options_there_are_defaults() {
    let plan = plan(&["s.ftsh", "-l", "x"], &[]);
    assert!(
        matches!(&plan.script.program, ScriptSource::File(path) if path == Path::new("s.ftsh"))
    );
    assert_eq!(plan.script.arguments, ["s.ftsh", "-l", "x"]);
    assert_eq!(plan.action, Action::Run);
    assert_eq!(plan.machine.pid, 7);
    assert_eq!(plan.machine.log_level, Level::FAILURES);
    assert_eq!(plan.machine.kill_timeout, Duration::from_secs(30));
    assert!(plan.machine.kill_strong && !plan.machine.unset_is_empty);
    assert_eq!(plan.machine.backoff, Policy::default());
    assert_eq!(
        (plan.machine.deadline, plan.script.seed, plan.reporting.log_file.clone()),
        (Deadline::NONE, None, None)
    );
    assert_eq!(child_env(&plan), ["FTSH_KILL_TIMEOUT=25"]);
}

/// The shell reports its end to others for two seconds at most.
#[test]
fn pings_and_traces_share_the_time_at_the_end() {
    let (ping, otlp) = (["--ping", "http://h/"], ["--otlp", "f"]);
    let limit = |words: &[&str]| plan(&[words, &["s"]].concat(), &[]).report_limit();
    assert_eq!(limit(&ping), Duration::from_secs(2));
    assert_eq!(limit(&otlp), Duration::from_secs(2));
    assert_eq!(limit(&[ping, otlp].concat()), Duration::from_secs(1));
}

#[test]
fn options_are_handed_down() {
    let options = "-l 20 -f log -D --log-format json -t 7.5 -k weak --unset=empty --seed 3";
    let mut words: Vec<_> = options.split(' ').collect();
    words.extend(["--backoff", "fixed from 2 s", "s"]);
    let plan = plan(&words, &[]);
    assert_eq!(plan.machine.log_level, Level::COMMANDS);
    assert_eq!(plan.reporting.log_format, Format::Json);
    assert!(plan.reporting.log_decimal && plan.machine.unset_is_empty && !plan.machine.kill_strong);
    assert_eq!(plan.machine.kill_timeout, Duration::from_millis(7500));
    assert_eq!(plan.script.seed, Some(3));
    assert_eq!(
        child_env(&plan),
        [
            "FTSH_LOG_LEVEL=20",
            "FTSH_LOG_FORMAT=json",
            "FTSH_LOG_DECIMAL=1",
            "FTSH_LOG_FILE=/here/log",
            "FTSH_KILL_TIMEOUT=2.5",
            "FTSH_KILL_MODE=weak",
            "FTSH_UNSET=empty",
            "FTSH_BACKOFF=fixed from 2 s",
        ]
    );
}

#[test]
fn the_environment_counts_where_no_option_does() {
    let environment = [
        ("FTSH_LOG_LEVEL", "40"),
        ("FTSH_LOG_FILE", "/var/log/x"),
        ("FTSH_KILL_TIMEOUT", "3"),
        ("FTSH_KILL_MODE", "weak"),
        ("FTSH_UNSET", "empty"),
        ("FTSH_BACKOFF", "none"),
        ("FTSH_DEADLINE", "1060.5"),
    ];
    let inherited = plan(&["s"], &environment);
    assert_eq!(inherited.machine.log_level, Level::PROCESSES);
    assert_eq!(
        inherited.machine.deadline,
        Deadline::at(Time::after(Duration::from_millis(60_500)))
    );
    assert_eq!(inherited.machine.backoff, policy("none"));
    assert!(inherited.machine.unset_is_empty && !inherited.machine.kill_strong);
    assert_eq!(child_env(&inherited), ["FTSH_LOG_FILE=/var/log/x", "FTSH_KILL_TIMEOUT=0"]);

    let options =
        ["-l", "0", "-k", "strong", "--unset", "fail", "--backoff", "full", "-t", "9", "s"];
    let typed = plan(&options, &environment);
    assert_eq!(typed.machine.log_level, Level::NOTHING);
    assert_eq!(typed.machine.backoff, policy("full"));
    assert_eq!(typed.machine.kill_timeout, Duration::from_secs(9));
    assert!(!typed.machine.unset_is_empty && typed.machine.kill_strong);
}

#[test]
fn a_crontab_takes_a_variable_back() {
    for empty in ["", "\"\"", "''"] {
        let variables = ["FTSH_LOCK", "FTSH_LOCK_WAIT", "FTSH_SPLAY", "FTSH_CRON", "FTSH_LOG_FILE"];
        let plan = plan(&["s"], &variables.map(|name| (name, empty)));
        assert_eq!((plan.start.lock, plan.reporting.log_file), (None, None), "{empty}");
        assert!(
            plan.start.lock_wait.is_zero()
                && plan.start.splay.is_zero()
                && !plan.reporting.cron.is_on()
        );
    }
}

#[test]
fn a_deadline_of_this_boot_is_independent_of_the_wall_clock() {
    let deadline = |value: &str| plan(&["s"], &[("FTSH_DEADLINE", value)]).machine.deadline;
    let at = |seconds| Deadline::at(Time::after(Duration::from_secs(seconds)));
    assert_eq!(deadline("5@this:60"), at(10));
    assert_eq!(deadline("1005@other:60"), at(5));
    assert!(resolve(&["s"], &[("FTSH_DEADLINE", "1005@this")]).is_err());
}

#[test]
fn a_deadline_that_has_passed_is_now() {
    let plan = plan(&["s"], &[("FTSH_DEADLINE", "999")]);
    assert_eq!(plan.machine.deadline, Deadline::at(Time::START));
}

#[test]
fn the_variables_of_2003_describe_a_policy() {
    let of = |environment: &[(&str, &str)]| plan(&["s"], environment).machine.backoff;
    assert_eq!(of(&[("FTSH_EXPMIN", "0.1")]), policy("ethernet from 100 ms"));
    assert_eq!(of(&[("FTSH_EXPMAX", "0.5")]), policy("ethernet from 500 ms to 500 ms"));
    assert_eq!(
        of(&[
            ("FTSH_EXPMIN", "2"),
            ("FTSH_EXPMAX", "9"),
            ("FTSH_EXPFACTOR", "1.5"),
            ("FTSH_EXPRAND", "0")
        ]),
        policy("exponential from 2 s to 9 s by 1.5")
    );
    assert_eq!(of(&[("FTSH_EXPMAX", "3600")]), policy("ethernet from 1 s to 1 h"));
    assert_eq!(of(&[("FTSH_EXPMIN", "300")]), policy("ethernet from 5 min to 5 min"));
    assert_eq!(of(&[("FTSH_EXPMIN", "0")]), policy("none"));
    assert_eq!(of(&[("FTSH_EXPMIN", "2"), ("FTSH_BACKOFF", "full")]), policy("full"));
    let typed = plan(&["--backoff", "full", "s"], &[("FTSH_EXPMIN", "2")]);
    assert_eq!(typed.machine.backoff, policy("full"));
}

#[test]
fn scripts_come_from_three_places() {
    let text = plan(&["-c", "-x", "name", "-n"], &[]);
    assert!(matches!(&text.script.program, ScriptSource::Text { text, .. } if text == "-x"));
    assert_eq!(text.script.program.name(), "name");
    assert_eq!(
        (text.script.arguments, text.action),
        (vec!["name".into(), "-n".into()], Action::Run)
    );

    let nameless = plan(&["-nc", "x"], &[]);
    assert_eq!(
        (nameless.script.program.name().as_str(), nameless.action),
        ("-c", Action::Check { strict: false })
    );
    assert_eq!(nameless.script.arguments, ["ftsh"]);

    for words in [&[][..], &["-"]] {
        let piped = plan(words, &[]);
        assert!(matches!(piped.script.program, ScriptSource::StandardInput));
        assert_eq!(piped.script.arguments, ["ftsh"]);
    }
    let dashed = plan(&["--", "-c"], &[]);
    assert!(matches!(&dashed.script.program, ScriptSource::File(path) if path == Path::new("-c")));
}

#[test]
fn the_last_of_several_counts() {
    assert_eq!(plan(&["-l", "20", "-l30", "s"], &[]).machine.log_level, Level::STRUCTURES);
}

#[test]
fn a_bad_variable_is_an_error_even_if_overridden() {
    let refused = resolve(&["-l", "20", "s"], &[("FTSH_LOG_LEVEL", "loud")]);
    assert_eq!(
        refused.map(drop),
        Err("`FTSH_LOG_LEVEL` can't be `loud`: expected 0, 5, 10, 20, 30 or 40 [option-value]"
            .into())
    );
}

#[test]
fn wrong_usage_is_reported_in_one_line() {
    for (words, message) in [
        (&["--nosuch"][..], "unknown option `--nosuch`; `ftsh --help` lists all options"),
        (&["-y"], "unknown option `-y`; `ftsh --help` lists all options"),
        (&["-x"], "unknown option `-x`; `-l 20` logs each command"),
        (&["--verbose"], "unknown option `--verbose`; `-l 20` logs each command"),
        (
            &["--retires"],
            "unknown option `--retires`; the number is a word: `ftsh try 5 times -- COMMAND`",
        ),
        (
            &["--timeout=5"],
            "unknown option `--timeout`; a limit is a word: `ftsh limit 5 minutes -- COMMAND`",
        ),
        (&["--sed", "3"], "unknown option `--sed`, did you mean `--seed`?"),
        (&["-l"], "`-l <N>` lacks its value"),
        (&["-l", "101"], "`-l` can't be `101`: expected 0, 5, 10, 20, 30 or 40"),
        (&["-l", "-5"], "`-l` can't be `-5`: expected 0, 5, 10, 20, 30 or 40"),
        (&["-t", "-1"], "`-t` can't be `-1`: expected a number of seconds, from 0"),
        (&["-k", "x"], "`-k` can't be `x`: expected `strong` or `weak`"),
        (&["-f", ""], "`-f` lacks its value"),
        (&["--unset=x"], "`--unset` can't be `x`: expected `empty` or `fail`"),
        (&["--log-format", "xml"], "`--log-format` can't be `xml`: expected `text` or `json`"),
        (
            &["--lock=l", "--lock-busy=x"],
            "`--lock-busy` can't be `x`: expected `fail` or `skip` or `replace`",
        ),
        (&["--help=x"], "`--help` takes no value, not `x`"),
    ] {
        let slug = if message.starts_with("unknown") { "unknown-option" } else { "option-value" };
        let expected = format!("{message} [{slug}]");
        assert_eq!(resolve(words, &[]).map(drop), Err(expected), "{words:?}");
    }
}

#[test]
fn only_a_terminal_without_a_script_gets_a_prompt() {
    let at_terminal = |words: &[&str]| resolve_at(true, words, &[]).expect("good usage");
    for (words, level) in [(&[][..], Level::NOTHING), (&["-l", "10"], Level::FAILURES)] {
        let plan = at_terminal(words);
        assert!(matches!(plan.script.program, ScriptSource::Prompt), "{words:?}");
        assert_eq!(plan.machine.log_level, level);
    }
    assert_eq!(at_terminal(&["-f", "log"]).machine.log_level, Level::FAILURES);
    for words in [&["-"][..], &["-n"], &["-p"]] {
        assert!(
            matches!(at_terminal(words).script.program, ScriptSource::StandardInput),
            "{words:?}"
        );
    }
    assert!(matches!(at_terminal(&["script"]).script.program, ScriptSource::File(_)));
    assert!(matches!(plan(&[], &[]).script.program, ScriptSource::StandardInput));
}

#[test]
fn help_at_the_prompt_names_what_there_is() {
    let known: Vec<String> = flags::command().get_arguments().flat_map(names).collect();
    let names = |name: &str| known.iter().any(|known| known == name);
    let variables = SETTINGS.iter().map(|setting| setting.variable);
    let variables: Vec<&str> =
        variables.chain(WITHOUT_OPTION.map(|(name, _)| name)).chain(["FTSH_PROMPT"]).collect();
    let mut seen = 0;
    // These topics have options of scripts and of a builtin.
    let is_own =
        |topic: &&str| !["args", "argument-declaration", "pwd", "read-option"].contains(topic);
    for topic in help::topics().filter(is_own) {
        let text = help::text(topic).unwrap_or_default();
        // Examples contain options of other programs, on lines of their own and in quotes.
        let lines = text.lines().filter(|line| !line.starts_with("  "));
        let parts = lines.flat_map(|line| line.split('`').enumerate());
        let own = parts
            .filter(|(at, part)| at % 2 == 0 || part.starts_with('-') || part.starts_with("FTSH_"));
        for (_, part) in own {
            for word in part.split(|c: char| !(c.is_ascii_alphanumeric() || "-_".contains(c))) {
                let is_option = word.starts_with('-') && !matches!(word, "-" | "--");
                let is_variable = word.starts_with("FTSH_");
                assert!(!is_option || names(word), "{topic}: {word}");
                assert!(!is_variable || variables.contains(&word), "{topic}: {word}");
                seen += usize::from(is_option) + usize::from(is_variable);
            }
        }
    }
    assert!(seen > 2, "there is nothing to look at");
}

#[test]
fn each_variable_of_the_environment_has_help() {
    let topics = topics::all();
    let answer = |name: &str| help::answer(&[name.to_owned()], &topics, 80, false);
    let of_options = SETTINGS.iter().map(|setting| setting.variable);
    let of_commands = OF_COMMANDS.map(|(name, _)| name);
    let others = ["FTSH_REDACT", "FTSH_LOCK_DIR", "FTSH_EXPMIN", "FTSH_EXPRAND", "FTSH_PROMPT"];
    for name in of_options.chain(of_commands).chain(others) {
        let text = answer(name);
        assert!(text.starts_with(&format!("{name}\n")) && text.len() > 40, "{text}");
    }
    for option in flags::command().get_arguments().flat_map(names) {
        assert!(answer(&option).starts_with(&format!("{option}\n`ftsh {option}")), "{option}");
    }
    let levels = answer("FTSH_LOG_LEVEL");
    assert!(levels.starts_with("FTSH_LOG_LEVEL\nAs the option `-l N`: 0 none,"), "{levels}");
    assert_eq!(answer("FTSH_DEADLINE").matches("environment of").count(), 2);
    assert!(answer("FTSH_LOG_LEVL").contains("did you mean `FTSH_LOG_LEVEL`?"));
}
