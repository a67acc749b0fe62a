//! A real browser: a headless Chromium, told what to do over the HTTP part of its debugging interface.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::http::{Request, Response, percent};
use crate::process::{Process, wait_for};

/// A browser to come up, on a machine where others compile.
const START: Duration = Duration::from_secs(60);

/// A running Chromium with a profile of its own. Dropping it kills it.
#[derive(Debug)]
pub struct Browser {
    process: Process,
    debugging: SocketAddr,
    _folder: TempDir,
}

/// What a tab shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tab {
    /// Its id, for [`Browser::close`].
    pub id: String,
    /// The URL in its address bar.
    pub url: String,
    /// The page's title.
    pub title: String,
}

impl Browser {
    /// The program: `PALISADE_CHROMIUM`, or `chromium` where there is one.
    #[must_use]
    pub fn program() -> Option<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let installed =
            || std::env::split_paths(&path).map(|folder| folder.join("chromium")).find(|file| file.is_file());
        std::env::var_os("PALISADE_CHROMIUM").map(PathBuf::from).or_else(installed)
    }

    /// Starts one with an empty tab, and with further arguments.
    ///
    /// # Errors
    ///
    /// When it does not come up; with its output.
    pub fn start(program: &Path, more: &[&str]) -> Result<Self, String> {
        let folder = tempfile::Builder::new()
            .prefix("palisade-chromium-")
            .tempdir()
            .map_err(|error| format!("no temporary folder: {error}"))?;
        let profile = folder.path().join("profile");
        let mut arguments: Vec<String> =
            ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-port=0"]
                .map(String::from)
                .into();
        arguments.push(format!("--user-data-dir={}", profile.display()));
        arguments.extend(more.iter().map(|one| (*one).to_owned()));
        arguments.push("about:blank".to_owned());
        let log = folder.path().join("chromium.log");
        let mut process = Process::start("chromium", program, &arguments, &log).map_err(|error| error.to_string())?;
        let port = wait_for("Chromium's debugging port", START, || {
            if process.ended().is_some() {
                return Some(None);
            }
            let written = std::fs::read_to_string(profile.join("DevToolsActivePort")).ok()?;
            Some(Some(written.lines().next()?.parse::<u16>().ok()?))
        })
        .and_then(|port| port.ok_or_else(|| "Chromium ended at its start".to_owned()))
        .map_err(|why| format!("{why}\n{}", process.log_tail(40)))?;
        Ok(Self { process, debugging: SocketAddr::from(([127, 0, 0, 1], port)), _folder: folder })
    }

    /// Opens a URL in a new tab, and returns the tab's id without waiting for the page.
    ///
    /// # Errors
    ///
    /// When the browser does not answer or opens none; with what it says.
    pub fn open(&self, url: &str) -> Result<String, String> {
        let answer = self.ask("PUT", &format!("/json/new?{}", percent(url)))?;
        let tab: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        tab["id"].as_str().map(str::to_owned).ok_or_else(|| format!("no tab for {url}: {}", answer.text()))
    }

    /// The tabs that are open.
    ///
    /// # Errors
    ///
    /// When the browser does not answer.
    pub fn tabs(&self) -> Result<Vec<Tab>, String> {
        let answer = self.ask("GET", "/json/list")?;
        let all: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let text = |tab: &Value, name: &str| tab[name].as_str().unwrap_or_default().to_owned();
        let pages = all.as_array().into_iter().flatten().filter(|tab| tab["type"] == "page");
        Ok(pages.map(|tab| Tab { id: text(tab, "id"), url: text(tab, "url"), title: text(tab, "title") }).collect())
    }

    /// Closes a tab.
    ///
    /// # Errors
    ///
    /// When the browser does not answer.
    pub fn close(&self, tab: &str) -> Result<(), String> {
        self.ask("GET", &format!("/json/close/{tab}")).map(|_| ())
    }

    /// The last lines of its output.
    #[must_use]
    pub fn log_tail(&self, lines: usize) -> String {
        self.process.log_tail(lines)
    }

    fn ask(&self, method: &str, path: &str) -> Result<Response, String> {
        // It answers nobody who calls it by another name.
        let request = Request::new(method, path).header("host", self.debugging.to_string());
        request
            .send(self.debugging)
            .map_err(|error| format!("Chromium does not answer: {error}\n{}", self.log_tail(20)))
    }
}
