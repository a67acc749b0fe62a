//! `SvcThreatGate`: refuses callers under a standing ban.

use prost::Message as _;
use snapshot::ThreatGateStep;

use super::super::guards::Guard;
use super::kind::PluginKind;
use super::policies::policy_of;

pub(super) const KIND: PluginKind = PluginKind {
    name: "threat-gate",
    compile: |config, context| {
        let policy = Some(policy_of(config, context, Guard::Gate)?);
        Ok(Some(ThreatGateStep { policy }.encode_to_vec()))
    },
};
