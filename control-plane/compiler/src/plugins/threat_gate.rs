//! `SvcThreatGate`: refuses callers under a standing ban.

use prost::Message as _;
use snapshot::ThreatGateStep;

use super::{Guard, PluginKind, policy_of};

pub(super) const KIND: PluginKind = PluginKind {
    name: "threat-gate",
    compile: |config, context| {
        let policy = Some(policy_of(config, context, Guard::Gate)?);
        Ok(Some(ThreatGateStep { policy }.encode_to_vec()))
    },
};
