//! `SvcThreatResponse`: reads the score and acts on it.

use prost::Message as _;
use snapshot::ThreatResponseStep;

use super::super::guards::Guard;
use super::kind::PluginKind;
use super::policies::policy_of;

pub(super) const KIND: PluginKind = PluginKind {
    name: "threat-response",
    compile: |config, context| {
        let policy = Some(policy_of(config, context, Guard::Response)?);
        Ok(Some(ThreatResponseStep { policy }.encode_to_vec()))
    },
};
