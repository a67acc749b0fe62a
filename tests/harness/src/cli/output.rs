//! Where a report goes, and in which form.

use std::fs::File;
use std::io::{IsTerminal as _, Write, stdout};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use report::About;
use report::sink::{FailOn, Html, Json, Junit, Screen, Sink, Table};

/// The columns of what is no terminal, or does not say.
const COLUMNS: usize = 120;

/// A report.
#[derive(Debug, clap::Args)]
pub(super) struct Output {
    /// What is written
    #[arg(long, default_value = "table")]
    format: Format,
    /// Where it is written; standard output without
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// The forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Totals and the first requests, for people
    Table,
    /// One document with a row for each request; `diff` reads it
    Json,
    /// A test case for each request, for pipelines
    Junit,
    /// A page with plots, in one file
    Html,
}

impl Output {
    pub(super) fn format(&self) -> Format {
        self.format
    }

    pub(super) fn path(&self) -> Option<&Path> {
        self.out.as_deref()
    }

    /// Opens it.
    pub(super) fn writer(&self) -> Result<Box<dyn Write>, String> {
        match &self.out {
            None => Ok(Box::new(stdout())),
            Some(path) => Ok(Box::new(File::create(path).map_err(|error| format!("{}: {error}", path.display()))?)),
        }
    }

    /// How wide and how colourful it may be.
    pub(super) fn screen(&self) -> Screen {
        let terminal = self.out.is_none() && stdout().is_terminal();
        let columns = || rustix::termios::tcgetwinsize(stdout()).ok().map(|size| usize::from(size.ws_col));
        let width = terminal.then(columns).flatten().filter(|columns| *columns > 0).unwrap_or(COLUMNS);
        // https://no-color.org
        let colour = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Screen { width, colour, terminal, ..Screen::plain(width) }
    }

    /// What takes the rows of a replay.
    pub(super) fn sink(&self, about: &About, fail_on: FailOn) -> Result<Box<dyn Sink>, String> {
        let out = self.writer()?;
        Ok(match self.format {
            Format::Table => Box::new(Table::new(out, self.screen())),
            Format::Json => Box::new(Json::new(out, about).map_err(|error| format!("the report: {error}"))?),
            Format::Junit => Box::new(Junit::new(out, fail_on)),
            Format::Html => Box::new(Html::new(out)),
        })
    }
}
