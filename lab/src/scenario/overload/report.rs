//! Tables and picture of an overload.

use std::time::Duration;

use ftsh_syntax::duration::Exact;

use super::{OverloadCourse, OverloadOptions, OverloadSettings};
use crate::common::statistics::mean;
use crate::common::{
    Axis, Cell, ClientCrowd, Column, Panel, Picture, PlotSeries, Report, ReportTable, SeriesStyle,
    labels, legend,
};

/// Creates the report on the courses of each crowd.
pub(super) fn report(
    options: &OverloadOptions,
    setting: &OverloadSettings,
    crowds: &[ClientCrowd],
    courses: &[Vec<OverloadCourse>],
) -> Report {
    let labels = labels(crowds);
    let mut tables = vec![summary(options, setting, crowds, &labels, courses)];
    if crowds.iter().any(|crowd| crowd.single().is_none()) {
        tables.push(members(crowds, &labels, courses));
    }
    let firsts: Vec<_> = courses.iter().filter_map(|all| all.first()).collect();
    tables.push(seconds(crowds, &labels, &firsts));
    Report {
        tables,
        notes: notes(options, setting, crowds, courses),
        picture: picture(setting, &labels, &firsts),
    }
}

/// Returns the median, if most values exist.
fn median(times: impl Iterator<Item = Option<Duration>>) -> Cell {
    let mut times: Vec<_> = times.map(|time| time.unwrap_or(Duration::MAX)).collect();
    times.sort_unstable();
    match times.get(times.len() / 2) {
        Some(time) if *time < Duration::MAX => Cell::Number(time.as_secs_f64(), 0),
        _ => Cell::Missing,
    }
}

fn summary(
    options: &OverloadOptions,
    setting: &OverloadSettings,
    crowds: &[ClientCrowd],
    labels: &[String],
    courses: &[Vec<OverloadCourse>],
) -> ReportTable {
    let trials = courses.first().map_or(0, Vec::len);
    let how = if options.live { "live".to_owned() } else { format!("{trials} trials") };
    let title = format!(
        "{} clients and a server stopped for {}, {how}",
        setting.clients,
        Exact(setting.outage)
    );
    let mut table = ReportTable::new(
        "overload",
        title,
        vec![
            Column::new("policy", "policy", ""),
            Column::new("recovered", "comes", "back"),
            Column::new("recovery_s", "after", "s"),
            Column::new("half_back_s", "half", "s"),
            Column::new("all_back_s", "all", "s"),
            Column::new("before_per_s", "before", "1/s"),
            Column::new("after_per_s", "at end", "1/s"),
            Column::new("peak_concurrency", "peak", ""),
            Column::new("requests_stopped", "sent while", "stopped"),
            Column::hidden("recovered_trials"),
            Column::hidden("clients"),
            Column::hidden("backoff"),
            Column::hidden("trials"),
            Column::hidden("live"),
        ],
    );
    for ((crowd, label), all) in crowds.iter().zip(labels).zip(courses) {
        let recovered = all.iter().filter(|course| course.recovers()).count();
        let shown = if trials == 1 {
            if recovered == 1 { "yes".to_owned() } else { "no".to_owned() }
        } else {
            format!("{recovered}/{trials}")
        };
        table.push(vec![
            label.as_str().into(),
            shown.into(),
            median(all.iter().map(|it| it.recovery().filter(|_| it.recovers()))),
            median(all.iter().map(|it| it.part_back(0.5, |_| true))),
            median(all.iter().map(|it| it.part_back(1.0, |_| true))),
            Cell::number(mean(all.iter().map(OverloadCourse::before))),
            Cell::number(mean(all.iter().map(OverloadCourse::after))),
            all.iter().map(|it| it.peak).max().unwrap_or_default().into(),
            Cell::Number(mean(all.iter().map(|it| it.requests_stopped() as f64)), 0),
            recovered.into(),
            setting.clients.into(),
            crowd.to_string().into(),
            trials.into(),
            Cell::Flag(options.live),
        ]);
    }
    table
}

/// Returns the results of each policy in a mixed crowd.
fn members(
    crowds: &[ClientCrowd],
    names: &[String],
    courses: &[Vec<OverloadCourse>],
) -> ReportTable {
    let mut table = ReportTable::new(
        "members",
        "The parts of mixed crowds",
        vec![
            Column::new("crowd", "crowd", ""),
            Column::new("policy", "clients with", ""),
            Column::new("clients", "clients", ""),
            Column::new("half_back_s", "half", "s"),
            Column::new("all_back_s", "all", "s"),
            Column::new("answers_at_end", "answers", "at end"),
            Column::hidden("backoff"),
        ],
    );
    for ((crowd, name), all) in crowds.iter().zip(names).zip(courses) {
        let parts = crowd.0.len();
        if parts == 1 {
            continue;
        }
        let policies: Vec<_> = crowd.0.iter().cloned().map(ClientCrowd::from).collect();
        for (part, label) in labels(&policies).iter().enumerate() {
            let of = |client: usize| client % parts == part;
            let clients =
                all.first().map_or(0, |it| (0..it.back.len()).filter(|it| of(*it)).count());
            let answers = |course: &OverloadCourse| {
                let lately = course.lately.iter().enumerate().filter(|(client, _)| of(*client));
                lately.map(|(_, answers)| *answers as f64).sum::<f64>()
            };
            table.push(vec![
                name.as_str().into(),
                label.as_str().into(),
                clients.into(),
                median(all.iter().map(|it| it.part_back(0.5, of))),
                median(all.iter().map(|it| it.part_back(1.0, of))),
                Cell::Number(mean(all.iter().map(answers)), 0),
                crowd.0[part].to_string().into(),
            ]);
        }
    }
    table
}

/// Returns the course of the first trials, for programs.
fn seconds(crowds: &[ClientCrowd], labels: &[String], courses: &[&OverloadCourse]) -> ReportTable {
    let columns = ["policy", "second", "requests", "answers", "timeouts", "concurrency", "backoff"];
    let columns = columns.map(|name| Column::new(name, name, "")).to_vec();
    let mut table = ReportTable::new("seconds", "The first trials, second by second", columns);
    table.is_long = true;
    for ((crowd, label), course) in crowds.iter().zip(labels).zip(courses) {
        for (number, second) in course.seconds.iter().enumerate() {
            table.push(vec![
                label.as_str().into(),
                number.into(),
                second.requests.into(),
                second.answers.into(),
                second.timeouts.into(),
                second.concurrency.into(),
                crowd.to_string().into(),
            ]);
        }
    }
    table
}

fn picture(setting: &OverloadSettings, labels: &[String], courses: &[&OverloadCourse]) -> Picture {
    let lines = |what: &dyn Fn(&OverloadCourse, usize) -> f64| -> Vec<PlotSeries> {
        let named = labels.iter().zip(courses).enumerate();
        named
            .map(|(color, (name, course))| PlotSeries {
                name: name.clone(),
                points: (0..course.seconds.len()).map(|at| (at as f64, what(course, at))).collect(),
                style: SeriesStyle::Line,
                color,
            })
            .collect()
    };
    // A mean of five seconds smooths the curve.
    let around = |course: &OverloadCourse, at: usize, of: &dyn Fn(&super::Second) -> u64| {
        let end = (at + 3).min(course.seconds.len());
        let near = &course.seconds[at.saturating_sub(2)..end];
        near.iter().map(of).sum::<u64>() as f64 / near.len() as f64
    };
    let title =
        format!("stopped from {} s to {} s", setting.before.as_secs(), setting.resumed().as_secs());
    let panel =
        |title: String, y: Axis, series| Panel { title, x: Axis::linear("time, s"), y, series };
    Picture {
        title: format!("Overload of a server, {title}"),
        panels: vec![
            panel(
                "Requests answered in time".into(),
                Axis::linear("answers, 1/s"),
                lines(&|course, at| around(course, at, &|it| it.answers)),
            ),
            panel(
                "Requests sent".into(),
                Axis::log("requests, 1/s"),
                lines(&|course, at| around(course, at, &|it| it.requests)),
            ),
            panel(
                "Requests that the server works on".into(),
                Axis::log("requests"),
                lines(&|course, at| course.seconds[at].concurrency as f64),
            ),
        ],
    }
}

fn notes(
    options: &OverloadOptions,
    setting: &OverloadSettings,
    crowds: &[ClientCrowd],
    courses: &[Vec<OverloadCourse>],
) -> Vec<String> {
    let server = &setting.slowness;
    let mut notes = vec![
        "comes back: at the end as many answers as before, nearly (90 %, less three standard \
         deviations); after: how long after the server went on that began; half, all: until so \
         many clients had an answer."
            .to_owned(),
        format!(
            "A client thinks {} in the mean and waits {} for an answer. The server takes {} up to \
             {} requests at once, then {}^((c - {})/{}) times that; {} connections wait while it \
             is stopped, which is our choice. It was watched for {}.",
            Exact(setting.think),
            Exact(setting.timeout),
            Exact(server.base),
            server.limit,
            server.factor,
            server.limit,
            server.divisor,
            setting.backlog,
            Exact(setting.watch),
        ),
        legend(crowds, &labels(crowds)),
    ];
    let events: u64 = courses.iter().flatten().map(|course| course.events).sum();
    notes.push(if options.live {
        format!(
            "Live, {} times as fast: times are as if it were not. {events} requests were sent.",
            options.scale
        )
    } else {
        format!("{events} events were simulated.")
    });
    notes
}
