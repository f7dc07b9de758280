//! Figures of articles: panels of scenarios, with the curves and axes of the article.

use anyhow::{Context, Result, bail};

use crate::common::{CommonOptions, Panel, Report};

/// The figures of an article, with its parameters, curves and axes
///
/// Articles: brooker, thain, revisited, overload. Figures are counted in the order of the article.
///
/// Example: ftsh-lab paper brooker --plot brooker.svg
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct PaperOptions {
    /// The article
    #[arg(value_enum, value_name = "ARTICLE")]
    pub article: Article,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub common: CommonOptions,
}

/// Article whose experiments the laboratory repeats.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Article {
    /// Contention for one row
    Brooker,
    /// Job submission
    Thain,
    /// Waves of retries
    Revisited,
    /// A server that was stopped
    Overload,
    /// The paper of 2003, whose figures are those of scenarios.
    #[value(skip)]
    Grid,
}

/// Panel of a scenario as a figure of an article.
struct Figure {
    title: &'static str,
    panel: usize,
    /// Curves whose names contain one of these texts.
    curves: &'static [&'static str],
    is_linear: bool,
}

/// Creates a figure with linear axes.
const fn linear(title: &'static str, panel: usize, curves: &'static [&'static str]) -> Figure {
    Figure { title, panel, curves, is_linear: true }
}

/// Creates a figure with all curves and the axes of the scenario.
const fn unchanged(title: &'static str, panel: usize) -> Figure {
    Figure { title, panel, curves: ALL, is_linear: false }
}

const ALL: &[&str] = &[""];
const MEDIANS: &[&str] = &["median"];
const JITTERS: &[&str] = &["none", "equal", "full", "decorrelated"];

/// Words of a scenario's command line, and the figures among its panels.
type Source = (&'static [&'static str], &'static [Figure]);

const BROOKER: &[Source] = &[(
    &["occ"],
    &[
        linear("Figure 1: time without backoff", 1, &["none"]),
        linear("Figure 2: calls without backoff", 0, &["none"]),
        linear("Figure 3: calls with exponential backoff", 0, &["none", "exponential"]),
        linear("Figure 4: calls over time, exponential backoff", 3, ALL),
        linear("Figure 5: calls over time, full jitter", 5, ALL),
        linear("Figure 6: calls with full jitter", 0, &["none", "exponential", "full"]),
        linear("Figure 7: calls with three kinds of jitter", 0, JITTERS),
        linear("Figure 8: time with three kinds of jitter", 1, JITTERS),
    ],
)];

const THAIN: &[Source] = &[(
    &["ethernet", "--discipline", "fixed,aloha,ethernet"],
    &[linear("The figure: jobs submitted in 30 minutes", 0, ALL)],
)];

const REVISITED: &[Source] = &[(
    &[
        "outage",
        "--outage",
        "20s",
        "--policy",
        "proportional from 500 ms to 1 min",
        "--policy",
        "slotted from 250 ms to 1 min",
        "--policy",
        "windowed from 250 ms to 1 min",
    ],
    &[
        linear("Figure 1: proportional delays", 1, ALL),
        linear("Figure 2: slots of Ethernet", 2, ALL),
        linear("Figure 3: windows that do not overlap", 3, ALL),
        linear("Figure 4: all three", 0, ALL),
    ],
)];

const OVERLOAD: &[Source] = &[
    (
        &[
            "delays",
            "normal from 100 ms to 10 min by 2.7 jitter 10%",
            "normal from 1 s to 5 min by 1.5 jitter 10%",
            "--retries",
            "15",
        ],
        &[
            linear("Figure 1: delays", 0, MEDIANS),
            Figure { curves: MEDIANS, ..unchanged("Figure 2: delays, logarithmic scale", 0) },
        ],
    ),
    (
        &[
            "overload",
            "--policy",
            "fixed from 100 ms",
            "--policy",
            "normal from 100 ms to 5 min by 2.71828",
        ],
        &[
            unchanged("The simulation: requests answered in time", 0),
            unchanged("The simulation: requests sent", 1),
            unchanged("The simulation: requests that the server works on", 2),
        ],
    ),
];

impl Article {
    /// Returns author, title and year.
    pub const fn source(self) -> &'static str {
        match self {
            Self::Brooker => "Brooker, Exponential Backoff And Jitter, 2015",
            Self::Thain => "Thain, Exponential Backoff in Distributed Systems, 2009",
            Self::Revisited => "Exponential back-off, revisited, 2024",
            Self::Overload => "Smirnov, Exponential Backoff or how not to crash a server, 2014",
            Self::Grid => "Thain and Livny, The Ethernet Approach to Grid Computing, 2003",
        }
    }

    const fn sources(self) -> &'static [Source] {
        match self {
            Self::Brooker => BROOKER,
            Self::Thain => THAIN,
            Self::Revisited => REVISITED,
            Self::Overload => OVERLOAD,
            Self::Grid => &[],
        }
    }
}

/// Draws the figures of an article. `scenario` runs a scenario by the words of its command line.
pub fn run(options: &PaperOptions, scenario: impl Fn(&[&str]) -> Result<Report>) -> Result<Report> {
    if !options.common.policies.is_empty() {
        bail!("the policies are those of the article; other scenarios take `--policy`");
    }
    let seed = options.common.seed.to_string();
    let trials = options.common.trials.map(|trials| trials.to_string());
    let mut words = vec!["--seed", &seed];
    words.extend(trials.iter().flat_map(|trials| ["--trials", trials]));
    let mut report = Report::default();
    for (command, figures) in options.article.sources() {
        let part = scenario(&[command, &words[..]].concat())?;
        report.tables.extend(part.tables);
        report.notes.extend(part.notes);
        for figure in *figures {
            let panel = part.picture.panels.get(figure.panel).context("no panel for a figure")?;
            let mut panel = Panel { title: figure.title.to_owned(), ..panel.clone() };
            panel.series.retain(|it| figure.curves.iter().any(|name| it.name.contains(name)));
            if figure.is_linear {
                (panel.x, panel.y) = (panel.x.into_linear(), panel.y.into_linear());
            }
            report.picture.panels.push(panel);
        }
        report.picture.title = part.picture.title;
    }
    Ok(report)
}
