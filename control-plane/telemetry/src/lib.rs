//! What the control plane says about itself: logs, metrics, readiness.

mod catalogue;
mod logs;
mod metrics;
mod process;
mod readiness;
mod request;

pub use catalogue::{CATALOGUE, Described, MetricKind, markdown};
pub use logs::{LogControl, LogFormat, LogLevel, LogLevelError, init_logs};
pub use metrics::Metrics;
pub use readiness::{Gate, Readiness};
pub use request::{request_id, spawn_within, within};
