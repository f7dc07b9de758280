//! The machine in a simulated world: virtual time, no processes.

#![allow(unsafe_code)]

mod arguments;
mod atomic;
mod attempts;
mod builtins;
mod bytes;
mod calls;
mod cancelling;
mod channels;
mod cluster;
mod committing;
mod determinism;
mod dispatch;
mod elsewhere;
mod expansion;
mod finally;
mod forall;
mod functions;
mod hedge;
mod hostile;
mod inputs;
mod journal;
mod loops;
mod pipelines;
mod plumbing;
mod properties;
mod resuming;
mod scopes;
mod sessions;
mod signals;
mod status_text;
mod suspending;
mod trying;
mod usual;
mod watching;
mod with;

use std::time::Duration;

use ftsh_machine::driver::{self, Driver};
use ftsh_machine::record::Level;
use ftsh_machine::{Config, Machine, Outcome};
use ftsh_sim::{Call, Model, Simulated};

/// World for a script.
struct World {
    simulated: Simulated,
    config: Config,
    environment: Vec<(&'static str, &'static str)>,
    args: Vec<&'static str>,
}

/// Result of a run.
struct Ran {
    pub outcome: Outcome,
    pub world: Simulated,
    pub elapsed: Duration,
}

/// Returns a world with `ok`, `fail N`, `hang`, `deaf` (to signals before SIGTERM), `work SECONDS`, `print WORDS`, `cat` and `daemon`.
fn world() -> World {
    let number = |call: &Call| call.words[1].to_string().parse().unwrap_or(1.0);
    let simulated = Simulated::new(1)
        .command("ok", |_, _| Model::succeeds())
        .command("fail", |call, _| {
            let code = call.words.get(1).map_or(1, |code| code.to_string().parse().unwrap_or(1));
            Model::fails(code)
        })
        .command("hang", |_, _| Model::hangs())
        .command("stubborn", |_, _| Model::hangs().stubborn())
        .command("deaf", |_, _| Model::hangs().ignores_others())
        .command("work", move |call, _| Model::succeeds().takes(seconds(number(call))))
        .command("slowfail", move |call, _| Model::fails(1).takes(seconds(number(call))))
        .command("daemon", |_, _| Model::succeeds().leaves_a_daemon())
        .command("cat", |call, _| Model::succeeds().prints(call.input.clone()))
        .command("env", |call, _| {
            let name = call.words[1].to_string();
            match call.variable(&name) {
                Some(value) => Model::succeeds().prints(format!("{name}={value}\n")),
                None => Model::fails(1),
            }
        });
    World {
        simulated,
        config: Config::default(),
        environment: vec![("HOME", "/home/me")],
        args: vec!["script"],
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

impl World {
    pub(crate) fn model(mut self, change: impl FnOnce(Simulated) -> Simulated) -> Self {
        self.simulated = change(self.simulated);
        self
    }

    pub(crate) fn config(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    pub(crate) fn logging(self, level: Level) -> Self {
        self.config(|config| config.log_level = level)
    }

    pub(crate) fn args(mut self, args: &[&'static str]) -> Self {
        self.args.extend(args);
        self
    }

    pub(crate) fn env(mut self, name: &'static str, value: &'static str) -> Self {
        self.environment.push((name, value));
        self
    }

    pub(crate) fn run(self, script: &str) -> Ran {
        let parsed = ftsh_syntax::parse("script", script)
            .unwrap_or_else(|errors| panic!("{script}\n{:#?}", errors.errors));
        let args = self.args.iter().map(|arg| (*arg).into()).collect();
        let environment = self
            .environment
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect();
        let mut machine = Machine::new(&parsed, args, environment, self.config, 7);
        let mut world = self.simulated;
        let outcome = driver::run(&mut machine, &mut world);
        let elapsed = world.now().elapsed();
        Ran { outcome, world, elapsed }
    }
}

impl Ran {
    #[track_caller]
    pub(crate) fn succeeds(self) -> Self {
        assert_eq!(self.outcome, Outcome::Succeeded, "{}", self.world.trace());
        self
    }

    /// Checks the kind and the message of the failure, and the exit status.
    #[track_caller]
    pub(crate) fn fails(self, kind: &str, code: u8) -> Self {
        match &self.outcome {
            Outcome::Failed(failure) => {
                assert_eq!(
                    (failure.kind.name(), self.outcome.exit_code()),
                    (kind, code),
                    "{failure}"
                );
            }
            other => panic!("{other:?}\n{}", self.world.trace()),
        }
        self
    }

    pub(crate) fn message(&self) -> String {
        match &self.outcome {
            Outcome::Failed(failure) => failure.to_string(),
            other => format!("{other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn prints(self, expected: &str) -> Self {
        assert_eq!(self.world.stdout(), expected, "{}\n{}", self.message(), self.world.trace());
        self
    }

    #[track_caller]
    pub(crate) fn takes(self, expected: f64) -> Self {
        let elapsed = self.elapsed.as_secs_f64();
        assert!((elapsed - expected).abs() < 1e-6, "{elapsed} s\n{}", self.world.trace());
        self
    }
}
