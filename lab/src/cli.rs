//! The command line: one subcommand a scenario.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Result;
use clap::error::ErrorKind;
use clap::{ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::common::{Common, Output, Report, Told};
use crate::scenario::overload::serve::SERVE;
use crate::scenario::{
    advise, blackhole, buffer, channels, cluster, delays, ethernet, occ, outage, overload,
    recovery, rehearse,
};

/// The exit status of wrong usage and of impossible parameters.
const WRONG_USAGE: u8 = 2;

/// Experiments with the backoff policies of ftsh, and advice on which to choose
#[derive(Parser)]
#[command(name = "ftsh-lab", version, max_term_width = 100)]
struct CommandLine {
    #[command(subcommand)]
    scenario: Scenario,
}

#[derive(Subcommand)]
enum Scenario {
    Delays(delays::Options),
    Occ(occ::Options),
    Outage(outage::Options),
    Recovery(recovery::Options),
    Advise(advise::Options),
    Ethernet(ethernet::Options),
    Overload(overload::Options),
    Blackhole(blackhole::Options),
    Buffer(buffer::Options),
    Channels(channels::Options),
    Cluster(cluster::Options),
    Rehearse(Box<rehearse::Options>),
}

impl Scenario {
    fn common(&self) -> &Common {
        match self {
            Self::Delays(options) => &options.common,
            Self::Occ(options) => &options.common,
            Self::Outage(options) => &options.common,
            Self::Recovery(options) => &options.common,
            Self::Advise(options) => &options.common,
            Self::Ethernet(options) => &options.common,
            Self::Overload(options) => &options.common,
            Self::Blackhole(options) => &options.common,
            Self::Buffer(options) => &options.common,
            Self::Channels(options) => &options.common,
            Self::Cluster(options) => &options.common,
            Self::Rehearse(options) => &options.common,
        }
    }

    fn run(&self) -> Result<Report> {
        match self {
            Self::Delays(options) => delays::run(options),
            Self::Occ(options) => occ::run(options),
            Self::Outage(options) => outage::run(options),
            Self::Recovery(options) => recovery::run(options),
            Self::Advise(options) => advise::run(options),
            Self::Ethernet(options) => ethernet::run(options),
            Self::Overload(options) => overload::run(options),
            Self::Blackhole(options) => blackhole::run(options),
            Self::Buffer(options) => buffer::run(options),
            Self::Channels(options) => channels::run(options),
            Self::Cluster(options) => cluster::run(options),
            Self::Rehearse(options) => rehearse::run(options),
        }
    }
}

/// Does what the command line of this process says.
pub fn main() -> ExitCode {
    if let [_, first, arguments @ ..] = &std::env::args_os().collect::<Vec<_>>()[..]
        && first == SERVE
    {
        // The server of a live run, which that starts.
        return match overload::serve::serve(arguments) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    let scenario = match parse() {
        Ok(scenario) => scenario,
        Err(error) => return refuse(&error),
    };
    match obey(&scenario) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            match error.downcast_ref::<Told>() {
                // If that fails, there is nobody left to tell.
                Some(Told(text)) => drop(io::stderr().write_all(text.as_bytes())),
                None => complain(&format!("{error:#}")),
            }
            ExitCode::from(WRONG_USAGE)
        }
    }
}

/// The definition of the command line: parsing, help, the manual pages and completions.
pub fn command() -> clap::Command {
    // So that a negative number is refused as what it is.
    CommandLine::command().mut_subcommands(|scenario| {
        let scenario = scenario.allow_negative_numbers(true);
        scenario.mut_args(|it| match it.get_action() {
            ArgAction::Set | ArgAction::Append if it.get_long().is_some() => {
                it.allow_hyphen_values(true)
            }
            _ => it,
        })
    })
}

fn parse() -> Result<Scenario, clap::Error> {
    Ok(CommandLine::from_arg_matches(&command().try_get_matches()?)?.scenario)
}

fn obey(scenario: &Scenario) -> Result<()> {
    let common = scenario.common();
    // Before any long computation.
    let output = Output::open(common)?;
    let report = common.in_parallel(|| scenario.run())??;
    tell(&output.write(&report)?)
}

/// Shows help, or says in one line what is wrong with the command line.
fn refuse(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return match tell(&error.to_string()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let command = CommandLine::command();
        let names: Vec<_> = command.get_subcommands().map(clap::Command::get_name).collect();
        complain(&format!("which scenario? There are {}; see --help", names.join(", ")));
        return ExitCode::from(WRONG_USAGE);
    }
    let text = error.to_string();
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let told: Vec<_> =
        lines.filter(|line| !line.is_empty() && !line.starts_with("For more")).collect();
    complain(told.join(" ").trim_start_matches("error: "));
    ExitCode::from(WRONG_USAGE)
}

/// Prints on standard output. Nobody who reads it to the end is no failure.
fn tell(text: &str) -> Result<()> {
    let mut out = io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

fn complain(message: &str) {
    // If that fails, there is nobody left to tell.
    let _ = writeln!(io::stderr(), "ftsh-lab: {message}");
}
