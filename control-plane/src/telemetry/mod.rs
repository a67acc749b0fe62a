//! What the control plane says about itself: logs, metrics, readiness.

mod logs;
mod metrics;
mod readiness;

pub use logs::{LogFormat, init_logs};
pub use metrics::Metrics;
pub use readiness::{Gate, Readiness};
