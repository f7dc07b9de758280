//! Drawing with plotters.

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
const LEGEND: i32 = 190 * FINE;
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
    TITLE + panel * picture.panels.len() as i32
}

type Drawn = std::result::Result<(), Box<dyn Error>>;

/// Draws a picture as SVG into `text`.
pub(super) fn draw(picture: &Picture, text: &mut String, height: i32) -> Drawn {
    let root = SVGBackend::with_string(text, (WIDTH as u32, height as u32)).into_drawing_area();
    root.fill(&WHITE)?;
    let (title, panels) = root.split_vertically(TITLE);
    let place = (16 * FINE, 12 * FINE);
    title.draw(&Text::new(picture.title.clone(), place, font(17)))?;
    for (panel, area) in
        picture.panels.iter().zip(panels.split_evenly((picture.panels.len().max(1), 1)))
    {
        let (chart, legend) = area.split_horizontally(WIDTH - LEGEND);
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
    for series in &panel.series {
        let color = COLORS[series.color % COLORS.len()];
        let line = color.stroke_width(2 * FINE as u32);
        let places: Vec<_> = series
            .points
            .iter()
            .filter_map(|point| Some((x.place(point.0)?, y.place(point.1)?)))
            .collect();
        let dots = |size: i32, opacity: f64| {
            places.iter().map(move |at| Circle::new(*at, size, color.mix(opacity).filled()))
        };
        match series.style {
            SeriesStyle::Line => drop(chart.draw_series(LineSeries::new(places, line))?),
            SeriesStyle::Dashes => {
                let dashes = DashedLineSeries::new(places, 6 * FINE as u32, 4 * FINE as u32, line);
                chart.draw_series(dashes)?;
            }
            SeriesStyle::LineAndDots => {
                chart.draw_series(dots(3 * FINE, 1.0))?;
                chart.draw_series(LineSeries::new(places, line))?;
            }
            SeriesStyle::Dots => drop(chart.draw_series(dots(FINE, 0.5))?),
            SeriesStyle::Sticks => {
                let foot = y.range().start;
                let stick = |at: &(f64, f64)| PathElement::new(vec![(at.0, foot), *at], line);
                chart.draw_series(places.iter().map(stick))?;
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
