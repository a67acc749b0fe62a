//! `palisade report`: the API report, for people and for pipelines.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::Value;

use super::error::CliError;
use super::output::say;
use super::report_text::text;
use super::target::TargetArgs;
use base::clock;

/// Shows the API report.
#[derive(Debug, clap::Args)]
pub(super) struct ReportCommand {
    #[command(flatten)]
    target: TargetArgs,

    /// Only these routes: ids, separated by commas.
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    routes: Vec<String>,

    /// The days without a call after which an operation is a zombie, 1 to 183.
    #[arg(long, value_name = "DAYS", default_value_t = 90)]
    zombie_days: u32,

    /// Print the report as JSON, as the API answers it.
    #[arg(long)]
    json: bool,

    /// Exit with 1 if the report has one of these, separated by commas. A severity is that of the credentials audit, and means it or a
    /// graver one; a shadow is a confirmed one.
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    fail_on: Vec<FailOn>,
}

/// What a pipeline fails on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum FailOn {
    /// A finding of the credentials audit of the severity high.
    High,
    /// One of high or medium.
    Medium,
    /// One of high, medium or low.
    Low,
    /// Any finding of the credentials audit.
    Info,
    /// A path outside of a contract that exists.
    Shadow,
    /// An operation that nobody calls any more.
    Zombie,
    /// A payload that differs from its contract.
    Drift,
    /// The same where the name of the field is of a sensitive kind.
    SensitiveDrift,
    /// A contract that does not compile.
    Broken,
}

impl ReportCommand {
    pub(super) async fn run(self) -> Result<ExitCode, CliError> {
        let ReportCommand { target, routes, zombie_days, json, fail_on } = self;
        let mut path = format!("/_report?zombie_days={zombie_days}");
        if !routes.is_empty() {
            path.push_str("&route_ids=");
            path.push_str(&escaped(&routes.join(",")));
        }
        let report = target.running()?.get_report(&path).await?;
        if report.get("summary").is_none() {
            return Err(CliError::Other(
                "the answer is no API report; is the control plane of this release?".to_owned(),
            ));
        }
        if json {
            let shown = serde_json::to_string_pretty(&report).unwrap_or_default();
            say(format_args!("{shown}"))?;
        } else {
            say(format_args!("{}", text(&report, clock::now_millis()).trim_end()))?;
        }
        let mut failed = false;
        for what in fail_on {
            let count = what.count(&report);
            if count > 0 {
                failed = true;
                // Beside the report, which a pipeline may read.
                eprint_line(&format!("palisade: --fail-on {}: {count}", what.word()));
            }
        }
        Ok(if failed { ExitCode::from(1) } else { ExitCode::SUCCESS })
    }
}

impl FailOn {
    fn word(self) -> &'static str {
        match self {
            FailOn::High => "high",
            FailOn::Medium => "medium",
            FailOn::Low => "low",
            FailOn::Info => "info",
            FailOn::Shadow => "shadow",
            FailOn::Zombie => "zombie",
            FailOn::Drift => "drift",
            FailOn::SensitiveDrift => "sensitive-drift",
            FailOn::Broken => "broken",
        }
    }

    /// How many of it a report has.
    fn count(self, report: &Value) -> u64 {
        let number = |pointer: &str| report.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
        let severities = |count: usize| {
            let all = ["high", "medium", "low", "info"].into_iter().take(count);
            all.map(|severity| number(&format!("/summary/auth/{severity}"))).sum()
        };
        match self {
            FailOn::High => severities(1),
            FailOn::Medium => severities(2),
            FailOn::Low => severities(3),
            FailOn::Info => severities(4),
            FailOn::Shadow => number("/summary/confirmed_shadows"),
            FailOn::Zombie => number("/summary/zombies"),
            FailOn::Drift => number("/summary/drift"),
            FailOn::SensitiveDrift => number("/summary/sensitive_drift"),
            FailOn::Broken => {
                let routes = report.get("routes").and_then(Value::as_array).into_iter().flatten();
                let broken = routes.filter(|route| route.get("compiles") == Some(&Value::Bool(false)));
                u64::try_from(broken.count()).unwrap_or(u64::MAX)
            }
        }
    }
}

fn eprint_line(line: &str) {
    use std::io::Write as _;
    // A closed standard error leaves nobody to tell.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// A value of a query.
fn escaped(value: &str) -> String {
    value.bytes().fold(String::new(), |mut all, byte| {
        if byte.is_ascii_alphanumeric() || b"-_.~,".contains(&byte) {
            all.push(char::from(byte));
        } else {
            let _ = write!(all, "%{byte:02X}");
        }
        all
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_severity_means_it_or_a_graver_one() {
        let report = json!({
            "routes": [{ "compiles": false }, { "compiles": true }, { "compiles": null }],
            "summary": {
                "confirmed_shadows": 1, "zombies": 2, "drift": 4, "sensitive_drift": 3,
                "auth": { "high": 0, "medium": 5, "low": 6, "info": 7 },
            },
        });
        let all = [
            (FailOn::High, 0),
            (FailOn::Medium, 5),
            (FailOn::Low, 11),
            (FailOn::Info, 18),
            (FailOn::Shadow, 1),
            (FailOn::Zombie, 2),
            (FailOn::Drift, 4),
            (FailOn::SensitiveDrift, 3),
            (FailOn::Broken, 1),
        ];
        for (what, count) in all {
            assert_eq!(what.count(&report), count, "{}", what.word());
            let parsed = <FailOn as clap::ValueEnum>::from_str(what.word(), false).unwrap();
            assert_eq!(parsed, what);
        }
        assert_eq!(escaped("a b,c/ü"), "a%20b,c%2F%C3%BC");
    }
}
