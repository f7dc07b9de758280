//! HTML page around a drawing: zooms, folds rows, and shows the text of each bar.

use super::words::escaped;

const SCRIPT: &str = include_str!("page.js");

const STYLE: &str = include_str!("page.css");

/// Keys and gestures of the page.
const HELP: &str = "Zoom: Ctrl + wheel, or + and −. Move: drag, or ← and →. Show all: double-click, or 0. \
                    Fold: click a name.";

/// Returns a self-contained page around `svg`, which [`super::svg`] drew.
pub fn html(title: &str, svg: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n{svg}<p id=\"help\">{HELP}</p>\n\
         <div id=\"tip\" role=\"status\"></div>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        escaped(title)
    )
}
