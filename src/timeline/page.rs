//! A page around a drawing: one can look closer, fold rows, and read what there is to be said of each bar.

use super::words::escaped;

const SCRIPT: &str = include_str!("page.js");

const STYLE: &str = include_str!("page.css");

/// What a person can do there.
const HELP: &str = "Ctrl and the wheel, or + and −: closer. Drag, or ← and →: to the side. Double click, or 0: \
                    all. Click on a name: fold.";

/// A page that needs nothing else. `svg` is what [`super::svg`] drew.
pub fn html(title: &str, svg: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n{svg}<p id=\"help\">{HELP}</p>\n\
         <div id=\"told\" role=\"status\"></div>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        escaped(title)
    )
}
