//! Batches to a topic of Apache Kafka, or of what speaks its protocol.

mod partitions;
mod url;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rskafka::BackoffConfig;
use rskafka::chrono::{DateTime, Utc};
use rskafka::client::error::Error;
use rskafka::client::partition::{Compression, PartitionClient, UnknownTopicHandling};
use rskafka::client::{ClientBuilder, Credentials, SaslConfig};
use rskafka::record::Record;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::facts::Facts;
use super::parts::{Parts, Requests, Settled, Unsent};
use super::server::{ServerError, retry};
use super::{Failure, Sink};
use crate::queue::{Bounds, Line};
use base::clock;
use partitions::{Partition, Partitions};
use url::Place;

/// How long the topic and its partitions may take to be found.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How long one partition may take to be opened, with what the client tries again by itself.
const OPENING: Duration = Duration::from_secs(10);
/// How long the client tries again what fails by itself: another broker may lead a partition by then.
const PERSIST: Duration = Duration::from_secs(5);

/// A topic that takes events, one record each. Its `Debug` shows no secret.
#[derive(Clone)]
pub struct Kafka {
    topic: Topic,
    parts: Parts,
}

struct Topic {
    place: Place,
    tls: Option<Arc<rustls::ClientConfig>>,
    login: Option<KafkaLogin>,
    partitions: Mutex<Partitions<PartitionClient>>,
}

/// Who we are to the brokers.
#[derive(Clone, Debug)]
pub struct KafkaLogin {
    /// The name of the user.
    pub user: String,
    /// The file of the password; read for each connection, its last line end is no part of the password.
    pub password_file: PathBuf,
    /// How the password is shown to the broker.
    pub mechanism: SaslMechanism,
}

/// A mechanism of SASL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaslMechanism {
    /// The password itself: for TLS only (RFC 4616).
    Plain,
    /// SCRAM-SHA-256 (RFC 7677).
    ScramSha256,
    /// SCRAM-SHA-512.
    ScramSha512,
}

impl Kafka {
    /// A topic at `kafka://HOST[:9092][,HOST...]/TOPIC`, or `kafkas://` for TLS; nothing is sent yet. `ca_file` names the certificates
    /// to trust instead of those of the system.
    ///
    /// # Errors
    ///
    /// The URL is none that can be used, or there are no certificates to trust.
    pub fn new(url: &str, ca_file: Option<&Path>, login: Option<KafkaLogin>) -> Result<Kafka, ServerError> {
        let place = Place::parse(url)?;
        let tls = place.tls.then(|| outbound::client_config(ca_file)).transpose();
        let tls = tls.map_err(|error| ServerError::new(error.to_string()))?.map(Arc::new);
        if login.as_ref().is_some_and(|login| login.mechanism == SaslMechanism::Plain) && tls.is_none() {
            return Err(ServerError::new(
                "the mechanism `plain` sends the password in clear text: write kafkas:// for TLS, or use scram-sha-512"
                    .to_owned(),
            ));
        }
        let topic = Topic { place, tls, login, partitions: Mutex::default() };
        Ok(Kafka { topic, parts: Parts::new(<Kafka as Sink>::BATCH.lines) })
    }

    /// Scheme, hosts and topic.
    #[must_use]
    pub fn origin(&self) -> String {
        self.topic.place.to_string()
    }
}

impl Topic {
    /// Finds the topic, and opens its partitions.
    async fn connect(&self) -> Result<Vec<Result<PartitionClient, String>>, String> {
        let persistence = BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(1),
            base: 3.0,
            deadline: Some(PERSIST),
        };
        let mut builder =
            ClientBuilder::new(self.place.brokers.clone()).client_id("palisade").backoff_config(persistence);
        if let Some(tls) = &self.tls {
            builder = builder.tls_config(Arc::clone(tls));
        }
        if let Some(login) = &self.login {
            builder = builder.sasl_config(login.sasl().await?);
        }
        let client = builder.build().await.map_err(|error| error.to_string())?;
        let topic = &self.place.topic;
        let topics = client.list_topics().await.map_err(|error| error.to_string())?;
        let found = topics.into_iter().find(|found| found.name == *topic);
        let found = found.ok_or_else(|| format!("there is no topic `{topic}` that this user may see"))?;
        let client = Arc::new(client);
        let mut opening = JoinSet::new();
        // At once: one without a leader takes as long as the client persists.
        for number in found.partitions {
            let (client, topic) = (Arc::clone(&client), topic.clone());
            opening.spawn(async move {
                let partition = client.partition_client(topic, number, UnknownTopicHandling::Error);
                (number, in_time(number, partition).await)
            });
        }
        if opening.is_empty() {
            return Err(format!("the topic `{topic}` has no partition"));
        }
        let mut opened = opening.join_all().await;
        opened.sort_unstable_by_key(|(number, _)| *number);
        Ok(opened.into_iter().map(|(_, partition)| partition).collect())
    }

    /// Finds the topic and opens its partitions, if that is to be done.
    async fn open(&self, partitions: &mut Partitions<PartitionClient>) -> Result<(), String> {
        if !partitions.are_wanted() {
            return Ok(());
        }
        let connected = tokio::time::timeout(TIMEOUT, self.connect()).await;
        let connected =
            connected.unwrap_or_else(|_| Err(format!("the topic is not found within {} s", TIMEOUT.as_secs())));
        partitions.open(connected.unwrap_or_else(|reason| vec![Err(reason)]))
    }
}

/// A partition, unless opening it takes too long: a broker that is gone may never answer.
async fn in_time<P>(number: i32, opening: impl Future<Output = Result<P, Error>>) -> Result<P, String> {
    let opened = tokio::time::timeout(OPENING, opening).await;
    let opened = opened.map_err(|_| format!("partition {number}: no answer within {} s", OPENING.as_secs()))?;
    opened.map_err(|error| format!("partition {number}: {error}"))
}

impl Partition for PartitionClient {
    async fn produce(&self, part: &[Line]) -> Result<(), Error> {
        let now = clock::now_millis();
        let records = part.iter().map(|line| record(line, now)).collect();
        PartitionClient::produce(self, records, Compression::NoCompression).await.map(drop)
    }
}

impl Requests for Topic {
    async fn send(&self, part: &[Line]) -> Result<Settled, Unsent> {
        let mut partitions = self.partitions.lock().await;
        self.open(&mut partitions).await.map_err(|reason| retry(reason, None))?;
        partitions.produce(part).await?;
        Ok(Settled { first: part.len(), ..Settled::default() })
    }
}

impl KafkaLogin {
    async fn sasl(&self) -> Result<SaslConfig, String> {
        let read = tokio::fs::read_to_string(&self.password_file).await;
        let text = read.map_err(|error| format!("{}: {error}", self.password_file.display()))?;
        let credentials = Credentials::new(self.user.clone(), text.trim_end_matches(['\r', '\n']).to_owned());
        Ok(match self.mechanism {
            SaslMechanism::Plain => SaslConfig::Plain(credentials),
            SaslMechanism::ScramSha256 => SaslConfig::ScramSha256(credentials),
            SaslMechanism::ScramSha512 => SaslConfig::ScramSha512(credentials),
        })
    }
}

impl Sink for Kafka {
    /// Under the usual limit of a broker, 1 MiB for a batch of records.
    const BATCH: Bounds = Bounds { lines: 500, bytes: 900 << 10 };

    async fn write(&mut self, batch: &[Line]) -> Result<(), Failure> {
        self.parts.write(&self.topic, batch).await
    }
}

/// The record of an event that is sent at `now_millis`. Brokers refuse a batch with a record of the future, so that one event of a gateway
/// with a wrong clock would keep all others from the topic: such a record has the time of sending.
fn record(line: &Line, now_millis: u64) -> Record {
    let event = serde_json::from_slice(line).unwrap_or_default();
    let time = Facts::of(&event).time.unwrap_or(now_millis).min(now_millis);
    let timestamp: DateTime<Utc> =
        i64::try_from(time).ok().and_then(DateTime::from_timestamp_millis).unwrap_or_default();
    Record { key: None, value: Some(line.to_vec()), headers: Default::default(), timestamp }
}

impl fmt::Debug for Kafka {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Kafka").field(&self.origin()).finish()
    }
}

impl Clone for Topic {
    /// With a connection of its own.
    fn clone(&self) -> Topic {
        let Topic { place, tls, login, .. } = self;
        Topic { place: place.clone(), tls: tls.clone(), login: login.clone(), partitions: Mutex::default() }
    }
}

#[cfg(test)]
mod tests;
