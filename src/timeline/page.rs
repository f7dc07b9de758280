//! A page around a picture: one can look closer, and read what there is to be said of each bar.

use super::draw::escaped;

const SCRIPT: &str = include_str!("page.js");

const STYLE: &str = "
body { margin: 0; font: 13px system-ui, sans-serif }
svg { display: block; cursor: grab; touch-action: none }
#told { position: fixed; display: none; max-width: 60ch; padding: 4px 8px; white-space: pre-wrap;
  background: #24292f; color: #fff; border-radius: 4px; pointer-events: none; overflow-wrap: anywhere }
";

/// A page that needs nothing else. `svg` is what [`super::svg`] drew.
pub fn html(title: &str, svg: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n{svg}<div id=\"told\"></div>\n\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        escaped(title)
    )
}
