//! Pictures of results: panels below one another, each with its legend beside it.

mod axis;
mod draw;

use std::sync::Arc;

use anyhow::{Result, anyhow};
use plotters::style::{FontStyle, register_font};
use resvg::{tiny_skia, usvg};

pub use self::axis::Axis;
use self::draw::{FINE, FONT, WIDTH, draw, height};

/// Panels below one another. Without panels there is nothing to draw.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    /// Above all panels.
    pub title: String,
    /// At least one, if a picture is wanted.
    pub panels: Vec<Panel>,
}

/// One system of coordinates.
#[derive(Clone, Debug, Default)]
pub struct Panel {
    /// Above it.
    pub title: String,
    /// To the right.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// What is in it.
    pub series: Vec<Series>,
}

/// Points that belong together.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name in the legend; none if empty.
    pub name: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
    /// How they are drawn.
    pub style: Style,
    /// Which of the colours; series of one number have the same in all panels.
    pub color: usize,
}

/// How points are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A line.
    Line,
    /// A line of dashes.
    Dashes,
    /// A line with a dot at each point.
    LineAndDots,
    /// Dots.
    Dots,
    /// A line from the lower end of the axis up to each point.
    Sticks,
}

/// The picture as SVG.
pub fn svg(picture: &Picture) -> Result<String> {
    // Without any, plotters can't tell how wide text is.
    let known = register_font(FONT, FontStyle::Normal, dejavu::sans::regular());
    known.map_err(|_| anyhow!("the font can't be read"))?;
    let height = height(picture);
    let mut text = String::new();
    draw(picture, &mut text, height).map_err(|error| anyhow!("can't draw: {error}"))?;
    let fine = format!("width=\"{WIDTH}\" height=\"{height}\" ");
    let size = format!("width=\"{}\" height=\"{}\" ", WIDTH / FINE, height / FINE);
    Ok(text.replacen(&fine, &size, 1))
}

/// A picture of SVG as PNG, twice as large.
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
