//! Metrics in Prometheus' text format.

use std::sync::OnceLock;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use super::{catalogue, process};
use base::clock;

/// The bounds of every `…_seconds` histogram: from a write on a fast disk to a request that its client has given up.
const SECONDS: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0];

/// The metrics of this process.
#[derive(Clone)]
pub struct Metrics {
    handle: PrometheusHandle,
}

impl Metrics {
    /// Installs the recorder of this process, once; further calls give the same metrics.
    pub fn install() -> Metrics {
        static INSTALLED: OnceLock<PrometheusHandle> = OnceLock::new();
        let handle = INSTALLED.get_or_init(|| {
            let builder = PrometheusBuilder::new();
            let bounded = builder.set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS);
            let recorder = bounded.unwrap_or_else(|_| PrometheusBuilder::new()).build_recorder();
            let handle = recorder.handle();
            // Fails only where another recorder was installed before: then ours stays empty, which `/metrics` shows.
            if metrics::set_global_recorder(recorder).is_err() {
                tracing::warn!("another metrics recorder is installed; /metrics stays empty");
            }
            catalogue::describe();
            let now = clock::now_millis() as f64 / 1000.0;
            ::metrics::gauge!("palisade_process_start_time_seconds").set(now);
            ::metrics::gauge!("palisade_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
            handle
        });
        Metrics { handle: handle.clone() }
    }

    /// The current values.
    pub fn render(&self) -> String {
        process::measure();
        self.handle.render()
    }

    /// Folds what histograms have gathered. To be called every few seconds: else they grow until someone reads them.
    pub fn upkeep(&self) {
        self.handle.run_upkeep();
    }
}
