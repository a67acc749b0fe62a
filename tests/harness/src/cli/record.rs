//! `palisade-replay record`

use std::collections::BTreeSet;
use std::io::{IsTerminal as _, stdin};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::RecvTimeoutError;
use std::thread;
use std::time::{Duration, Instant};

use harness::record::{Appears, Counts, Message, Recorder, listen};
use recording::mask::{Mask, Secrets};
use recording::{BadEntry, Entry, Format, Options, Recording};
use serde_json::json;

use super::supervised;

/// How often a recording that goes on is written to its file.
const FLUSH: Duration = Duration::from_secs(1);
/// How often a terminal shows how far it is.
const SHOW: Duration = Duration::from_millis(200);

/// Its arguments.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("source").required(true).args(["listen", "from"]))]
pub(crate) struct Record {
    /// Take TCP connections that bring traces of Envoy's tap filter (JSON) or access log lines, until Ctrl-C
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// Files and folders of any recording; `-` for standard input
    #[arg(long, num_args = 1.., value_name = "PATH")]
    from: Vec<PathBuf>,
    /// The recording: JSON lines, compressed if it ends in .gz
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// Replace the file if there is one
    #[arg(long)]
    force: bool,
    /// The format of what comes; found by its content otherwise (har, tap-json, tap-pb, tap-pb-delimited, http, jsonl)
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Mask this header as well; authorization, proxy-authorization, cookie, set-cookie and x-api-key are masked always
    #[arg(long, value_name = "NAME")]
    mask_header: Vec<String>,
    /// Mask this parameter of queries
    #[arg(long, value_name = "NAME")]
    mask_query: Vec<String>,
    /// Mask this field of forms
    #[arg(long, value_name = "NAME")]
    mask_form: Vec<String>,
    /// Mask the value of this key in JSON bodies
    #[arg(long, value_name = "KEY")]
    mask_json: Vec<String>,
    /// Mask nothing: whoever reads the file can act in the name of everybody in it
    #[arg(long, conflicts_with_all = ["mask_header", "mask_query", "mask_form", "mask_json"])]
    keep_secrets: bool,
}

/// Whether anything was recorded, and all of it could be read.
pub(crate) fn record(arguments: &Record) -> Result<bool, String> {
    let mask = match arguments.keep_secrets {
        true => None,
        false => Some(Mask::new(arguments.secrets()).map_err(|error| format!("random numbers for the mask: {error}"))?),
    };
    let options = Options { format: arguments.format, ..Options::default() };
    let mut run = Run {
        // The source first: a path that is not there leaves no empty file behind.
        source: arguments.source(&options)?,
        recorder: Recorder::create(&arguments.to, arguments.force, arguments.appears(), mask)?,
        shown: Instant::now(),
        terminal: std::io::stderr().is_terminal(),
        times: Times::default(),
    };
    let failed = |error: std::io::Error| format!("{}: {error}", arguments.to.display());
    run.all().map_err(failed)?;
    let Counts { recorded, bad } = run.recorder.counts();
    if (bad > 0 || recorded == 0) && arguments.replaces_its_source() {
        return Err(format!(
            "{}: {recorded} requests could be read and {bad} could not, so the file stays as it was; --to another file leaves them out",
            arguments.to.display()
        ));
    }
    let counts = run.recorder.finish().map_err(failed)?;
    let masked = if arguments.keep_secrets { "secrets are in it" } else { "secrets are masked" };
    let Times { first, last, unrouted } = run.times;
    supervised::tell(&json!({
        "recorded": counts.recorded, "bad": counts.bad, "first": first, "last": last, "unrouted": unrouted,
    }));
    eprintln!("{}: {} requests, {masked}; {} could not be read", arguments.to.display(), counts.recorded, counts.bad);
    Ok(counts.recorded > 0 && counts.bad == 0)
}

enum Source {
    Files(Box<Recording>),
    Streams(harness::record::Listener),
}

struct Run {
    source: Source,
    recorder: Recorder,
    shown: Instant,
    terminal: bool,
    times: Times,
}

/// What the entries say of when and where they came.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    /// The first time of all, in milliseconds since the Unix epoch.
    first: Option<u64>,
    /// The last one.
    last: Option<u64>,
    /// Entries without a route.
    unrouted: u64,
}

impl Times {
    fn note(&mut self, entry: &Entry) {
        if let Some(at) = entry.at_millis {
            self.first = Some(self.first.map_or(at, |first| first.min(at)));
            self.last = Some(self.last.map_or(at, |last| last.max(at)));
        }
        self.unrouted += u64::from(entry.exchange.request.route.is_empty());
    }
}

impl Record {
    fn secrets(&self) -> Secrets {
        let with = |known: BTreeSet<String>, more: &[String]| known.into_iter().chain(more.iter().cloned()).collect();
        let Secrets { headers, query, form, json } = Secrets::default();
        Secrets {
            headers: with(headers, &self.mask_header),
            query: with(query, &self.mask_query),
            form: with(form, &self.mask_form),
            json: with(json, &self.mask_json),
        }
    }

    /// What is recorded goes on until someone ends it, and can be read meanwhile; what is converted may be the file that is
    /// replaced.
    fn appears(&self) -> Appears {
        if self.listen.is_some() { Appears::AtOnce } else { Appears::Whole }
    }

    /// Whether the file that is written is one of those that are read.
    fn replaces_its_source(&self) -> bool {
        let target = self.to.canonicalize();
        let is_in =
            |from: &PathBuf| target.as_ref().is_ok_and(|to| from.canonicalize().is_ok_and(|from| to.starts_with(from)));
        self.from.iter().any(is_in)
    }

    fn source(&self, options: &Options) -> Result<Source, String> {
        let Some(address) = self.listen else {
            return match self.from.as_slice() {
                [only] if only == Path::new("-") => {
                    Ok(Source::Files(Box::new(Recording::of("standard input", stdin(), options))))
                }
                paths => recording::open(paths, options)
                    .map(|recording| Source::Files(Box::new(recording)))
                    .map_err(|error| error.to_string()),
            };
        };
        let listener = listen(address, options).map_err(|error| format!("{address}: {error}"))?;
        let stop = listener.stopper();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let stopped = runtime.map(|runtime| runtime.block_on(interrupted()));
            if let Ok(Err(error)) | Err(error) = stopped {
                eprintln!("palisade-replay: Ctrl-C cannot be waited for: {error}");
            }
            stop();
        });
        eprintln!("listening on {}; Ctrl-C ends the recording", listener.address());
        Ok(Source::Streams(listener))
    }
}

/// Waits until a person or a service manager wants an end.
async fn interrupted() -> std::io::Result<()> {
    let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        pressed = tokio::signal::ctrl_c() => pressed,
        _ = terminated.recv() => Ok(()),
    }
}

impl Run {
    fn all(&mut self) -> std::io::Result<()> {
        if let Source::Files(recording) = &mut self.source {
            for entry in recording.by_ref() {
                if let Ok(entry) = &entry {
                    self.times.note(entry);
                }
                take(&mut self.recorder, &mut self.shown, self.terminal, entry)?;
            }
        }
        let Source::Streams(listener) = &self.source else { return self.clear() };
        loop {
            match listener.messages().recv_timeout(FLUSH) {
                Ok(Message::Entry(entry)) => take(&mut self.recorder, &mut self.shown, self.terminal, *entry)?,
                Ok(Message::Closed(_)) | Err(RecvTimeoutError::Timeout) => self.recorder.flush()?,
                Ok(Message::Refused(why)) => eprintln!("{why}"),
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        // What came before the end counts.
        while let Ok(message) = listener.messages().try_recv() {
            if let Message::Entry(entry) = message {
                take(&mut self.recorder, &mut self.shown, self.terminal, *entry)?;
            }
        }
        self.clear()
    }

    fn clear(&self) -> std::io::Result<()> {
        if self.terminal {
            eprint!("\r\x1b[K");
        }
        Ok(())
    }
}

fn take(
    recorder: &mut Recorder,
    shown: &mut Instant,
    terminal: bool,
    entry: Result<Entry, BadEntry>,
) -> std::io::Result<()> {
    if let Some(bad) = recorder.take(entry)? {
        eprintln!("{bad}");
    }
    if terminal && shown.elapsed() >= SHOW {
        *shown = Instant::now();
        eprint!("\r{} requests recorded ", recorder.counts().recorded);
    }
    Ok(())
}
