//! Command line with a subcommand for each scenario.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Result;
use clap::error::ErrorKind;
use clap::{ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::common::{CommonOptions, RenderedError, Report, ReportOutput};
use crate::scenario::overload::serve::SERVE;
use crate::scenario::paper::Article;
use crate::scenario::{
    advise, blackhole, buffer, channels, cluster, delays, ethernet, limits, occ, outage, overload,
    paper, recovery, rehearse,
};

/// Exit status of wrong usage and of impossible parameters.
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
    Delays(delays::DelaysOptions),
    Occ(occ::OccOptions),
    Outage(outage::OutageOptions),
    Recovery(recovery::RecoveryOptions),
    Advise(advise::AdviseOptions),
    Ethernet(ethernet::EthernetOptions),
    Overload(overload::OverloadOptions),
    Blackhole(blackhole::BlackholeOptions),
    Buffer(buffer::BufferOptions),
    Channels(channels::ChannelsOptions),
    Cluster(cluster::ClusterOptions),
    Limits(limits::LimitsOptions),
    Rehearse(Box<rehearse::RehearseOptions>),
    Paper(paper::PaperOptions),
}

impl Scenario {
    fn common(&self) -> &CommonOptions {
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
            Self::Limits(options) => &options.common,
            Self::Rehearse(options) => &options.common,
            Self::Paper(options) => &options.common,
        }
    }

    /// Returns the article whose experiment the scenario repeats.
    fn article(&self) -> Option<Article> {
        match self {
            Self::Occ(_) => Some(Article::Brooker),
            Self::Outage(_) => Some(Article::Revisited),
            Self::Recovery(_) | Self::Advise(_) => Some(Article::Thain),
            Self::Ethernet(_) | Self::Buffer(_) | Self::Blackhole(_) | Self::Cluster(_) => {
                Some(Article::Grid)
            }
            Self::Overload(_) | Self::Channels(_) => Some(Article::Overload),
            Self::Paper(options) => Some(options.article),
            _ => None,
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
            Self::Limits(options) => limits::run(options),
            Self::Rehearse(options) => rehearse::run(options),
            Self::Paper(options) => paper::run(options, |words| {
                CommandLine::try_parse_from([&["ftsh-lab"], words].concat())?.scenario.run()
            }),
        }
    }
}

/// Executes the command line of this process.
pub fn main() -> ExitCode {
    if let [_, first, arguments @ ..] = &std::env::args_os().collect::<Vec<_>>()[..]
        && first == SERVE
    {
        // Server of a live run, which starts this process.
        return match overload::serve::serve(arguments) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    let scenario = match parse() {
        Ok(scenario) => scenario,
        Err(error) => return refuse(&error),
    };
    match execute(&scenario) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            match error.downcast_ref::<RenderedError>() {
                // No other way is left to report an error.
                Some(RenderedError(text)) => drop(io::stderr().write_all(text.as_bytes())),
                None => print_error(&format!("{error:#}")),
            }
            ExitCode::from(WRONG_USAGE)
        }
    }
}

/// Returns the definition of the command line for parsing, help, manual pages and completions.
pub fn command() -> clap::Command {
    // Otherwise clap would report a negative number as an unknown option.
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

fn execute(scenario: &Scenario) -> Result<()> {
    let common = scenario.common();
    // Checked before any long computation.
    let output = ReportOutput::open(common)?;
    let mut report = common.in_parallel(|| scenario.run())??;
    let source = scenario.article().map(Article::source);
    for line in source.map(str::to_owned).into_iter().chain([repeated(common)]) {
        report.picture.title += &format!("\n{line}");
    }
    print_text(&output.write(&report)?)
}

/// Returns the command line that draws the same picture.
fn repeated(common: &CommonOptions) -> String {
    let mut words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let mut command = "ftsh-lab".to_owned();
    while let Some(word) = words.next() {
        let (name, has_value) = word.split_once('=').map_or((&*word, false), |it| (it.0, true));
        match name {
            // Without influence on the picture, or known.
            "--plot" | "--threads" | "--table" | "--seed" if !has_value => drop(words.next()),
            "--plot" | "--threads" | "--table" | "--seed" | "--json" | "--csv" => {}
            _ if word.contains([' ', '*', '\'', '"']) => command += &format!(" {word:?}"),
            _ => command += &format!(" {word}"),
        }
    }
    format!("{command} --seed {}", common.seed)
}

/// Shows help, or reports an error of the command line in one line.
fn refuse(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return match print_text(&error.to_string()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let command = CommandLine::command();
        let names: Vec<_> = command.get_subcommands().map(clap::Command::get_name).collect();
        print_error(&format!(
            "missing scenario; the scenarios are {}; see `--help`",
            names.join(", ")
        ));
        return ExitCode::from(WRONG_USAGE);
    }
    let text = error.to_string();
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let message: Vec<_> =
        lines.filter(|line| !line.is_empty() && !line.starts_with("For more")).collect();
    print_error(message.join(" ").trim_start_matches("error: "));
    ExitCode::from(WRONG_USAGE)
}

/// Prints a text on standard output. A reader that closes the pipe early is no failure.
fn print_text(text: &str) -> Result<()> {
    let mut out = io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

fn print_error(message: &str) {
    // No other way is left to report an error.
    let _ = writeln!(io::stderr(), "ftsh-lab: {message}");
}
