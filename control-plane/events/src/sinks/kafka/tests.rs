use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::super::Then;
use super::*;

/// librdkafka's cluster, and what arrives in a topic of it.
struct Cluster {
    process: Child,
    output: BufReader<ChildStdout>,
    brokers: String,
}

impl Cluster {
    /// `None` where the package is not on this machine.
    fn start(topic: &str) -> Option<Cluster> {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        let tool = std::env::var_os("PALISADE_KAFKA").map_or_else(|| root.join(".cache/kafka"), PathBuf::from);
        let python = tool.join("bin/python");
        if !python.exists() {
            println!("LEFT OUT: librdkafka is not on this machine: run `make kafka`");
            eprintln!("LEFT OUT: librdkafka is not on this machine: run `make kafka`");
            return None;
        }
        let mut command = Command::new(python);
        command.arg(root.join("tests/scripts/kafka_cluster.py")).arg(topic);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut brokers = String::new();
        output.read_line(&mut brokers).unwrap();
        Some(Cluster { process, output, brokers: brokers.trim().to_owned() })
    }

    fn sink(&self, topic: &str) -> Kafka {
        Kafka::new(&format!("kafka://{}/{topic}", self.brokers), None, None).unwrap()
    }

    /// The next records: partition, milliseconds, value.
    fn records(&mut self, count: usize) -> Vec<(u32, u64, String)> {
        let mut line = || {
            let mut line = String::new();
            self.output.read_line(&mut line).unwrap();
            let mut parts = line.trim_end().splitn(3, ' ');
            let mut part = || parts.next().unwrap();
            (part().parse().unwrap(), part().parse().unwrap(), part().to_owned())
        };
        (0..count).map(|_| line()).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn event(number: usize) -> Line {
    let text =
        format!(r#"{{"@type":"SvcSecurityEvent","@timestamp":"2026-01-02T03:04:05.678Z","message":"n {number}"}}"#);
    text.as_bytes().into()
}

#[tokio::test(flavor = "multi_thread")]
async fn events_arrive_once_with_their_time_over_all_partitions() {
    let Some(mut cluster) = Cluster::start("events") else { return };
    let mut sink = cluster.sink("events");
    let events: Vec<Line> = (0..40).map(event).collect();
    for batch in events.chunks(5) {
        sink.write(batch).await.unwrap();
    }
    let mut records = cluster.records(40);
    let mut partitions: Vec<u32> = records.iter().map(|record| record.0).collect();
    partitions.sort_unstable();
    partitions.dedup();
    assert_eq!(partitions, [0, 1, 2, 3]);
    assert!(records.iter().all(|record| record.1 == 1_767_323_045_678), "{records:?}");
    records
        .sort_by_key(|(.., text)| text.rsplit_once(' ').unwrap().1.trim_end_matches("\"}").parse::<usize>().unwrap());
    let sent = events.iter().map(|event| std::str::from_utf8(event).unwrap());
    assert!(sent.eq(records.iter().map(|record| record.2.as_str())));
}

#[tokio::test]
async fn what_is_not_there_is_waited_for() {
    let Some(mut cluster) = Cluster::start("events") else { return };
    let mut other = cluster.sink("typo");
    let failure = other.write(&[event(0)]).await.unwrap_err();
    assert_eq!((failure.written, failure.then), (0, Then::Retry(None)));
    assert!(failure.reason.contains("there is no topic `typo`"), "{failure:?}");

    let mut sink = cluster.sink("events");
    sink.write(&[event(0)]).await.unwrap();
    assert_eq!(cluster.records(1).len(), 1);
    cluster.process.kill().unwrap();
    cluster.process.wait().unwrap();
    // Connections are refused at once; what is left are waits.
    tokio::time::pause();
    let failure = sink.write(&[event(1)]).await.unwrap_err();
    assert_eq!((failure.written, failure.then), (0, Then::Retry(None)));
    let failure = sink.write(&[event(1)]).await.unwrap_err();
    assert_eq!(failure.then, Then::Retry(None));
}

#[tokio::test(start_paused = true)]
async fn a_partition_whose_broker_never_answers_keeps_no_other_from_being_opened() {
    let opened = in_time(3, std::future::pending::<Result<(), Error>>()).await;
    assert_eq!(opened, Err("partition 3: no answer within 10 s".to_owned()));
    assert_eq!(in_time(3, std::future::ready(Ok(7))).await, Ok(7));
}

#[test]
fn a_record_of_the_future_has_the_time_of_sending() {
    let now = clock::rfc3339_millis("2026-11-29T12:00:00Z").unwrap();
    let millis = |event: &str| record(&Line::from(event.as_bytes()), now).timestamp.timestamp_millis();
    let signed = i64::try_from(now).unwrap();
    assert_eq!(millis(r#"{"@type":"SvcSecurityEvent","@timestamp":"2999-01-01T00:00:00Z"}"#), signed);
    assert_eq!(millis(r#"{"@type":"SvcSecurityEvent","@timestamp":18446744073709551615}"#), signed);
    assert_eq!(millis(r#"{"class_uid":4002,"time":32472144000000}"#), signed);
    assert_eq!(millis(r#"{"class_uid":4002,"time":7}"#), 7);
    assert_eq!(millis(r#"{"@type":"SvcSecurityEvent"}"#), signed, "none of its own");
}

#[test]
fn a_password_is_not_sent_in_clear_text() {
    let login =
        |mechanism| KafkaLogin { user: "palisade".to_owned(), password_file: "/run/secrets/kafka".into(), mechanism };
    let refused = Kafka::new("kafka://a/events", None, Some(login(SaslMechanism::Plain))).unwrap_err();
    assert!(refused.to_string().contains("kafkas://"), "{refused}");
    assert!(Kafka::new("kafka://a/events", None, Some(login(SaslMechanism::ScramSha512))).is_ok());
    assert!(Kafka::new("kafkas://a/events", None, Some(login(SaslMechanism::Plain))).is_ok());
}
