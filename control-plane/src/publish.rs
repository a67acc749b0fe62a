//! From entities to gateways: every change is compiled and published; what does not compile leaves the last good
//! version in place.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::clock::{self, Stopwatch};
use crate::compile::Compiler;
use crate::entities::{DEFAULT_GROUP, EntityService, EntitySet};
use crate::telemetry::Gate;
use crate::xds::{Hub, ResourceSet, resources};

/// The longest pause after a publication.
const MAX_REST: Duration = Duration::from_millis(250);

/// Publishes the entities as they are now and after every change, until `stopping` becomes true. `first` opens with the
/// first version that is published.
pub async fn run(
    entities: EntityService,
    compiler: Arc<Compiler>,
    hub: Hub,
    first: Gate,
    mut stopping: watch::Receiver<bool>,
) {
    let mut changes = entities.subscribe();
    loop {
        let set = changes.borrow_and_update().clone();
        let compiler = Arc::clone(&compiler);
        let revision = set.revision();
        let watch = Stopwatch::start();
        hub.change_begins();
        match tokio::task::spawn_blocking(move || resources_of(&compiler, &set)).await {
            Ok(Ok((default, groups))) => {
                hub.publish_groups(default, groups);
                published(revision);
                first.set(true);
                metrics::gauge!("palisade_snapshot_compiles").set(1.0);
                tracing::info!(revision, "published");
            }
            Ok(Err(problems)) => {
                metrics::gauge!("palisade_snapshot_compiles").set(0.0);
                metrics::gauge!("palisade_compile_problems").set(u32::try_from(problems.len()).unwrap_or(u32::MAX));
                count("refused");
                for problem in problems {
                    tracing::error!(revision, "not published, the last good version keeps serving: {problem}");
                }
            }
            Err(error) => {
                count("failed");
                tracing::error!(revision, %error, "the compiler has failed; the last good version keeps serving")
            }
        }
        // Changes that come while this rests are published together: a stream of them gets half of a processor and no more,
        // and the rest is for those who make them.
        let rest = Duration::from_secs_f64(watch.seconds()).min(MAX_REST);
        tokio::select! {
            () = tokio::time::sleep(rest) => {}
            _ = stopping.wait_for(|stop| *stop) => return,
        }
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            _ = stopping.wait_for(|stop| *stop) => return,
        }
    }
}

fn published(revision: u64) {
    count("published");
    metrics::gauge!("palisade_compile_problems").set(0.0);
    metrics::gauge!("palisade_publish_revision").set(revision as f64);
    metrics::gauge!("palisade_publish_last_success_timestamp_seconds").set(clock::now_millis() as f64 / 1000.0);
}

fn count(outcome: &'static str) {
    metrics::counter!("palisade_publish_attempts_total", "outcome" => outcome).increment(1);
}

/// The resources of the default group, and of the others by name.
type Resources = (ResourceSet, BTreeMap<String, ResourceSet>);

fn resources_of(compiler: &Compiler, set: &EntitySet) -> Result<Resources, Vec<String>> {
    let watch = Stopwatch::start();
    let compiled = compiler.compile(set);
    metrics::histogram!("palisade_compile_seconds", "purpose" => "publish").record(watch.seconds());
    let compiled = compiled.map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    for warning in &compiled.warnings {
        tracing::warn!("{warning}");
    }
    for (group, gateway) in compiled
        .groups
        .iter()
        .map(|(name, gateway)| (name.as_str(), gateway))
        .chain([(DEFAULT_GROUP, &compiled.gateway)])
    {
        for filter in &gateway.filters {
            let labels = [("group", group.to_owned()), ("filter", filter.name.clone())];
            metrics::gauge!("palisade_compile_snapshot_bytes", &labels).set(filter.snapshot.len() as f64);
        }
    }
    let default = resources::build(&compiled.gateway).map_err(|problem| vec![problem])?;
    let groups = compiled.groups.iter().map(|(name, gateway)| {
        let built = resources::build(gateway).map_err(|problem| vec![format!("group `{name}`: {problem}")])?;
        Ok((name.clone(), built))
    });
    Ok((default, groups.collect::<Result<_, Vec<String>>>()?))
}
