//! Drawing with plotters.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::error::Error;

use plotters::coord::ranged1d::Ranged;
use plotters::prelude::*;

use super::{Panel, Picture, SeriesStyle};

/// Pixels per unit of length, for smooth lines.
pub(super) const FINE: i32 = 2;
/// Width of a picture.
pub(super) const WIDTH: i32 = 900 * FINE;
const PANEL: i32 = 330 * FINE;
/// Height of a panel among many.
const SMALL_PANEL: i32 = 230 * FINE;
const TITLE: i32 = 36 * FINE;
/// Height of a line in small letters.
const SMALL_LINE: i32 = 14 * FINE;
const LEGEND: i32 = 190 * FINE;
/// Distance below which a line hides another, as a part of the height.
const NEAR: f64 = 0.006;
/// Name of the font.
pub(super) const FONT: &str = "sans-serif";

/// Colors that people with any color vision can distinguish: Okabe and Ito, *Color universal
/// design*, 2008.
const COLORS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(40, 40, 40),
    RGBColor(150, 150, 60),
];

/// Returns the style of text with a size in pixels.
fn font(size: i32) -> TextStyle<'static> {
    (FONT, size * FINE).into_font().color(&RGBColor(40, 40, 40))
}

/// Returns the height of a picture.
pub(super) fn height(picture: &Picture) -> i32 {
    let panel = if picture.panels.len() > 4 { SMALL_PANEL } else { PANEL };
    title_height(picture) + panel * picture.panels.len() as i32
}

fn title_height(picture: &Picture) -> i32 {
    TITLE + SMALL_LINE * small_lines(picture).len() as i32
}

/// Returns the lines below the first line of the title.
fn small_lines(picture: &Picture) -> Vec<Cow<'_, str>> {
    let below = picture.title.split_once('\n').map_or("", |(_, below)| below);
    below.lines().flat_map(|line| textwrap::wrap(line, 130)).collect()
}

type Drawn = std::result::Result<(), Box<dyn Error>>;

/// Draws a picture as SVG into `text`.
pub(super) fn draw(picture: &Picture, text: &mut String, height: i32) -> Drawn {
    let root = SVGBackend::with_string(text, (WIDTH as u32, height as u32)).into_drawing_area();
    root.fill(&WHITE)?;
    let (title, panels) = root.split_vertically(title_height(picture));
    let first = picture.title.lines().next().unwrap_or_default();
    title.draw(&Text::new(first, (16 * FINE, 12 * FINE), font(17)))?;
    for (at, line) in small_lines(picture).into_iter().enumerate() {
        let place = (16 * FINE, TITLE + SMALL_LINE * at as i32);
        title.draw(&Text::new(line, place, font(11)))?;
    }
    for (panel, area) in
        picture.panels.iter().zip(panels.split_evenly((picture.panels.len().max(1), 1)))
    {
        let has_legend = panel.series.iter().any(|series| !series.name.is_empty());
        let (chart, legend) = area.split_horizontally(WIDTH - if has_legend { LEGEND } else { 0 });
        draw_panel(panel, &chart)?;
        draw_legend(panel, &legend)?;
    }
    root.present()?;
    Ok(())
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn draw_panel(panel: &Panel, area: &Area) -> Drawn {
    let points = || panel.series.iter().flat_map(|series| &series.points);
    let (x, y) = (panel.x.scale(points().map(|it| it.0)), panel.y.scale(points().map(|it| it.1)));
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, font(14))
        .margin(10 * FINE)
        .x_label_area_size(42 * FINE)
        .y_label_area_size(66 * FINE)
        .build_cartesian_2d(x.clone(), y.clone())?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(225, 225, 225).stroke_width(FINE as u32))
        .axis_style(RGBColor(90, 90, 90).stroke_width(FINE as u32))
        .label_style(font(12))
        .axis_desc_style(font(13))
        .set_all_tick_mark_size(4 * FINE)
        .x_desc(&panel.x.label)
        .y_desc(&panel.y.label)
        .draw()?;
    let lines: Vec<Vec<_>> = panel
        .series
        .iter()
        .map(|series| {
            let points = series.points.iter();
            points.filter_map(|point| Some((x.place(point.0)?, y.place(point.1)?))).collect()
        })
        .collect();
    // Many lines need less room each, so that they leave labels of axes free.
    let step = if panel.series.len() > 4 { 2 } else { 4 };
    let near = NEAR * (y.range().end - y.range().start);
    for (at, (series, places)) in panel.series.iter().zip(&lines).enumerate() {
        let color = COLORS[series.color % COLORS.len()];
        let line = color.stroke_width(2 * FINE as u32);
        // Later lines are drawn above. Where lines of other colors hide this line, this line is wider.
        let hides = |above: &[(f64, f64)], place: &(f64, f64)| {
            let same = above.binary_search_by(|it| it.0.total_cmp(&place.0));
            same.is_ok_and(|same| (above[same].1 - place.1).abs() < near)
        };
        let hiding = |place: &(f64, f64)| {
            let above = panel.series.iter().zip(&lines).skip(at + 1);
            let hiding = above.filter(|it| it.0.color != series.color && hides(it.1, place));
            hiding.map(|it| it.0.color).collect::<BTreeSet<_>>().len()
        };
        for part in places.chunk_by(|one, next| hiding(one) == hiding(next)) {
            let width = (2 + step * hiding(&part[0]) as u32) * FINE as u32;
            if width > line.stroke_width && part.len() > 1 {
                let wide = color.stroke_width(width);
                chart.draw_series(LineSeries::new(part.iter().copied(), wide))?;
            }
        }
        let places = || places.iter().copied();
        let dots = |size: i32, opacity: f64| {
            places().map(move |at| Circle::new(at, size, color.mix(opacity).filled()))
        };
        match series.style {
            SeriesStyle::Line => drop(chart.draw_series(LineSeries::new(places(), line))?),
            SeriesStyle::Dashes => {
                let dashes =
                    DashedLineSeries::new(places(), 6 * FINE as u32, 4 * FINE as u32, line);
                chart.draw_series(dashes)?;
            }
            SeriesStyle::LineAndDots => {
                chart.draw_series(dots(3 * FINE, 1.0))?;
                chart.draw_series(LineSeries::new(places(), line))?;
            }
            SeriesStyle::Dots => drop(chart.draw_series(dots(FINE, 0.5))?),
            SeriesStyle::Sticks => {
                let foot = y.range().start;
                let stick = |at: (f64, f64)| PathElement::new(vec![(at.0, foot), at], line);
                chart.draw_series(places().map(stick))?;
            }
        }
    }
    Ok(())
}

fn draw_legend(panel: &Panel, area: &Area) -> Drawn {
    let mut y = 38 * FINE;
    for series in panel.series.iter().filter(|series| !series.name.is_empty()) {
        let color = COLORS[series.color % COLORS.len()];
        let line = |from: i32, to: i32| {
            PathElement::new(
                vec![(from * FINE, y), (to * FINE, y)],
                color.stroke_width(2 * FINE as u32),
            )
        };
        match series.style {
            SeriesStyle::Line | SeriesStyle::Sticks => area.draw(&line(0, 22))?,
            SeriesStyle::Dashes => {
                area.draw(&line(0, 8))?;
                area.draw(&line(13, 21))?;
            }
            SeriesStyle::LineAndDots => {
                area.draw(&line(0, 22))?;
                area.draw(&Circle::new((11 * FINE, y), 3 * FINE, color.filled()))?;
            }
            SeriesStyle::Dots => {
                area.draw(&Circle::new((11 * FINE, y), 3 * FINE, color.filled()))?;
            }
        }
        for part in textwrap::wrap(&series.name, 24) {
            area.draw(&Text::new(part.into_owned(), (28 * FINE, y - 7 * FINE), font(12)))?;
            y += 16 * FINE;
        }
        y += 4 * FINE;
    }
    Ok(())
}
