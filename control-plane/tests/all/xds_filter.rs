//! What a shipped filter says of a snapshot that it cannot run reaches the control plane.

use crate::xds_support::{ControlPlane, Envoy, backend, gateway, get, noop_filter, preset, until};
use snapshot::Step;
use xds::bootstrap::CONTROL_PLANE_CLUSTER;
use xds::resources::{FilterInput, Gateway, build};
use xds::{Kind, TypeStatus};

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_says_why_it_refuses_a_snapshot_and_the_old_one_keeps_serving() {
    let control_plane = ControlPlane::start(Vec::new()).await;
    let hub = &control_plane.hub;
    let backend = backend("served").await;
    let publish = |steps| {
        let mut described = gateway(backend, vec![preset(steps)]);
        described.control_plane_cluster = Some(CONTROL_PLANE_CLUSTER.into());
        hub.publish(build(&described).unwrap());
    };
    publish(Vec::new());
    let envoy = Envoy::start(control_plane.address, true).await;
    let listener = envoy.listener().await;
    until("the first answer", async || get(listener, "any.test", "/").await.filter(|answer| answer.1 == "served"))
        .await;

    publish(vec![Step { plugin: "no-such-plugin".into(), ..Step::default() }]);
    let reason = until("the filter's own reason", async || {
        let nodes = hub.nodes();
        let status =
            nodes.first()?.types.iter().find(|status: &&TypeStatus| status.type_url == Kind::Extension.type_url())?;
        status.nack.as_ref().map(|nack| nack.reason.clone()).filter(|reason| reason.contains("no such plugin"))
    })
    .await;
    assert!(reason.contains("the global chain, step 1 (`no-such-plugin`)"), "{reason}");
    assert_eq!(get(listener, "any.test", "/").await, Some((200, "served".into())), "{}", envoy.log());

    // What is good again is taken again, and the refusal is over.
    publish(vec![Step { plugin: "threat-gate".into(), ..Step::default() }]);
    until("the good snapshot", async || {
        let nodes = hub.nodes();
        let node = nodes.first()?;
        node.types
            .iter()
            .all(|status| status.nack.is_none() && status.acked_version == status.sent_version)
            .then_some(())
    })
    .await;
    until("the filter's report", async || {
        let nodes = hub.nodes();
        nodes.first()?.filters.iter().find(|status| status.filter == "preset" && status.error.is_empty()).map(|_| ())
    })
    .await;
    assert_eq!(get(listener, "any.test", "/").await, Some((200, "served".into())), "{}", envoy.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn other_filters_take_over_without_a_failed_request() {
    let control_plane = ControlPlane::start(Vec::new()).await;
    let hub = &control_plane.hub;
    let backend = backend("served").await;
    let publish = |filter: FilterInput| {
        // The filter that does nothing has no link.
        let cluster = (filter.name == "preset").then(|| CONTROL_PLANE_CLUSTER.into());
        let described = Gateway { control_plane_cluster: cluster, ..gateway(backend, vec![filter]) };
        hub.publish(build(&described).unwrap());
    };
    publish(noop_filter("waf", "x"));
    let envoy = Envoy::start(control_plane.address, true).await;
    let listener = envoy.listener().await;
    until("the first answer", async || get(listener, "any.test", "/").await.filter(|answer| answer.1 == "served"))
        .await;
    // The listener is taken at once and serves only when the module of its filter is compiled, which takes a while.
    for (filter, name) in
        [(preset(Vec::new()), "preset"), (noop_filter("waf", "x"), "waf"), (preset(Vec::new()), "preset")]
    {
        publish(filter);
        until("the new filter", async || {
            let answer = get(listener, "any.test", "/").await;
            assert_eq!(answer, Some((200, "served".into())), "{name}: {}", envoy.log());
            let nodes = hub.nodes();
            let node = nodes.first()?;
            let taken = |status: &TypeStatus| status.nack.is_none() && status.acked_version == status.sent_version;
            (node.types.iter().all(taken) && !node.behind).then_some(())
        })
        .await;
    }
}
