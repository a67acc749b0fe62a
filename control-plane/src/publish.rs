//! From entities to gateways: every change is compiled and published; what does not compile leaves the last good
//! version in place.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

use crate::compile::Compiler;
use crate::entities::{EntityService, EntitySet};
use crate::telemetry::Gate;
use crate::xds::{Hub, ResourceSet, resources};

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
        match tokio::task::spawn_blocking(move || resources_of(&compiler, &set)).await {
            Ok(Ok((default, groups))) => {
                hub.publish_groups(default, groups);
                first.set(true);
                metrics::gauge!("palisade_snapshot_compiles").set(1.0);
                tracing::info!(revision, "published");
            }
            Ok(Err(problems)) => {
                metrics::gauge!("palisade_snapshot_compiles").set(0.0);
                for problem in problems {
                    tracing::error!(revision, "not published, the last good version keeps serving: {problem}");
                }
            }
            Err(error) => {
                tracing::error!(revision, %error, "the compiler has failed; the last good version keeps serving")
            }
        }
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            _ = stopping.wait_for(|stop| *stop) => return,
        }
    }
}

/// The resources of the default group, and of the others by name.
type Resources = (ResourceSet, BTreeMap<String, ResourceSet>);

fn resources_of(compiler: &Compiler, set: &EntitySet) -> Result<Resources, Vec<String>> {
    let compiled =
        compiler.compile(set).map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    for warning in &compiled.warnings {
        tracing::warn!("{warning}");
    }
    let default = resources::build(&compiled.gateway).map_err(|problem| vec![problem])?;
    let groups = compiled.groups.iter().map(|(name, gateway)| {
        let built = resources::build(gateway).map_err(|problem| vec![format!("group `{name}`: {problem}")])?;
        Ok((name.clone(), built))
    });
    Ok((default, groups.collect::<Result<_, Vec<String>>>()?))
}
