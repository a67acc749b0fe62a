//! The formats that events are exported in.

use std::sync::Arc;

use super::ocsf;
use super::queue::Line;

/// The format of exported events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventFormat {
    /// As gateways send them: in the fields of the Elastic Common Schema.
    #[default]
    Ecs,
    /// In the Open Cybersecurity Schema Framework.
    Ocsf,
}

impl EventFormat {
    /// The data stream of Elasticsearch or OpenSearch that events of this format go to by default.
    #[must_use]
    pub fn data_stream(self) -> &'static str {
        match self {
            Self::Ecs => "logs-palisade.events-default",
            Self::Ocsf => "logs-palisade.ocsf-default",
        }
    }

    /// The template of the index for events of this format, JSON: data streams whose names begin as that of
    /// [`EventFormat::data_stream`].
    #[must_use]
    pub fn index_template(self) -> &'static str {
        match self {
            Self::Ecs => include_str!("sinks/elasticsearch/index-template.json"),
            Self::Ocsf => include_str!("sinks/elasticsearch/index-template-ocsf.json"),
        }
    }

    /// An event in this format, made at `now_millis`.
    pub(super) fn line(self, line: &Line, now_millis: u64) -> Line {
        match self {
            Self::Ecs => Arc::clone(line),
            Self::Ocsf => serde_json::Value::Object(ocsf::map(line, now_millis)).to_string().into_bytes().into(),
        }
    }
}
