//! An example of a plugin: requests from the countries that its configuration lists are refused, or add to the score.
//!
//! `docs/writing-a-plugin.md` explains it step by step. What runs in a filter is here; what the control plane needs to know is in
//! `control`.

#[cfg(feature = "control")]
pub mod control;
mod messages;

use std::collections::BTreeSet;
use std::net::IpAddr;

use exchange::{
    Build, Category, Exchange, Host, Plugin, PluginDefinition, RangesTable, Refusal, Role, Signal, Slot, Verdict,
};
use prost::Message as _;

pub use messages::GeoBlockStep;

/// The plugin.
pub const PLUGIN: PluginDefinition = PluginDefinition::new("geo-block", build).role(Role::Detector);

/// The table of address ranges, each labelled with its country.
pub const TABLE: &str = "geo-block.countries";

struct GeoBlock {
    countries: BTreeSet<[u8; 2]>,
    table: RangesTable,
    step: GeoBlockStep,
}

fn build(config: &[u8], build: &mut Build<'_>) -> Result<Box<dyn Plugin>, String> {
    let step = GeoBlockStep::decode(config).map_err(|error| error.to_string())?;
    let countries = step.countries.iter().map(|country| country.as_bytes().try_into());
    let countries = countries.collect::<Result<_, _>>().map_err(|_| "a country is two letters")?;
    Ok(Box::new(GeoBlock { countries, table: build.ranges(TABLE)?, step }))
}

impl Plugin for GeoBlock {
    fn access(&self, exchange: &mut Exchange, _slot: &mut Slot, host: &dyn Host) -> Verdict {
        // Without the table, and without an address, nothing is known of the caller: the request passes.
        let Some(country) = self.country(&exchange.caller.ip).filter(|country| self.countries.contains(country)) else {
            return Verdict::Pass;
        };
        let country = String::from_utf8_lossy(&country).into_owned();
        exchange.score.add(Signal {
            source: PLUGIN.name.into(),
            kind: "country".into(),
            weight: self.step.weight,
            confidence: 1.0,
            tag: format!("geo-block:{country}").into(),
            detail: country.clone(),
            at: host.now(),
        });
        if self.step.monitor {
            return Verdict::Pass;
        }
        let status = u16::try_from(self.step.status).unwrap_or(403);
        Verdict::Refuse(Refusal::new(status, Category::Threat, format!("requests from {country} are refused")).scored())
    }
}

impl GeoBlock {
    fn country(&self, address: &str) -> Option<[u8; 2]> {
        let address: IpAddr = address.parse().ok()?;
        self.table.read(|ranges| {
            let label = ranges.find(address)?;
            ranges.name(label)?.try_into().ok()
        })?
    }
}

#[cfg(test)]
mod tests;
