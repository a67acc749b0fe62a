//! Settings of the maze.

use kit::checks::within;
use kit::{FieldProblem, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{MazeBudget, MazeLimits, is_path};

/// The pages of the action `maze` of bot rules and tiers, and what they may cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MazeSettings {
    /// The path that all links of pages lead below: letters, digits, `-`, `_` and `/`, with a slash at both ends, at most 64 characters. The
    /// backend should have nothing there. Default `/archive/`.
    pub path: String,
    /// The size of a page in bytes, 1024 to 32768. Default 8192.
    #[schemars(range(min = 1024, max = 32_768))]
    pub page_bytes: u32,
    /// How long a caller waits for a page, in milliseconds, 0 to 30000; `tarpit.max_held` counts those that wait. Default 1000.
    #[schemars(range(max = 30_000))]
    pub delay_millis: u32,
    /// The most pages that a caller gets in an hour from one gateway, 1 to 100000. Default 500.
    #[schemars(range(min = 1, max = 100_000))]
    pub pages_per_caller: u32,
    /// The most that these have together, in KiB, 1 to 1048576. Default 4096.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub kilobytes_per_caller: u32,
    /// The most processor time that pages for one caller take in 10 seconds, in milliseconds, 1 to 1000. Default 10.
    #[schemars(range(min = 1, max = 1_000))]
    pub processor_millis_per_caller: u32,
    /// The most pages that all callers of a gateway get in an hour, 1 to 10000000. Default 50000.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub pages: u32,
    /// The most that these have together, in KiB, 1 to 1073741824. Default 409600.
    #[schemars(range(min = 1, max = 1_073_741_824))]
    pub kilobytes: u32,
    /// The most processor time that all pages of a gateway take in 10 seconds, in milliseconds, 1 to 10000. Default 100, which is 1 % of a
    /// processor.
    #[schemars(range(min = 1, max = 10_000))]
    pub processor_millis: u32,
}

// === impl MazeSettings ===

impl MazeSettings {
    /// What a filter gets of them.
    #[must_use]
    pub fn limits(&self) -> MazeLimits {
        MazeLimits {
            path: self.path.clone(),
            page_bytes: self.page_bytes,
            hold_millis: self.delay_millis,
            caller: MazeBudget {
                pages: self.pages_per_caller,
                kibibytes: self.kilobytes_per_caller,
                micros: self.processor_millis_per_caller.saturating_mul(1000),
            },
            all: MazeBudget {
                pages: self.pages,
                kibibytes: self.kilobytes,
                micros: self.processor_millis.saturating_mul(1000),
            },
        }
    }
}

impl Default for MazeSettings {
    fn default() -> MazeSettings {
        MazeSettings {
            path: "/archive/".to_owned(),
            page_bytes: 8192,
            delay_millis: 1000,
            pages_per_caller: 500,
            kilobytes_per_caller: 4096,
            processor_millis_per_caller: 10,
            pages: 50_000,
            kilobytes: 409_600,
            processor_millis: 100,
        }
    }
}

impl Settings for MazeSettings {
    const FIELD: &'static str = "maze";

    fn check(&self) -> Vec<FieldProblem> {
        let path = (!is_path(&self.path)).then(|| {
            let message = format!("`{}` is no path that pages can link below", self.path.escape_debug());
            FieldProblem::new("/path", message)
                .expected("such as `/archive/`: at most 64 letters, digits, `-`, `_` and `/`")
        });
        let found = [
            path,
            within("/page_bytes", self.page_bytes, crate::PAGE_BYTES),
            within("/delay_millis", self.delay_millis, 0..=30_000),
            within("/pages_per_caller", self.pages_per_caller, 1..=100_000),
            within("/kilobytes_per_caller", self.kilobytes_per_caller, 1..=1_048_576),
            within("/processor_millis_per_caller", self.processor_millis_per_caller, 1..=1_000),
            within("/pages", self.pages, 1..=10_000_000),
            within("/kilobytes", self.kilobytes, 1..=1_073_741_824),
            within("/processor_millis", self.processor_millis, 1..=10_000),
        ];
        found.into_iter().flatten().collect()
    }
}
