use metrics_exporter_prometheus::PrometheusBuilder;

use super::*;

static NOW: AtomicU64 = AtomicU64::new(0);

fn now() -> u64 {
    NOW.load(Ordering::Relaxed)
}

fn node(id: &str) -> Node {
    Node { id: id.to_owned(), ..Node::default() }
}

#[test]
fn an_acknowledgement_is_counted_from_the_change_or_from_the_connection() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    let at = |millis| NOW.store(millis, Ordering::Relaxed);
    let take = |hub: &Hub, id: &str, stream| hub.answered(id, stream, Kind::Cluster, "v".to_owned(), None);
    metrics::with_local_recorder(&recorder, || {
        let hub = Hub::with_clock(now);
        at(500);
        let old = hub.connected(&node("old"));
        at(1000);
        hub.change_begins();
        at(2000);
        hub.publish(ResourceSet::default());
        at(3500);
        take(&hub, "old", old);
        at(10_000);
        let new = hub.connected(&node("new"));
        hub.connected(&node("new"));
        at(10_250);
        take(&hub, "new", new);
        hub.answered("new", new, Kind::Cluster, "v".to_owned(), Some(("no".to_owned(), Vec::new())));
        hub.disconnected("new", new);
    });
    let text = handle.render();
    for line in [
        "palisade_xds_acknowledge_seconds_sum{type=\"cluster\"} 2.75",
        "palisade_xds_acknowledge_seconds_count{type=\"cluster\"} 2",
        "palisade_xds_nodes 2",
        "palisade_xds_streams 2",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}
