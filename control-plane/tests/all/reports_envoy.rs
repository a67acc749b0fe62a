//! What plugins report and do on timers, in a real Envoy.

#![allow(clippy::disallowed_methods, reason = "a gateway's time is measured, in no filter")]

use std::time::{Duration, Instant};

use link::ReportReceiver;
use snapshot::Step;
use xds::bootstrap::CONTROL_PLANE_CLUSTER;
use xds::resources::build;

use crate::xds_support::{ControlPlane, Envoy, backend, gateway, get, probe, until};

/// The reports that come until one says `last`.
async fn received(receiver: &mut ReportReceiver, last: &str) -> Vec<String> {
    let mut all = Vec::new();
    while all.last().is_none_or(|found| found != last) {
        let next =
            tokio::time::timeout(Duration::from_secs(60), receiver.next()).await.expect("no report came").unwrap();
        assert_eq!(next.node, "test-node");
        all.extend(next.reports.iter().map(|report| String::from_utf8_lossy(report).into_owned()));
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_come_in_their_order_and_tasks_run_on_every_worker_or_on_one() {
    let control_plane = ControlPlane::start(Vec::new()).await;
    let (mut reports, mut timers) = {
        let kinds = control_plane.link.reports();
        (kinds.receive("probe"), kinds.receive("probe-timer"))
    };
    let step = |config: &str| Step { plugin: "probe-report".into(), config: config.into(), ..Step::default() };
    let mut described = gateway(backend("served").await, vec![probe(vec![step("all"), step("one")])]);
    described.control_plane_cluster = Some(CONTROL_PLANE_CLUSTER.into());
    control_plane.hub.publish(build(&described).unwrap());
    let envoy = Envoy::start(control_plane.address, true).await;
    let listener = envoy.listener().await;
    until("a request", async || get(listener, "a", "/?0").await.filter(|answer| answer.1 == "served")).await;

    // Two steps report, one after the other.
    get(listener, "a", "/?900").await.unwrap();
    let mut found = received(&mut reports, "899").await;
    if found.len() < 1_800 {
        found.extend(received(&mut reports, "899").await);
    }
    let expected: Vec<String> = (0..900).chain(0..900).map(|number: u32| number.to_string()).collect();
    assert_eq!(found, expected);
    // More than the quota: the newest come.
    get(listener, "a", "/?5000").await.unwrap();
    let mut found = Vec::new();
    while found.len() < 2_000 {
        found.extend(received(&mut reports, "4999").await);
    }
    assert_eq!((found.len(), found[0].as_str()), (2_000, "3000"));

    // On the two workers and the main thread; on one of the three.
    let (begin, mut all, mut one) = (Instant::now(), 0, 0);
    while begin.elapsed() < Duration::from_secs(5) {
        let Ok(Some(next)) = tokio::time::timeout(Duration::from_secs(5), timers.next()).await else { break };
        all += next.reports.iter().filter(|report| report.as_slice() == b"all").count();
        one += next.reports.iter().filter(|report| report.as_slice() == b"one").count();
    }
    assert!(one > 0 && all >= one * 2, "{all} runs on all workers, {one} on one: {}", envoy.log());
}
