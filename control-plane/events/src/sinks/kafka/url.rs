//! Where a topic is.

use std::fmt;

use super::super::server::ServerError;

/// The longest name of a topic, in characters, as Kafka has it.
const MAX_TOPIC: usize = 249;
const PORT: u16 = 9092;

/// The brokers and the topic of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) tls: bool,
    /// `HOST:PORT` each; the first that answers names the others.
    pub(super) brokers: Vec<String>,
    pub(super) topic: String,
}

impl Place {
    /// Reads `kafka://HOST[:9092][,HOST...]/TOPIC`, or `kafkas://` for TLS.
    pub(super) fn parse(url: &str) -> Result<Place, ServerError> {
        // The URL is not shown: it may hold a password in the wrong place.
        let wrong = |why: &str| {
            ServerError::new(format!(
                "the URL of Kafka cannot be used: {why}; write kafka://HOST[:{PORT}][,HOST...]/TOPIC, or kafkas:// for TLS"
            ))
        };
        let (tls, rest) = match url.split_once("://") {
            Some(("kafka", rest)) => (false, rest),
            Some(("kafkas", rest)) => (true, rest),
            _ => return Err(wrong("it has another scheme")),
        };
        let (hosts, topic) = rest.split_once('/').ok_or_else(|| wrong("it has no topic"))?;
        if hosts.contains('@') {
            return Err(wrong("a user and a password have options of their own"));
        }
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if topic.is_empty() || topic.len() > MAX_TOPIC || !topic.bytes().all(is_part) || matches!(topic, "." | "..") {
            return Err(wrong("a topic has 1 to 249 characters of A-Z a-z 0-9 . _ -"));
        }
        let broker = |host: &str| {
            let (name, port) = match host.rsplit_once(':').filter(|(name, _)| !name.is_empty() && !host.ends_with(']'))
            {
                Some((name, port)) => (name, port.parse().map_err(|_| wrong("a port is no number"))?),
                None => (host, PORT),
            };
            let is_host = |byte: u8| is_part(byte) || b"[]:".contains(&byte);
            match !name.is_empty() && name.bytes().all(is_host) {
                true => Ok(format!("{name}:{port}")),
                false => Err(wrong("a host is missing or is no name")),
            }
        };
        let brokers = hosts.split(',').map(broker).collect::<Result<_, _>>()?;
        Ok(Place { tls, brokers, topic: topic.to_owned() })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "kafkas" } else { "kafka" };
        write!(f, "{scheme}://{}/{}", self.brokers.join(","), self.topic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_say_where_the_topic_is() {
        for (url, shown) in [
            ("kafka://a/events", "kafka://a:9092/events"),
            ("kafkas://a:1,b/e.v-e_nts", "kafkas://a:1,b:9092/e.v-e_nts"),
            ("kafka://[::1],[::1]:7/events", "kafka://[::1]:9092,[::1]:7/events"),
        ] {
            assert_eq!(Place::parse(url).unwrap().to_string(), shown);
        }
        for url in [
            "kafka://a",
            "kafka://a/",
            "kafka:///events",
            "kafka://a,/events",
            "kafka://a:x/events",
            "kafka://a/events/more",
            "kafka://a/..",
            "kafka://me:s3cret@a/events",
            "http://a/events",
            "a:9092",
        ] {
            let error = Place::parse(url).unwrap_err().to_string();
            assert!(error.contains("kafkas://") && !error.contains("s3cret"), "{url}: {error}");
        }
    }
}
