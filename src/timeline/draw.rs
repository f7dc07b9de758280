//! A picture as SVG.

use std::fmt::Write;
use std::time::Duration;

use super::{Bar, End, Kind, Row};
use crate::machine::outcome::Human;

/// The room for labels, for the times, and of a row.
const LEFT: f64 = 230.0;
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 20.0;
const TOP: f64 = 64.0;
const MARGIN: f64 = 20.0;
/// How many times stand above the rows, about.
const TICKS: f64 = 8.0;
const LONGEST_LABEL: usize = 34;

const STYLE: &str = "
text { font: 12px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600; font-size: 15px }
.tick line { stroke: #d8dee4 } .tick text { fill: #57606a; font-size: 11px }
.task { opacity: .25 } .command { opacity: .55 }
.succeeded { fill: #2f9e60 } .failed { fill: #d1435b } .cancelled { fill: #8c959f } .unknown { fill: #e0a030 }
.delay { fill: #afb8c1 } .deadline { stroke: #82071e; stroke-width: 2 }
";

/// Draws the rows of a run that was seen up to `now`.
pub fn svg(title: &str, rows: &[Row], left_out: usize, now: Duration) -> String {
    let height =
        TOP + rows.len() as f64 * HEIGHT + MARGIN + if left_out > 0 { HEIGHT } else { 0.0 };
    let width = LEFT + WIDTH + MARGIN;
    let whole = now.as_secs_f64().max(1e-6);
    let mut out = String::new();
    // Writing to a string can't fail.
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" data-left=\"{LEFT}\" data-width=\"{WIDTH}\" data-seconds=\"{whole}\">\n\
         <style>{STYLE}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text class=\"title\" x=\"{MARGIN}\" y=\"26\">{}</text>",
        escaped(title)
    );
    let at = |time: Duration| LEFT + time.as_secs_f64().min(whole) / whole * WIDTH;
    let step = step(whole / TICKS);
    let mut tick = 0.0;
    while tick <= whole {
        let (x, bottom) = (LEFT + tick / whole * WIDTH, height - MARGIN);
        let time = Human(Duration::from_secs_f64(tick));
        let _ = writeln!(
            out,
            "<g class=\"tick\"><line x1=\"{x:.2}\" x2=\"{x:.2}\" y1=\"{}\" y2=\"{bottom}\"/>\
             <text x=\"{x:.2}\" y=\"{}\" text-anchor=\"middle\">{time}</text></g>",
            TOP - 8.0,
            TOP - 14.0
        );
        tick += step;
    }
    for (index, row) in rows.iter().enumerate() {
        let y = TOP + index as f64 * HEIGHT;
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\">{}</text>",
            MARGIN + row.depth as f64 * 10.0,
            y + 14.0,
            escaped(&shortened(&row.label))
        );
        // Commands are on top of the attempts that they belong to.
        for of_command in [false, true] {
            for bar in row.bars.iter().filter(|bar| (bar.kind == Kind::Command) == of_command) {
                draw(&mut out, bar, y, &at);
            }
        }
        // A limit that nothing came near is outside the picture.
        for deadline in row.deadlines.iter().filter(|deadline| **deadline <= now) {
            let x = at(*deadline);
            let _ = writeln!(
                out,
                "<line class=\"deadline\" data-at=\"{}\" x1=\"{x:.2}\" x2=\"{x:.2}\" y1=\"{}\" y2=\"{}\">\
                 <title>the limit, after {}</title></line>",
                deadline.as_secs_f64(),
                y + 1.0,
                y + HEIGHT - 1.0,
                Human(*deadline)
            );
        }
    }
    if left_out > 0 {
        let _ = writeln!(
            out,
            "<text x=\"{MARGIN}\" y=\"{}\">and more, which would be too many</text>",
            height - MARGIN
        );
    }
    out.push_str("</svg>\n");
    out
}

fn draw(out: &mut String, bar: &Bar, y: f64, at: &impl Fn(Duration) -> f64) {
    let (inset, class) = match bar.kind {
        Kind::Task => (1.0, "task"),
        Kind::Attempt => (3.0, "attempt"),
        Kind::Delay => (8.0, "delay"),
        Kind::Command => (7.0, "command"),
    };
    let end = match bar.end {
        _ if bar.kind == Kind::Delay => "",
        End::Succeeded => " succeeded",
        End::Failed => " failed",
        End::Cancelled => " cancelled",
        End::Unknown => " unknown",
    };
    let (from, to) = (at(bar.from), at(bar.to));
    let _ = writeln!(
        out,
        "<rect class=\"{class}{end}\" data-from=\"{}\" data-to=\"{}\" x=\"{from:.2}\" y=\"{:.1}\" \
         width=\"{:.2}\" height=\"{:.1}\"><title>{}</title></rect>",
        bar.from.as_secs_f64(),
        bar.to.as_secs_f64(),
        y + inset,
        (to - from).max(0.8),
        HEIGHT - 2.0 * inset,
        escaped(&bar.text)
    );
}

/// The least of 1, 2 and 5 times a power of ten that isn't below it; of minutes and hours as people count.
fn step(least: f64) -> f64 {
    let of_people = [60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 14400.0, 43200.0, 86400.0];
    if least > 50.0
        && let Some(step) = of_people.into_iter().find(|step| *step >= least)
    {
        return step;
    }
    let power = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|it| it * power).find(|it| *it >= least).unwrap_or(least)
}

fn shortened(label: &str) -> String {
    if label.chars().count() <= LONGEST_LABEL {
        return label.to_owned();
    }
    label.chars().take(LONGEST_LABEL - 1).chain(['…']).collect()
}

/// Text for XML, which has no place for most control characters.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push('\n'),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}
