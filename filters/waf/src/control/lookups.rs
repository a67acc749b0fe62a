//! What rules may look up about addresses: the countries and the DNS blocklists of the IP reputation.

use kit::View;
use reputation_tables::{zone_key, zone_name};
use seclang::RuleLookups;
use serde::Deserialize;

use crate::WafZone;

/// What there is to look up in.
pub(super) struct LookupSources {
    /// There is a database of places.
    places: bool,
    /// The zones that are asked.
    zones: Vec<WafZone>,
}

/// What is read of a zone of `security.dnsbl`.
#[derive(Deserialize)]
struct Zone {
    zone: String,
    enabled: bool,
    codes: Vec<String>,
}

impl LookupSources {
    pub(super) fn of(view: &View<'_>) -> LookupSources {
        let global = view.shown("global-config", "global-config");
        let zones = global.and_then(|global| global.pointer("/security/dnsbl/zones").cloned());
        let zones: Vec<Zone> = zones.and_then(|zones| serde_json::from_value(zones).ok()).unwrap_or_default();
        let asked = zones.into_iter().filter(|zone| zone.enabled);
        let zones = asked.map(|zone| WafZone { key: zone_key(&zone.zone, &zone.codes), name: zone_name(&zone.zone) });
        LookupSources { places: view.has_enabled("geo-databases"), zones: zones.collect() }
    }

    /// The zones that rules name, of those that are asked.
    pub(super) fn zones_of(&self, lookups: &RuleLookups) -> Vec<WafZone> {
        self.zones.iter().filter(|zone| lookups.zones.contains(&zone.name)).cloned().collect()
    }

    /// Which lookups find nothing, and why; for people.
    pub(super) fn lacking(&self, lookups: &RuleLookups) -> Vec<String> {
        let mut found = Vec::new();
        if lookups.places && !self.places {
            found.push("`@geoLookup` never matches, and GEO is empty: no `geo-databases` are enabled".to_owned());
        }
        if lookups.reads_geo && !lookups.places {
            found.push("GEO is always empty: no rule has `@geoLookup`".to_owned());
        }
        for name in lookups.zones.iter().filter(|name| self.zones.iter().all(|zone| zone.name != **name)) {
            found.push(format!(
                "`@rbl {name}` never matches: the zone is not asked, add it to `security.dnsbl` of `global-config`"
            ));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_nothing_is_named() {
        let zone = |name: &str| WafZone { name: name.into(), key: format!("key of {name}") };
        let lookups = |places, reads_geo, zones: &[&str]| RuleLookups {
            places,
            reads_geo,
            zones: zones.iter().map(|zone| (*zone).to_owned()).collect(),
        };
        let none = LookupSources { places: false, zones: Vec::new() };
        let all = LookupSources { places: true, zones: vec![zone("a.example"), zone("b.example")] };
        let used = lookups(true, true, &["a.example", "c.example"]);
        let lacking = none.lacking(&used);
        assert_eq!(lacking.len(), 3, "{lacking:?}");
        assert!(lacking[0].contains("geo-databases") && lacking[1].contains("`@rbl a.example`"), "{lacking:?}");
        let lacking = all.lacking(&used);
        assert!(lacking.len() == 1 && lacking[0].contains("`@rbl c.example`"), "{lacking:?}");
        assert_eq!(all.zones_of(&used), [zone("a.example")]);
        assert_eq!(all.lacking(&lookups(false, true, &[])), ["GEO is always empty: no rule has `@geoLookup`"]);
        assert_eq!(none.lacking(&lookups(false, false, &[])), [""; 0]);
    }
}
