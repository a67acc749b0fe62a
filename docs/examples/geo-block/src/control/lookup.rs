//! `geo-block/_lookup` in the console: the country that the plugin finds for an address.

use std::net::IpAddr;

use kit::{
    BodyKind, FieldProblem, Operation, OperationAnswer, OperationBody, OperationContext, OperationGroup,
    OperationMethod,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tables::{Ranges, TableIndex as _};

pub(super) const OPERATIONS: &[Operation] = &[Operation {
    path: "/geo-block/_lookup",
    method: OperationMethod::Post,
    id: "geoLookup",
    group: &OperationGroup { name: "geo block", about: "The address ranges of countries." },
    summary: "Find the country of an address",
    description: "Looks in the table that gateways get of all entities.",
    body: BodyKind::of::<GeoLookup>(),
    body_text: "The address, at most 1 KiB.",
    max_body: 1024,
    example: || json!({ "address": "192.0.2.7" }),
    answer_text: "The country, or null.",
    answer,
    schemas: &[],
    refusal: None,
    busy: "other addresses are being looked up",
    at_once: false,
    audit: None,
}];

/// An address to look up.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GeoLookup {
    /// IPv4 or IPv6.
    address: String,
}

impl OperationBody for GeoLookup {
    const SCHEMA: &'static str = "GeoLookup";

    fn run(self, context: &OperationContext<'_>) -> OperationAnswer {
        let Ok(address) = self.address.parse::<IpAddr>() else {
            let message = format!("`{}` is not an address", self.address.escape_debug());
            return OperationAnswer::invalid(&FieldProblem::new("/address", message).expected("such as `192.0.2.7`"));
        };
        let table = super::table(context.entities).and_then(|base| Ranges::load(base).map_err(|why| why.to_string()));
        OperationAnswer::Done(match table {
            Ok(ranges) => {
                let country = ranges.find(address).and_then(|label| ranges.name(label));
                json!({ "country": country.map(String::from_utf8_lossy), "error": null })
            }
            Err(error) => json!({ "country": null, "error": error }),
        })
    }
}

fn answer() -> Value {
    json!({
        "type": "object",
        "required": ["country", "error"],
        "properties": {
            "country": { "type": ["string", "null"], "description": "ISO 3166-1, two capital letters." },
            "error": { "type": ["string", "null"], "description": "Why the entities make no table; null if they do." },
        },
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use kit::{Collection, EntitySource, Head, Item, Slot, Tools};

    use super::super::CountryRanges;
    use super::*;

    /// All entities, which are of one collection.
    struct Lists(Arc<Collection>);

    impl EntitySource for Lists {
        fn slot(&self, _collection: &str, id: &str) -> Option<&Slot> {
            self.0.get(id)
        }

        fn collection(&self, _collection: &str) -> Option<&Arc<Collection>> {
            Some(&self.0)
        }
    }

    fn list(id: &str, enabled: bool, country: &str, range: &str) -> (String, Slot) {
        let ranges = BTreeMap::from([(country.to_owned(), vec![range.to_owned()])]);
        let head = Head { id: id.to_owned(), ..Head::default() };
        let entity = Arc::new(Item { head, body: CountryRanges { enabled, ranges } });
        (id.to_owned(), Slot { revision: 1, entity })
    }

    #[test]
    fn an_address_has_the_country_of_the_enabled_ranges() {
        let lists = [list("a", true, "AA", "192.0.2.0/24"), list("b", false, "BB", "198.51.100.0/24")];
        let lists = Lists(Arc::new(Collection::from(lists)));
        let context = OperationContext {
            entities: &lists,
            tools: &Tools::default(),
            at_work: None,
            now_millis: 0,
            writing: None,
            traffic: None,
        };
        let ask = |address: &str| GeoLookup { address: address.to_owned() }.run(&context);
        let found = |country: Option<&str>| OperationAnswer::Done(json!({ "country": country, "error": null }));
        assert_eq!(ask("192.0.2.7"), found(Some("AA")));
        assert_eq!(ask("::ffff:192.0.2.7"), found(Some("AA")));
        assert_eq!(ask("198.51.100.7"), found(None), "the entity is disabled");
        let OperationAnswer::Refused(answer) = ask("here") else { panic!("this is not an address") };
        let description = "/address: `here` is not an address (expected such as `192.0.2.7`)";
        assert_eq!(answer, json!({ "error": "invalid_body", "error_description": description }));
    }
}
