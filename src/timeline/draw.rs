//! Rendering of a drawing as SVG.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use super::axis;
use super::thin::thin;
use super::words::{escaped, shortened, width};
use super::{Bar, BarKind, Drawing, Gap, Row, SpanEnd};
use ftsh_machine::outcome::Human;

const STYLE: &str = include_str!("style.css");

/// Width of the time axis.
const WIDTH: f64 = 1000.0;
const MARGIN: f64 = 16.0;
/// Positions above the rows: title, labels of marks, times.
const TITLE: f64 = 26.0;
const MARKS: f64 = 48.0;
const TIMES: f64 = 64.0;
const TOP: f64 = 72.0;
/// Maximum number of times above the rows.
const MAX_TIMES: u64 = 10;
/// Indent of a row relative to the row around it.
const INDENT: f64 = 14.0;
/// Width of labels with their indent.
const LABELS: std::ops::RangeInclusive<f64> = 110.0..=340.0;
/// Number of bars above which indistinguishable bars are merged.
const MAX_BARS: usize = 20_000;

/// Meanings of the colors, in the order of the legend.
const LEGEND: [(SpanEnd, &str); 5] = [
    (SpanEnd::Succeeded, "succeeded"),
    (SpanEnd::Failed, "failed"),
    (SpanEnd::Canceled, "canceled"),
    (SpanEnd::Lost, "lost"),
    (SpanEnd::Unknown, "end unknown"),
];

/// Positions in the picture.
struct Layout {
    /// Start of the time axis.
    left: f64,
    /// Height of a row.
    row: f64,
    bottom: f64,
    seconds: f64,
}

impl Layout {
    fn of(picture: &Drawing) -> Self {
        let label = |row: &Row| row.depth as f64 * INDENT + width(&row.label);
        let widest = picture.rows.iter().map(label).fold(0.0, f64::max);
        let row = match picture.rows.len() {
            0..=60 => 22.0,
            61..=400 => 18.0,
            // Some viewers cannot draw more than 32767 pixels.
            _ => 16.0,
        };
        Self {
            left: MARGIN + widest.clamp(*LABELS.start(), *LABELS.end()) + MARGIN,
            row,
            bottom: TOP + picture.rows.len() as f64 * row,
            seconds: picture.now.as_secs_f64().max(1e-3),
        }
    }

    fn at(&self, time: Duration) -> f64 {
        self.left + time.as_secs_f64().min(self.seconds) / self.seconds * WIDTH
    }
}

/// Draws a picture.
pub fn svg(title: &str, picture: Drawing) -> String {
    let layout = Layout::of(&picture);
    let height = layout.bottom + if picture.left_out > 0 { 2.0 } else { 1.0 } * MARGIN;
    let (width, title) = (layout.left + WIDTH + 2.0 * MARGIN, escaped(title));
    let (left, row, seconds) = (layout.left, layout.row, layout.seconds);
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"timeline\" role=\"img\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" \
         data-left=\"{left}\" data-width=\"{WIDTH}\" data-row=\"{row}\" data-top=\"{TOP}\" \
         data-seconds=\"{seconds}\">\n<title>{title}</title>\n<desc>A row for the script, each branch, \
         each stage and each try, with their attempts, delays and commands from left to right.</desc>\n\
         <style>\n{STYLE}</style>\n<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" \
         patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><line class=\"hatch\" x1=\"3\" \
         x2=\"3\" y1=\"0\" y2=\"6\"/></pattern><pattern id=\"failed\" width=\"5\" height=\"5\" \
         patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(-45)\"><rect class=\"red\" width=\"5\" \
         height=\"5\"/><line class=\"stripe\" x1=\"2.5\" x2=\"2.5\" y1=\"0\" y2=\"5\"/></pattern></defs>\n<rect class=\"paper\" width=\"100%\" \
         height=\"100%\"/>\n<text class=\"title\" x=\"{MARGIN}\" y=\"{TITLE}\">{title}</text>"
    );
    legend(&mut out, &picture, width - MARGIN);
    axis(&mut out, &layout, picture.now);
    out.push_str("<g class=\"rows\">\n");
    let is_full = picture.rows.iter().map(|row| row.bars.len()).sum::<usize>() > MAX_BARS;
    let least = if is_full { Duration::from_secs_f64(seconds / WIDTH) } else { Duration::ZERO };
    // Limits of the enclosing rows, with the first row outside each.
    let mut limits: Vec<(usize, Duration)> = Vec::new();
    for (index, mut row) in picture.rows.into_iter().enumerate() {
        limits.retain(|(end, _)| *end > index);
        limits.extend(row.limits.iter().map(|limit| (index + row.inner + 1, *limit)));
        row.bars = thin(row.bars, least);
        draw_row(&mut out, &layout, index, &row, &limits);
    }
    out.push_str("</g>\n");
    gaps(&mut out, &layout, &picture.gaps);
    if picture.left_out > 0 {
        let _ = writeln!(
            out,
            "<text class=\"more\" x=\"{MARGIN}\" y=\"{:.0}\">and {} more rows, too many to draw</text>",
            height - MARGIN,
            picture.left_out
        );
    }
    out.push_str("</svg>\n");
    out
}

/// Draws the legend of the colors in use, ending at `right`.
fn legend(out: &mut String, picture: &Drawing, right: f64) {
    let bars = || picture.rows.iter().flat_map(|row| &row.bars);
    let ends: BTreeSet<SpanEnd> =
        bars().filter(|bar| bar.kind != BarKind::Delay).map(|bar| bar.end).collect();
    let mut entries: Vec<(&str, &str)> = LEGEND
        .into_iter()
        .filter(|(end, _)| ends.contains(end))
        .map(|(end, text)| (class(end), text))
        .collect();
    if bars().any(|bar| bar.kind == BarKind::Delay) {
        entries.push(("delay", "delay"));
    }
    if picture.rows.iter().any(|row| !row.limits.is_empty()) {
        entries.push(("limit", "limit"));
    }
    let needs = |text: &str| 16.0 + width(text) + 10.0;
    let mut x = right - entries.iter().map(|(_, text)| needs(text)).sum::<f64>();
    out.push_str("<g class=\"legend\">");
    for (class, text) in entries {
        let y = TITLE - 10.0;
        let _ = match class {
            "limit" => write!(
                out,
                "<line class=\"limit\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{y}\" y2=\"{1}\"/>",
                x + 8.0,
                y + 11.0
            ),
            "delay" => write!(
                out,
                "<rect class=\"delay\" x=\"{x:.1}\" y=\"{}\" width=\"11\" height=\"3\"/>",
                y + 4.0
            ),
            _ => write!(
                out,
                "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y}\" width=\"11\" height=\"11\" rx=\"1.5\"/>"
            ),
        };
        let _ = write!(out, "<text x=\"{:.1}\" y=\"{TITLE}\">{text}</text>", x + 16.0);
        x += needs(text);
    }
    out.push_str("</g>\n");
}

/// Draws the times with a line for each.
fn axis(out: &mut String, layout: &Layout, now: Duration) {
    out.push_str("<g class=\"axis\">\n");
    for time in axis::times(now, MAX_TIMES) {
        let (x, bottom) = (layout.at(time), layout.bottom);
        let _ = writeln!(
            out,
            "<g class=\"tick\"><line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{}\" y2=\"{bottom}\"/><text \
             x=\"{x:.1}\" y=\"{TIMES}\" text-anchor=\"middle\">{}</text></g>",
            TOP - 4.0,
            axis::words(time, now)
        );
    }
    out.push_str("</g>\n");
}

fn draw_row(
    out: &mut String,
    layout: &Layout,
    index: usize,
    row: &Row,
    limits: &[(usize, Duration)],
) {
    let height = layout.row;
    let y = TOP + index as f64 * height;
    let _ = writeln!(
        out,
        "<g class=\"row\" data-depth=\"{}\" data-inner=\"{}\" transform=\"translate(0 {y})\">",
        row.depth, row.inner
    );
    if index % 2 == 1 {
        let _ = writeln!(out, "<rect class=\"band\" width=\"100%\" height=\"{height}\"/>");
    }
    if row.depth > 0 {
        let mut path = String::new();
        for level in 0..row.depth {
            let _ = write!(path, "M{} 0v{height}", MARGIN + level as f64 * INDENT + 4.5);
        }
        let _ = writeln!(out, "<path class=\"guide\" d=\"{path}\"/>");
    }
    let x = MARGIN + row.depth as f64 * INDENT;
    let class = if row.label.starts_with("try, ") { "label try" } else { "label" };
    let label = escaped(&shortened(&row.label, layout.left - MARGIN / 2.0 - x));
    let _ = writeln!(
        out,
        "<text class=\"{class}\" x=\"{x}\" y=\"{}\">{label}<title>{}</title></text>",
        height / 2.0 + 4.0,
        escaped(&row.label)
    );
    for bar in &row.bars {
        draw_bar(out, layout, bar);
    }
    for (_, limit) in limits {
        let x = layout.at(*limit);
        let _ = writeln!(
            out,
            "<line class=\"limit\" data-at=\"{:.6}\" x1=\"{x:.2}\" x2=\"{x:.2}\" y1=\"0\" y2=\"{height}\">\
             <title>the limit, {} after the start</title></line>",
            limit.as_secs_f64(),
            Human(*limit)
        );
    }
    out.push_str("</g>\n");
}

fn draw_bar(out: &mut String, layout: &Layout, bar: &Bar) {
    // Inner bars are lower than outer bars.
    let (inset, kind) = match bar.kind {
        BarKind::Task => (0.08, "task"),
        BarKind::Attempt => (0.14, "attempt"),
        BarKind::Delay => (0.43, "delay"),
        BarKind::Call => (0.2, "call"),
        BarKind::Command => (0.28, "command"),
    };
    let end = if bar.kind == BarKind::Delay { "" } else { class(bar.end) };
    let space = if end.is_empty() { "" } else { " " };
    let (from, to, height) = (layout.at(bar.from), layout.at(bar.to), layout.row);
    let _ = writeln!(
        out,
        "<rect class=\"{kind}{space}{end}\" data-from=\"{:.6}\" data-to=\"{:.6}\" x=\"{from:.2}\" \
         y=\"{:.1}\" width=\"{:.2}\" height=\"{:.1}\" rx=\"1\"><title>{}</title></rect>",
        bar.from.as_secs_f64(),
        bar.to.as_secs_f64(),
        height * inset,
        (to - from - 0.5).max(0.8),
        height * (1.0 - 2.0 * inset),
        escaped(&bar.text)
    );
}

/// Draws the times without a shell.
fn gaps(out: &mut String, layout: &Layout, gaps: &[Gap]) {
    let (top, bottom) = (MARKS + 4.0, layout.bottom);
    // Position up to which labels are written.
    let mut free = 0.0;
    for gap in gaps {
        let from = layout.at(gap.from);
        if let Some(resumed) = gap.to {
            let to = layout.at(resumed);
            let _ = writeln!(
                out,
                "<rect class=\"gap\" data-from=\"{:.6}\" data-to=\"{:.6}\" x=\"{from:.2}\" y=\"{TOP}\" \
                 width=\"{:.2}\" height=\"{:.0}\" fill=\"url(#hatch)\"><title>no shell ran for \
                 {}</title></rect>",
                gap.from.as_secs_f64(),
                resumed.as_secs_f64(),
                (to - from).max(0.8),
                bottom - TOP,
                Human(resumed.saturating_sub(gap.from))
            );
        }
        let ends = [(Some(gap.from), "ended", &gap.ended), (gap.to, "resumed", &gap.resumed)];
        for (at, word, text) in ends {
            let Some(at) = at else { continue };
            let x = layout.at(at);
            let room = width(word) + 8.0;
            // Labels stand left of the first mark and right of the second one.
            let (anchor, begins) = match word {
                "ended" => ("end", x - room),
                _ => ("start", x),
            };
            let label = if begins >= free { word } else { "" };
            if !label.is_empty() {
                free = begins + room;
            }
            let _ = writeln!(
                out,
                "<g class=\"mark\" data-at=\"{:.6}\" transform=\"translate({x:.2} 0)\"><line y1=\"{top}\" \
                 y2=\"{bottom}\"/><text x=\"{}\" y=\"{MARKS}\" text-anchor=\"{anchor}\">{label}</text>\
                 <title>{}, {} after the start</title></g>",
                at.as_secs_f64(),
                if anchor == "end" { -4 } else { 4 },
                escaped(text),
                Human(at)
            );
        }
    }
}

pub(super) fn class(end: SpanEnd) -> &'static str {
    match end {
        SpanEnd::Succeeded => "succeeded",
        SpanEnd::Failed => "failed",
        SpanEnd::Canceled => "canceled",
        SpanEnd::Unknown => "unknown",
        SpanEnd::Lost => "lost",
    }
}
