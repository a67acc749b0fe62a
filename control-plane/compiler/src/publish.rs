//! From entities to gateways: every change is compiled and published, each group of gateways by itself. What cannot be
//! published leaves the last good version of that group in place, and says so.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::Compiler;
use base::clock::{self, Stopwatch};
use entities::{Delivery, EntityService, EntitySet};
use events::{EventHub, Part};
use telemetry::Gate;
use xds::{Hub, ResourceSet, resources};

/// The longest pause after a publication.
const MAX_REST: Duration = Duration::from_millis(250);
/// Stored entities that cannot be read and are named, at most.
const MAX_NAMED: usize = 5;

/// The outcome for each group: its resources, or why it has none.
type Outcomes = BTreeMap<String, Result<ResourceSet, Vec<String>>>;

/// Publishes the entities as they are now, and after every change of them or of what was gathered for the compiler, until `stopping` becomes true. `first` opens with the
/// first version that is published to any group; `events` is told of groups that cannot be published.
pub async fn run(
    entities: EntityService,
    compiler: Arc<Compiler>,
    hub: Hub,
    events: EventHub,
    first: Gate,
    mut stopping: watch::Receiver<bool>,
) {
    let mut changes = entities.subscribe();
    let mut gathered = compiler.gathered();
    let mut known = BTreeMap::new();
    loop {
        let set = changes.borrow_and_update().clone();
        gathered.mark_unchanged();
        let watch = Stopwatch::start();
        hub.change_begins();
        let (compiler, compiled) = (Arc::clone(&compiler), Arc::clone(&set));
        let outcomes = tokio::task::spawn_blocking(move || outcomes(&compiler, &compiled)).await;
        let (outcomes, asides, gaps) =
            outcomes.unwrap_or_else(|error| (none(&set, &error.to_string()), Vec::new(), Vec::new()));
        if publish(&hub, &events, &set, outcomes, &asides, &mut known) {
            first.set(true);
        }
        tell_unreadable(&events, &set);
        tell_unverifiable(&events, &set);
        tell_unprotected(&events, &gaps);
        // Changes that come while this rests are published together: a stream of them gets half of a processor and no more,
        // and the rest is for those who make them.
        let rest = Duration::from_secs_f64(watch.seconds()).min(MAX_REST);
        tokio::select! {
            () = tokio::time::sleep(rest) => {}
            _ = stopping.wait_for(|stop| *stop) => return,
        }
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            changed = gathered.changed() => if changed.is_err() { return },
            _ = stopping.wait_for(|stop| *stop) => return,
        }
    }
}

/// Gives the hub what there is of each group, and says what there is not. `known` are the groups of the time before, and
/// whether each was published. True where any group was.
fn publish(
    hub: &Hub,
    events: &EventHub,
    set: &EntitySet,
    outcomes: Outcomes,
    asides: &[String],
    known: &mut BTreeMap<String, bool>,
) -> bool {
    let revision = set.revision();
    let before = std::mem::take(known);
    for (group, outcome) in &outcomes {
        let failing = metrics::gauge!("palisade_publish_failing", "group" => group.clone());
        match outcome {
            Ok(_) => {
                failing.set(0.0);
                events.recovered(Part::Publication, group);
            }
            Err(reasons) => {
                failing.set(1.0);
                for reason in reasons {
                    tracing::error!(revision, group, "not published, the last good version stays in use: {reason}");
                }
                let stays = "its gateways keep the last version";
                events.trouble(Part::Publication, group, &format!("{}; {stays}", reasons.join("; ")));
            }
        }
        known.insert(group.clone(), outcome.is_ok());
    }
    for gone in before.keys().filter(|group| !known.contains_key(*group)) {
        metrics::gauge!("palisade_publish_failing", "group" => gone.clone()).set(0.0);
        events.recovered(Part::Publication, gone);
    }
    for aside in asides {
        tracing::error!(revision, "fault in an entity that no gateway uses: {aside}");
    }
    let failed: usize = outcomes.values().filter_map(|outcome| outcome.as_ref().err()).map(Vec::len).sum();
    let problems = u32::try_from(failed + asides.len()).unwrap_or(u32::MAX);
    metrics::gauge!("palisade_compile_problems").set(problems);
    let (published, all) = (known.values().any(|published| *published), known.values().all(|published| *published));
    metrics::gauge!("palisade_snapshot_compiles").set(if all { 1.0 } else { 0.0 });
    let outcome = match (published, all) {
        (_, true) => "published",
        (true, false) => "partial",
        (false, false) => "refused",
    };
    metrics::counter!("palisade_publish_attempts_total", "outcome" => outcome).increment(1);
    hub.set_stale_after(set.global().security.incidents.stale_after_seconds.saturating_mul(1000));
    hub.publish_each(revision, outcomes);
    if all {
        metrics::gauge!("palisade_publish_revision").set(revision as f64);
        metrics::gauge!("palisade_publish_last_success_timestamp_seconds").set(clock::now_millis() as f64 / 1000.0);
        tracing::info!(revision, "published");
    }
    published
}

/// Entities that this release cannot read are left out: what they were to protect is not protected by them.
fn tell_unreadable(events: &EventHub, set: &EntitySet) {
    let unreadable = set.unreadable();
    if unreadable.is_empty() {
        events.recovered(Part::Entities, "unreadable");
        return;
    }
    let named = unreadable.iter().take(MAX_NAMED).map(|(place, problem)| format!("{place}: {problem}"));
    let (count, named) = (unreadable.len(), named.collect::<Vec<_>>().join("; "));
    let reason = format!("stored entities cannot be read by this release and are left out ({count} faults): {named}");
    events.trouble(Part::Entities, "unreadable", &reason);
}

/// Verifiers of callers that the gateways of no group can have: whom they were to verify is judged by the address.
fn tell_unverifiable(events: &EventHub, set: &EntitySet) {
    let global = set.global();
    let deliveries: Vec<Delivery> = global.gateways().map(|(_, gateway)| gateway.delivery).collect();
    let idle = global
        .identity
        .verified_by
        .iter()
        .enumerate()
        .filter(|(_, verifier)| deliveries.iter().all(|delivery| !verifier.can_verify(*delivery)));
    let named: Vec<String> =
        idle.map(|(index, verifier)| format!("`identity.verified_by[{index}]` (`{}`)", verifier.kind.word())).collect();
    if named.is_empty() {
        events.recovered(Part::Entities, "verified_by");
        return;
    }
    let reason = format!(
        "{} verifies no client: the listener that xDS serves has no such filter and asks for no certificate, and no group has `delivery: ecds`",
        named.join(", ")
    );
    events.trouble(Part::Entities, "verified_by", &reason);
}

/// Chains that were accepted and leave requests without the protection that they seem to give.
fn tell_unprotected(events: &EventHub, gaps: &[String]) {
    if gaps.is_empty() {
        events.recovered(Part::Entities, "protection");
        return;
    }
    let named: Vec<&str> = gaps.iter().take(MAX_NAMED).map(String::as_str).collect();
    let reason = format!("protection is off ({} reasons): {}", gaps.len(), named.join("; "));
    events.trouble(Part::Entities, "protection", &reason);
}

/// Every group without resources, for this reason.
fn none(set: &EntitySet, reason: &str) -> Outcomes {
    set.global()
        .group_names()
        .map(|group| (group.to_owned(), Err(vec![format!("the compiler has failed: {reason}")])))
        .collect()
}

/// The resources of every group, the faults that no group has, and the protection that is off.
fn outcomes(compiler: &Compiler, set: &EntitySet) -> (Outcomes, Vec<String>, Vec<String>) {
    let watch = Stopwatch::start();
    let compiled = compiler.compile_groups(set);
    metrics::histogram!("palisade_compile_seconds", "purpose" => "publish").record(watch.seconds());
    for warning in &compiled.warnings {
        tracing::warn!("{warning}");
    }
    let outcomes = compiled.groups.into_iter().map(|(group, gateway)| {
        // A defect that one group's settings bring to light is not to stop the others.
        let built = gateway.and_then(|gateway| {
            let built = catch_unwind(AssertUnwindSafe(|| {
                for filter in &gateway.filters {
                    let labels = [("group", group.clone()), ("filter", filter.name.clone())];
                    metrics::gauge!("palisade_compile_snapshot_bytes", &labels).set(filter.snapshot.len() as f64);
                }
                resources::build(&gateway)
            }));
            match built {
                Ok(built) => built.map_err(|problem| vec![problem.to_string()]),
                Err(_) => Err(vec!["building its resources has failed inside the control plane".to_owned()]),
            }
        });
        (group, built)
    });
    let outcomes = outcomes.collect();
    (outcomes, compiled.asides.iter().map(ToString::to_string).collect(), compiled.gaps)
}
