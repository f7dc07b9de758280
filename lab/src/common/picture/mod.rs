//! Pictures of results: panels below one another, each with its legend.

mod axis;
mod draw;

use std::sync::Arc;

use anyhow::{Result, anyhow};
use plotters::style::{FontStyle, register_font};
use resvg::{tiny_skia, usvg};

pub use self::axis::Axis;
use self::draw::{FINE, FONT, WIDTH, draw, height};

/// Panels below one another. A picture without panels is not drawn.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    /// Title above all panels, with further lines in small letters.
    pub title: String,
    /// The panels.
    pub panels: Vec<Panel>,
}

/// A system of coordinates.
#[derive(Clone, Debug, Default)]
pub struct Panel {
    /// Title above the panel.
    pub title: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Content of the panel.
    pub series: Vec<PlotSeries>,
}

/// Points that belong together.
#[derive(Clone, Debug)]
pub struct PlotSeries {
    /// Name in the legend; no entry if empty.
    pub name: String,
    /// The points.
    pub points: Vec<(f64, f64)>,
    /// Style of the points.
    pub style: SeriesStyle,
    /// Number of the color, which is the same in all panels.
    pub color: usize,
}

/// Style of points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesStyle {
    /// A line.
    Line,
    /// A dashed line.
    Dashes,
    /// A line with a dot at each point.
    LineAndDots,
    /// Dots.
    Dots,
    /// Vertical lines from the lower end of the axis to each point.
    Sticks,
}

/// Renders a picture as SVG.
pub fn svg(picture: &Picture) -> Result<String> {
    // Plotters needs fonts to measure text.
    let known = register_font(FONT, FontStyle::Normal, dejavu::sans::regular());
    known.map_err(|_| anyhow!("the font can't be read"))?;
    let height = height(picture);
    let mut text = String::new();
    draw(picture, &mut text, height).map_err(|error| anyhow!("can't draw: {error}"))?;
    let fine = format!("width=\"{WIDTH}\" height=\"{height}\" ");
    let size = format!("width=\"{}\" height=\"{}\" ", WIDTH / FINE, height / FINE);
    Ok(text.replacen(&fine, &size, 1))
}

/// Converts SVG to PNG at twice the size.
pub fn png(svg: &str) -> Result<Vec<u8>> {
    let mut options = usvg::Options::default();
    let fonts = Arc::make_mut(&mut options.fontdb);
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    let tree = usvg::Tree::from_str(svg, &options)?;
    let scale = FINE as f32;
    let size = tree.size();
    let (width, height) = ((size.width() * scale) as u32, (size.height() * scale) as u32);
    let mut pixels =
        tiny_skia::Pixmap::new(width, height).ok_or_else(|| anyhow!("the picture is too large"))?;
    pixels.fill(tiny_skia::Color::WHITE);
    resvg::render(&tree, tiny_skia::Transform::from_scale(scale, scale), &mut pixels.as_mut());
    Ok(pixels.encode_png()?)
}
