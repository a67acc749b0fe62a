use super::*;

const NOW: u64 = 1_800_000_000_000;

#[tokio::test]
async fn an_event_has_each_name_once_on_its_way_out() {
    let hub = EventHub::new(Vec::new(), || NOW);
    let mut tap = hub.tap_all("test");
    let security =
        r#"{"@type":"SvcSecurityEvent","route":{"node":"other"},"message":"a","message":"b","route":{"node":"edge"}}"#;
    let trail = "{\"@type\":\"SvcWafTrailEvent\",\r\n\"source\":{\"ip\":\"192.0.2.1\",\"ip\":\"192.0.2.2\"},\"route\":{\"node\":\"edge\"}}";
    for node in ["edge", ""] {
        for event in [security, trail] {
            hub.publish_of(node, event.as_bytes()).unwrap();
        }
        let lines = tap.next().await;
        let texts: Vec<&str> = lines.iter().map(|line| std::str::from_utf8(line).unwrap()).collect();
        for text in &texts {
            for name in ["\"node\"", "\"message\"", "\"ip\""] {
                assert!(text.matches(name).count() <= 1, "{text}");
            }
            assert!(!text.contains(['\r', '\n', ' ']), "{text}");
        }
        assert!(texts[0].contains(r#""message":"b""#) && texts[0].contains(r#""node":"edge""#), "{texts:?}");
        assert!(texts[1].contains(r#""ip":"192.0.2.2""#), "{texts:?}");
    }
}
