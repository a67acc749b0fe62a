//! The control-plane side: a collection of address ranges by country, how the plugin is configured, how the ranges get to gateways, and
//! an endpoint of the console.

mod lookup;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use kit::checks::{status, weight};
use kit::{CompileConfig, Entity, EntitySource, FieldProblem, Head, Kind, Plugin, References, Section, Sources, typed};
use prost::Message as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tables::{LabelWidth, RangesBuilder};

use crate::{GeoBlockStep, TABLE};

/// `SvcGeoBlock`: refuses requests from the countries that its configuration lists.
pub const PLUGIN: Plugin = Plugin {
    name: crate::PLUGIN.name,
    title: "geo block",
    documentation: include_str!("../docs.md"),
    classes: &["SvcGeoBlock"],
    order: 150,
    kinds: &[Kind::of::<CountryRanges>()],
    preset: Section {
        switch: Some("geo_block"),
        fields: &["geo_countries"],
        lay_down: Some(|config| {
            let fields: Fields = Section::read(config, &["geo_block", "geo_countries"])?;
            Ok((fields.geo_block.then(|| json!({ "countries": fields.geo_countries })), None))
        }),
        ..Section::NONE
    },
    operations: lookup::OPERATIONS,
    compile: Some(COMPILE),
    gather: Some(|sources| Box::pin(gather(sources))),
    example: true,
    ..Plugin::NONE
};

/// The address ranges of countries. All entities of the collection together are one table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CountryRanges {
    /// False: its ranges are not used. Default true.
    pub enabled: bool,
    /// Addresses and CIDRs by country (ISO 3166-1, two capital letters).
    pub ranges: BTreeMap<String, Vec<String>>,
}

/// The plugin's configuration.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    /// The countries whose callers are refused.
    countries: Vec<String>,
    /// The status of a refusal.
    #[serde(default = "forbidden")]
    status: u16,
    /// True: nothing is refused, callers add to the score.
    #[serde(default)]
    monitor: bool,
    /// What a caller of these countries adds to the score.
    #[serde(default = "half")]
    weight: f64,
}

/// What it reads of a preset's configuration.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Fields {
    geo_block: bool,
    geo_countries: Vec<String>,
}

const COMPILE: CompileConfig = |config, _context| {
    let config: Config = typed(Value::Object(config.clone())).map_err(|problem| vec![problem])?;
    let countries = config.countries.iter().enumerate();
    let wrong = countries.filter_map(|(index, name)| country(&format!("/countries/{index}"), name));
    let problems: Vec<FieldProblem> =
        wrong.chain(status("/status", config.status)).chain(weight("/weight", config.weight)).collect();
    if !problems.is_empty() {
        return Err(problems);
    }
    let Config { countries, status, monitor, weight } = config;
    Ok(Some(GeoBlockStep { countries, status: status.into(), monitor, weight }.encode_to_vec()))
};

/// Publishes the table whenever an entity has changed it.
async fn gather(mut sources: Sources) {
    let mut published = None;
    loop {
        let entities = Arc::clone(&sources.entities.borrow_and_update());
        let base = table(&*entities);
        if published.as_ref() != Some(&base) {
            let outcome = match base.clone() {
                Ok(base) => sources.publish_ranges(TABLE, base).await.map_err(|error| error.to_string()),
                Err(error) => Err(error),
            };
            // The table before stays in force.
            outcome.unwrap_or_else(|error| sources.trouble(&error));
            published = Some(base);
        }
        if sources.entities.changed().await.is_err() {
            return;
        }
    }
}

/// All enabled ranges, each labelled with its country. Of ranges that overlap, the last one holds.
fn table(entities: &dyn EntitySource) -> Result<Vec<u8>, String> {
    let mut builder = RangesBuilder::new(LabelWidth::Two);
    let mut labels: BTreeMap<String, u32> = BTreeMap::new();
    let view = kit::View::new(entities);
    for lists in view.all::<CountryRanges>().filter(|lists| lists.enabled) {
        for (country, ranges) in &lists.ranges {
            let next = u32::try_from(labels.len()).unwrap_or(u32::MAX).saturating_add(1);
            let label = *labels.entry(country.clone()).or_insert(next);
            for (first, last) in ranges.iter().filter_map(|range| bounds(range)) {
                builder.set(first, last, label).map_err(|error| error.to_string())?;
            }
        }
    }
    for (country, label) in &labels {
        builder.name(*label, country.as_bytes()).map_err(|error| error.to_string())?;
    }
    builder.build().map_err(|error| error.to_string())
}

/// The first and the last address of a range.
fn bounds(text: &str) -> Option<(IpAddr, IpAddr)> {
    let alone = || Some(IpNet::from(text.parse::<IpAddr>().ok()?));
    let network = text.parse::<IpNet>().ok().or_else(alone)?;
    Some((network.network(), network.broadcast()))
}

fn country(pointer: &str, name: &str) -> Option<FieldProblem> {
    (name.len() != 2 || !name.bytes().all(|byte| byte.is_ascii_uppercase())).then(|| {
        FieldProblem::new(pointer, format!("`{}` is not a country", name.escape_debug()))
            .expected("two capital letters, such as `NL`")
    })
}

fn forbidden() -> u16 {
    403
}

fn half() -> f64 {
    50.0
}

impl Default for CountryRanges {
    fn default() -> CountryRanges {
        CountryRanges { enabled: true, ranges: BTreeMap::new() }
    }
}

impl Entity for CountryRanges {
    const COLLECTION: &'static str = "country-ranges";
    const KIND: &'static str = "country-range";

    fn check(&self, _head: &Head, _refs: &dyn References) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        for (name, ranges) in &self.ranges {
            let place = format!("/ranges/{}", kit::token(name));
            problems.extend(country(&place, name));
            for (index, range) in ranges.iter().enumerate().filter(|(_, range)| bounds(range).is_none()) {
                let message = format!("`{}` is neither an address nor a CIDR", range.escape_debug());
                let problem = FieldProblem::new(format!("{place}/{index}"), message);
                problems.push(problem.expected("such as `192.0.2.7` or `2001:db8::/32`"));
            }
        }
        problems
    }

    fn is_enabled(&self) -> bool {
        self.enabled
    }
}
