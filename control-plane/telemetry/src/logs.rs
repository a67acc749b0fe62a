//! Logs on standard error, whose level can be changed while the process runs.

use std::fmt;
use std::io::IsTerminal as _;
use std::str::FromStr as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::Directive;

use base::clock;

/// What is logged where nothing else is said.
const DEFAULT: &str = "info";
/// The longest filter, in bytes.
const MAX_FILTER: usize = 4096;

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// One JSON object per line.
    Json,
    /// For people.
    #[default]
    Pretty,
}

/// What is logged, and the way to change it. Cheap to clone.
#[derive(Clone)]
pub struct LogControl {
    inner: Arc<Inner>,
}

struct Inner {
    apply: Box<Apply>,
    clock: fn() -> u64,
    state: Mutex<State>,
}

type Apply = dyn Fn(EnvFilter) -> Result<(), String> + Send + Sync;

struct State {
    /// What holds until it is changed.
    standing: String,
    /// What holds for now instead, and until when, in milliseconds since 1970.
    passing: Option<(String, u64)>,
    /// Counts the changes: an end that was planned before the last one is none any more.
    changes: u64,
}

/// The log level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LogLevel {
    /// The current level, such as `info,palisade_xds=debug`.
    pub level: String,
    /// When it ends, as RFC 3339; null if it is permanent.
    pub until: Option<String>,
    /// The level after that; the same as `level` if that is permanent.
    pub standing: String,
}

/// Why a level cannot be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogLevelError {
    /// It cannot be read: where, and what is wrong.
    Filter(String),
    /// This process does not log by these means; with the reason.
    Unavailable(String),
}

/// Starts to log on standard error. `RUST_LOG` says what, `info` where it is not set or cannot be read. Only the first call
/// of a process does so; what later calls return changes nothing.
pub fn init_logs(format: LogFormat) -> LogControl {
    let given = std::env::var(EnvFilter::DEFAULT_ENV).ok().filter(|text| !text.is_empty());
    let read = given.and_then(|text| Some((EnvFilter::try_new(&text).ok()?, text)));
    let (filter, standing) = read.unwrap_or_else(|| (EnvFilter::new(DEFAULT), DEFAULT.to_owned()));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Tests of one process make several.
    let apply: Box<Apply> = match format {
        LogFormat::Json => {
            let logs = logs.json().flatten_event(true).with_filter_reloading();
            let handle = logs.reload_handle();
            match logs.try_init() {
                Ok(()) => Box::new(move |filter| handle.reload(filter).map_err(|error| error.to_string())),
                Err(error) => unavailable(error.to_string()),
            }
        }
        LogFormat::Pretty => {
            let logs = logs.with_ansi(std::io::stderr().is_terminal()).with_filter_reloading();
            let handle = logs.reload_handle();
            match logs.try_init() {
                Ok(()) => Box::new(move |filter| handle.reload(filter).map_err(|error| error.to_string())),
                Err(error) => unavailable(error.to_string()),
            }
        }
    };
    LogControl::new(standing, clock::now_millis, apply)
}

fn unavailable(reason: String) -> Box<Apply> {
    Box::new(move |_| Err(reason.clone()))
}

impl LogControl {
    fn new(standing: String, clock: fn() -> u64, apply: Box<Apply>) -> LogControl {
        let state = Mutex::new(State { standing, passing: None, changes: 0 });
        LogControl { inner: Arc::new(Inner { apply, clock, state }) }
    }

    /// What is logged.
    #[must_use]
    pub fn level(&self) -> LogLevel {
        self.lock().level()
    }

    /// Logs what `filter` says from now on: levels (`trace`, `debug`, `info`, `warn`, `error`, `off`), for everything or as
    /// `TARGET=LEVEL`, with commas in between. With `passing` only for that time, after which what was standing holds again.
    /// Must be called within a tokio runtime.
    ///
    /// # Errors
    ///
    /// [`LogLevelError`]; nothing is changed then.
    pub fn set(&self, filter: &str, passing: Option<Duration>) -> Result<LogLevel, LogLevelError> {
        let (text, parsed) = parse(filter).map_err(LogLevelError::Filter)?;
        let mut state = self.lock();
        (self.inner.apply)(parsed).map_err(LogLevelError::Unavailable)?;
        state.changes += 1;
        match passing {
            None => (state.standing, state.passing) = (text, None),
            Some(time) => {
                let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
                state.passing = Some((text, (self.inner.clock)().saturating_add(millis)));
                let (control, change) = (self.clone(), state.changes);
                tokio::spawn(async move {
                    tokio::time::sleep(time).await;
                    control.end(change);
                });
            }
        }
        Ok(state.level())
    }

    /// The time of a passing level is over, unless something else was set since.
    fn end(&self, change: u64) {
        let mut state = self.lock();
        if state.changes != change {
            return;
        }
        state.passing = None;
        let back = EnvFilter::try_new(&state.standing).map_err(|error| error.to_string());
        let result = back.and_then(|filter| (self.inner.apply)(filter));
        let level = state.standing.clone();
        drop(state);
        match result {
            Ok(()) => tracing::info!(level, "the log level is back to what it was"),
            Err(reason) => tracing::error!(level, reason, "the log level could not be set back"),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn level(&self) -> LogLevel {
        let standing = self.standing.clone();
        match &self.passing {
            Some((level, until)) => LogLevel { level: level.clone(), until: Some(clock::rfc3339(*until)), standing },
            None => LogLevel { level: standing.clone(), until: None, standing },
        }
    }
}

/// A filter and its normal text. Stricter than what `RUST_LOG` takes: there `inof` is the name of a target, which turns off
/// all others.
fn parse(text: &str) -> Result<(String, EnvFilter), String> {
    if text.len() > MAX_FILTER {
        return Err(format!("it is longer than {MAX_FILTER} bytes"));
    }
    let mut parts = Vec::new();
    let mut at = 0;
    for (index, part) in text.split(',').enumerate() {
        let wrong = |what: &str| {
            let shown = part.trim().escape_debug();
            Err(format!("part {} (`{shown}`, from character {}): {what}", index + 1, at + 1))
        };
        let trimmed = part.trim();
        let (target, level) = trimmed.rsplit_once('=').map_or((None, trimmed), |(target, level)| (Some(target), level));
        let known = !level.is_empty() && LevelFilter::from_str(level).is_ok();
        match target {
            _ if trimmed.is_empty() => return wrong("it is empty"),
            None if !known => {
                return wrong("a level is trace, debug, info, warn, error or off; for one target TARGET=LEVEL");
            }
            Some(_) if !known => {
                return wrong("after the `=` a level is expected: trace, debug, info, warn, error or off");
            }
            Some(target) if target.trim().is_empty() => return wrong("there is no target before the `=`"),
            _ => {}
        }
        if let Err(error) = Directive::from_str(trimmed) {
            return wrong(&error.to_string());
        }
        parts.push(trimmed);
        at += part.chars().count() + 1;
    }
    let text = parts.join(",");
    let filter = EnvFilter::try_new(&text).map_err(|error| error.to_string())?;
    Ok((text, filter))
}

impl fmt::Debug for LogControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LogControl").field(&self.level()).finish()
    }
}

impl fmt::Display for LogLevelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Filter(what) => write!(f, "this is not a log level: {what}"),
            Self::Unavailable(why) => write!(f, "the log level cannot be changed in this process: {why}"),
        }
    }
}

impl std::error::Error for LogLevelError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// A control that notes what it applies.
    fn control() -> (LogControl, Arc<Mutex<Vec<String>>>) {
        let applied: Arc<Mutex<Vec<String>>> = Arc::default();
        let noted = applied.clone();
        let apply = move |filter: EnvFilter| {
            noted.lock().unwrap().push(filter.to_string());
            Ok(())
        };
        (LogControl::new("info".to_owned(), || 0, Box::new(apply)), applied)
    }

    #[tokio::test(start_paused = true)]
    async fn a_passing_level_goes_back_by_itself() {
        let (control, applied) = control();
        let level = control.set(" warn , palisade_xds=debug", Some(Duration::from_secs(60))).unwrap();
        let until = Some("1970-01-01T00:01:00.000Z".to_owned());
        assert_eq!(level, LogLevel { level: "warn,palisade_xds=debug".into(), until, standing: "info".into() });
        tokio::time::sleep(Duration::from_secs(59)).await;
        assert_eq!(control.level(), level);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(control.level(), LogLevel { level: "info".into(), until: None, standing: "info".into() });
        assert_eq!(applied.lock().unwrap().last().unwrap(), "info");
        assert_eq!(applied.lock().unwrap().len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_set_later_is_not_undone() {
        let (control, applied) = control();
        control.set("debug", Some(Duration::from_secs(60))).unwrap();
        control.set("trace", Some(Duration::from_secs(600))).unwrap();
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert_eq!(control.level().level, "trace");
        control.set("error", None).unwrap();
        tokio::time::sleep(Duration::from_secs(1000)).await;
        assert_eq!((control.level().level, control.level().until), ("error".to_owned(), None));
        assert_eq!(*applied.lock().unwrap(), ["debug", "trace", "error"]);
    }

    #[tokio::test]
    async fn what_is_no_level_is_refused_with_its_place() {
        let (control, applied) = control();
        for (text, what) in [
            ("", "part 1 (``, from character 1): it is empty"),
            ("inof", "part 1 (`inof`, from character 1): a level is trace"),
            ("info,palisade=", "part 2 (`palisade=`, from character 6): after the `=`"),
            ("info,palisade=loud", "part 2 (`palisade=loud`, from character 6): after the `=`"),
            ("info,=debug", "part 2 (`=debug`, from character 6): there is no target"),
            ("info, ,warn", "part 2 (``, from character 6): it is empty"),
            ("info,a[b{=debug", "part 2 (`a[b{=debug`, from character 6)"),
        ] {
            let error = control.set(text, None).unwrap_err().to_string();
            assert!(error.contains(what), "{text}: {error}");
        }
        assert!(control.set(&"a".repeat(5000), None).unwrap_err().to_string().contains("longer than 4096 bytes"));
        assert!(applied.lock().unwrap().is_empty());
        assert_eq!(control.level().level, "info");
    }
}
