//! Output of a report on standard output and in the file of a picture.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::table::WIDTH;
use super::{CommonOptions, Picture, ReportTable, picture};

/// Results of a scenario.
#[derive(Debug, Default)]
pub struct Report {
    /// Tables, the most important one first.
    pub tables: Vec<ReportTable>,
    /// Remarks on the tables, for people.
    pub notes: Vec<String>,
    /// Picture of the results.
    pub picture: Picture,
}

/// Destinations of a report, opened before the scenario runs.
pub struct ReportOutput<'c> {
    common: &'c CommonOptions,
    plot: Option<Plot>,
}

struct Plot {
    path: PathBuf,
    is_png: bool,
    file: Option<File>,
    /// True if the file is new. A new file is removed if no picture is written.
    is_new: bool,
}

impl<'c> ReportOutput<'c> {
    /// Opens the destinations.
    pub fn open(common: &'c CommonOptions) -> Result<Self> {
        let plot = common.plot.as_deref().map(Plot::open).transpose()?;
        Ok(Self { common, plot })
    }

    /// Writes the picture and returns the text to print.
    pub fn write(mut self, report: &Report) -> Result<String> {
        let tables = self.tables(report)?;
        if let Some(plot) = &mut self.plot {
            plot.write(&report.picture)?;
        }
        if self.common.json {
            return Ok(tables.iter().map(|table| table.json()).collect());
        }
        if self.common.csv {
            return Ok(tables[..tables.len().min(1)]
                .iter()
                .map(|table| table.csv())
                .collect::<Result<String, _>>()?);
        }
        let asked_for = self.common.table.is_some();
        let shown = tables.iter().filter(|table| asked_for || !table.is_long);
        let text = |table: &&ReportTable| if asked_for { table.text() } else { table.brief() };
        let mut parts: Vec<_> = shown.map(text).collect();
        let notes = report.notes.iter().map(|note| textwrap::fill(note, WIDTH) + "\n");
        parts.extend(notes);
        Ok(parts.join("\n"))
    }

    fn tables<'r>(&self, report: &'r Report) -> Result<Vec<&'r ReportTable>> {
        let Some(name) = &self.common.table else { return Ok(report.tables.iter().collect()) };
        let Some(table) = report.tables.iter().find(|table| table.name == name) else {
            let names: Vec<_> = report.tables.iter().map(|table| table.name).collect();
            bail!("no table `{name}`; the tables are {}", names.join(", "));
        };
        Ok(vec![table])
    }
}

impl Plot {
    fn open(path: &Path) -> Result<Self> {
        let is_png = match path.extension().and_then(|it| it.to_str()) {
            Some("png") => true,
            Some("svg") => false,
            _ => bail!("--plot {}: the name must end in .svg or .png", path.display()),
        };
        let is_new = !path.exists();
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = file.with_context(|| format!("can't write {}", path.display()))?;
        Ok(Self { path: path.to_owned(), is_png, file: Some(file), is_new })
    }

    fn write(&mut self, picture: &Picture) -> Result<()> {
        let Some(mut file) = self.file.take() else { return Ok(()) };
        let svg = picture::svg(picture)?;
        let bytes = if self.is_png { picture::png(&svg)? } else { svg.into_bytes() };
        file.set_len(0)
            .and_then(|()| file.write_all(&bytes))
            .with_context(|| format!("can't write {}", self.path.display()))
    }
}

impl Drop for Plot {
    fn drop(&mut self) {
        if self.file.is_some() && self.is_new {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
