//! `security` of `global-config`: settings of the decision fabric and of plugins.

use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::plugins::{ALL, Plugin};
use super::{FieldProblem, number, unused};
use kit::checks::within;
use kit::{AnySettings, PluginSettings, SettingsKind};

/// Settings of the decision fabric, and of plugins.
#[derive(Clone, Debug, PartialEq)]
pub struct SecuritySettings {
    /// The ledger, which bans callers that are refused repeatedly.
    pub ledger: LedgerSettings,
    /// Limits of `tarpit`.
    pub tarpit: TarpitSettings,
    /// How reports of gateways are evaluated.
    pub incidents: IncidentSettings,
    /// Those of each plugin, in a field of its own beside these.
    pub plugins: PluginSettings,
}

/// The fields that belong to no plugin, for the schema.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SecuritySettings", description = "Settings of the decision fabric.")]
#[allow(dead_code, reason = "its schema is all that is needed of it")]
struct Core {
    /// The ledger, which bans callers that are refused repeatedly.
    #[serde(default)]
    ledger: LedgerSettings,
    /// Limits of `tarpit`.
    #[serde(default)]
    tarpit: TarpitSettings,
    /// How reports of gateways are evaluated.
    #[serde(default)]
    incidents: IncidentSettings,
}

/// How reports of gateways are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct IncidentSettings {
    /// Seconds without a stream or a link after which the status of a gateway is stale, 10 to 604800. Default 300.
    #[schemars(range(min = 10, max = 604_800))]
    pub stale_after_seconds: u64,
    /// Seconds within which an event belongs to the incident of the event before it, and after which a silent incident is no
    /// longer listed in the console, 60 to 86400. Default 1800.
    #[schemars(range(min = 60, max = 86_400))]
    pub window_seconds: u64,
    /// The most events that an incident shows, 1 to 100. Default 20.
    #[schemars(range(min = 1, max = 100))]
    pub timeline: u32,
    /// Seconds after which a silent incident, and the state that an operator gave one, is forgotten, 3600 to 31536000; not
    /// less than the window. Default 604800.
    #[schemars(range(min = 3600, max = 31_536_000))]
    pub kept_seconds: u64,
    /// Seconds after an incident was resolved within which further events do not open it again, 0 to 3600. Default 5.
    #[schemars(range(max = 3600))]
    pub reopen_grace_seconds: u64,
    /// The most incidents that are held, 1000 to 100000; of more, those longest silent are forgotten, acknowledged
    /// ones last. Default 50000.
    #[schemars(range(min = 1000, max = 100_000))]
    pub max_held: u32,
}

/// Limits of `tarpit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TarpitSettings {
    /// The most requests that a gateway delays at once, 1 to 100000. Further ones are forwarded or refused without a delay.
    /// Default 1000.
    #[schemars(range(min = 1, max = 100_000))]
    pub max_held: u32,
}

/// The ledger: each enforced denial charges its score to the most specific identity of the caller. An identity that reaches
/// the threshold within the window is banned, and its total starts at 0 again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LedgerSettings {
    /// False: the ledger bans no caller. Default true.
    pub enabled: bool,
    /// How long a charge counts, in seconds, 1 to 604800. Default 3600.
    #[schemars(range(min = 1, max = 604_800))]
    pub window_seconds: u64,
    /// The total from which an identity is banned, 1 to 1000000. Default 100.
    #[serde(with = "number")]
    #[schemars(with = "f64", range(min = 1, max = 1_000_000))]
    pub ban_threshold: f64,
    /// The duration of these bans in seconds, 1 to 315360000. Default 3600.
    #[schemars(range(min = 1, max = 315_360_000))]
    pub ban_duration_seconds: u64,
    /// Whether requests that the WAF refuses are charged `waf_weight`. Default false.
    pub feed_waf_blocks: bool,
    /// Whether matches of a monitoring WAF are charged `waf_weight`. Default false.
    pub feed_waf_monitored: bool,
    /// The points charged for a finding of the WAF, 0 to 100. Default 25.
    #[serde(with = "number")]
    #[schemars(with = "f64", range(min = 0, max = 100))]
    pub waf_weight: f64,
}

// === impl SecuritySettings ===

/// Every field, the core's first.
static FIELDS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    ["ledger", "tarpit", "incidents"].into_iter().chain(plugin_settings().map(|(_, kind)| kind.field)).collect()
});

/// The settings of all plugins.
fn plugin_settings() -> impl Iterator<Item = (&'static Plugin, &'static SettingsKind)> {
    ALL.iter().flat_map(|plugin| plugin.settings.iter().map(|kind| (*plugin, kind)))
}

impl SecuritySettings {
    /// Those of plugins, by field, in the order of plugins.
    fn of_plugins(&self) -> impl Iterator<Item = (&'static str, &dyn AnySettings)> {
        plugin_settings().filter_map(|(_, kind)| Some((kind.field, self.plugins.field(kind.field)?)))
    }

    /// What is wrong with them; pointers are relative to `security`.
    pub(super) fn check(&self) -> Vec<FieldProblem> {
        let under = |field: &str, found: Vec<FieldProblem>| {
            found.into_iter().map(|problem| problem.under(&format!("/{field}"))).collect::<Vec<_>>()
        };
        let mut problems = under("ledger", self.ledger.check());
        problems.extend(within("/tarpit/max_held", self.tarpit.max_held, 1..=100_000));
        problems.extend(under("incidents", self.incidents.check()));
        problems.extend(self.of_plugins().flat_map(|(field, settings)| under(field, settings.check())));
        problems
    }

    /// Those of plugins that this release does not have, where something in them was changed.
    pub(super) fn unused(&self) -> Vec<FieldProblem> {
        let is_changed = |settings: &dyn AnySettings| !settings.is_default();
        let changed = plugin_settings().filter(|(_, kind)| self.plugins.field(kind.field).is_some_and(is_changed));
        changed.filter_map(|(plugin, kind)| unused::of_settings(plugin, kind)).collect()
    }

    /// The places in the schema of what [`SecuritySettings::unused`] finds, and what is said of them.
    pub(super) fn unused_fields() -> Vec<(String, String)> {
        let place = |field: &str| format!("/$defs/SecuritySettings/properties/{field}");
        plugin_settings()
            .filter_map(|(plugin, kind)| Some((place(kind.field), unused::settings_note(plugin, kind)?)))
            .collect()
    }
}

impl Default for SecuritySettings {
    fn default() -> SecuritySettings {
        let mut plugins = PluginSettings::default();
        for (_, kind) in plugin_settings() {
            plugins.insert(kind.field, kind.defaults());
        }
        SecuritySettings {
            ledger: LedgerSettings::default(),
            tarpit: TarpitSettings::default(),
            incidents: IncidentSettings::default(),
            plugins,
        }
    }
}

impl Serialize for SecuritySettings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("ledger", &self.ledger)?;
        fields.serialize_entry("tarpit", &self.tarpit)?;
        fields.serialize_entry("incidents", &self.incidents)?;
        for (field, settings) in self.of_plugins() {
            fields.serialize_entry(field, &settings.shown())?;
        }
        fields.end()
    }
}

impl<'de> Deserialize<'de> for SecuritySettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SecuritySettings, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = SecuritySettings;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SecuritySettings, A::Error> {
                let mut settings = SecuritySettings::default();
                while let Some(field) = map.next_key::<String>()? {
                    match field.as_str() {
                        "ledger" => settings.ledger = map.next_value()?,
                        "tarpit" => settings.tarpit = map.next_value()?,
                        "incidents" => settings.incidents = map.next_value()?,
                        other => {
                            let known = plugin_settings().find(|(_, kind)| kind.field == other);
                            let Some((_, kind)) = known else { return Err(A::Error::unknown_field(other, &FIELDS)) };
                            let read = kind.read(map.next_value()?).map_err(A::Error::custom)?;
                            settings.plugins.insert(kind.field, read);
                        }
                    }
                }
                Ok(settings)
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

impl JsonSchema for SecuritySettings {
    fn schema_name() -> Cow<'static, str> {
        "SecuritySettings".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Core::json_schema(generator);
        for (_, kind) in plugin_settings() {
            let mut field = kind.schema(generator);
            field.insert("description".to_owned(), kind.description.into());
            field.insert("default".to_owned(), kind.defaults().shown());
            if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
                properties.insert(kind.field.to_owned(), field.into());
            }
        }
        schema
    }
}

// === impl IncidentSettings ===

impl IncidentSettings {
    fn check(&self) -> Vec<FieldProblem> {
        let longest = self.kept_seconds.clamp(60, 86_400);
        let found = [
            within("/stale_after_seconds", self.stale_after_seconds, 10..=604_800),
            within("/window_seconds", self.window_seconds, 60..=longest),
            within("/timeline", self.timeline, 1..=100),
            within("/kept_seconds", self.kept_seconds, 3600..=31_536_000),
            within("/reopen_grace_seconds", self.reopen_grace_seconds, 0..=3600),
            within("/max_held", self.max_held, 1000..=100_000),
        ];
        found.into_iter().flatten().collect()
    }
}

// === impl TarpitSettings ===

impl Default for TarpitSettings {
    fn default() -> TarpitSettings {
        TarpitSettings { max_held: 1000 }
    }
}

impl Default for IncidentSettings {
    fn default() -> IncidentSettings {
        IncidentSettings {
            stale_after_seconds: 300,
            window_seconds: 1800,
            timeline: 20,
            kept_seconds: 604_800,
            reopen_grace_seconds: 5,
            max_held: 50_000,
        }
    }
}

// === impl LedgerSettings ===

impl Default for LedgerSettings {
    fn default() -> LedgerSettings {
        LedgerSettings {
            enabled: true,
            window_seconds: 3600,
            ban_threshold: 100.0,
            ban_duration_seconds: 3600,
            feed_waf_blocks: false,
            feed_waf_monitored: false,
            waf_weight: 25.0,
        }
    }
}

impl LedgerSettings {
    fn check(&self) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        let mut within = |field: &str, holds: bool, expected: &str| {
            if !holds {
                problems.push(FieldProblem::new(field, "out of range").expected(expected));
            }
        };
        within("/window_seconds", (1..=604_800).contains(&self.window_seconds), "1 to 604800");
        within("/ban_threshold", (1.0..=1_000_000.0).contains(&self.ban_threshold), "1 to 1000000");
        within("/ban_duration_seconds", (1..=315_360_000).contains(&self.ban_duration_seconds), "1 to 315360000");
        within("/waf_weight", (0.0..=100.0).contains(&self.waf_weight), "0 to 100");
        problems
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems(settings: Value) -> Vec<String> {
        let settings: SecuritySettings = serde_json::from_value(settings).unwrap();
        settings.check().into_iter().map(|problem| problem.pointer).collect()
    }

    #[test]
    fn settings_have_the_limits_of_their_schema() {
        let schema = Value::from(schemars::schema_for!(SecuritySettings));
        fn numbers(schema: &Value, of: &Value, place: &str, found: &mut Vec<(String, f64, f64)>) {
            let of = match of["$ref"].as_str() {
                Some(target) => schema.pointer(target.trim_start_matches('#')).unwrap(),
                None => of,
            };
            if let Some(maximum) = of["maximum"].as_f64() {
                found.push((place.to_owned(), of["minimum"].as_f64().unwrap(), maximum));
            }
            for (name, property) in of["properties"].as_object().into_iter().flatten() {
                numbers(schema, property, &format!("{place}/{name}"), found);
            }
        }
        let mut found = Vec::new();
        numbers(&schema, &schema, "", &mut found);
        assert!(found.len() > 15, "{found:?}");
        for (place, minimum, maximum) in found {
            let with = |value: f64| {
                let value = if value.fract() == 0.0 { json!(value as i64) } else { json!(value) };
                place.rsplit('/').filter(|step| !step.is_empty()).fold(value, |inner, step| json!({ step: inner }))
            };
            // A window of a day is fine where incidents are kept that long.
            assert_eq!(problems(with(maximum)), [] as [String; 0], "{place} at {maximum}");
            assert_eq!(
                problems(with(minimum)).is_empty(),
                place != "/incidents/kept_seconds" || minimum >= 1800.0,
                "{place}"
            );
            assert!(problems(with(maximum + 1.0)).contains(&place), "{place} beyond {maximum}");
            if minimum > 0.0 {
                assert!(problems(with(minimum - 1.0)).contains(&place), "{place} below {minimum}");
            }
        }
        assert_eq!(
            problems(json!({ "incidents": { "kept_seconds": 3600, "window_seconds": 7200 } })),
            ["/incidents/window_seconds"]
        );
    }

    #[test]
    fn each_setting_of_the_specification_has_its_default() {
        let expected = json!({
            "ledger": {
                "enabled": true, "window_seconds": 3600, "ban_threshold": 100, "ban_duration_seconds": 3600,
                "feed_waf_blocks": false, "feed_waf_monitored": false, "waf_weight": 25
            },
            "tarpit": { "max_held": 1000 },
            "incidents": {
                "stale_after_seconds": 300, "window_seconds": 1800, "timeline": 20, "kept_seconds": 604800,
                "reopen_grace_seconds": 5, "max_held": 50000
            },
            "api": { "inventory": { "max_records": 20000 } },
            "objects": { "max_keys": 20000 },
            "bots": {
                "resolvers": [], "timeout_millis": 2000, "lookups_per_second": 50, "verified_ttl_seconds": 21600,
                "impersonator_ttl_seconds": 900, "failed_ttl_seconds": 60, "max_entries": 100000
            },
            "dnsbl": {
                "zones": [], "resolvers": [], "wait_millis": 100, "timeout_millis": 2000, "lookups_per_second": 100, "listed_ttl_seconds": 900, "unlisted_ttl_seconds": 300,
                "failed_ttl_seconds": 30, "max_entries": 100000
            },
            "maze": {
                "path": "/archive/", "page_bytes": 8192, "delay_millis": 1000, "pages_per_caller": 500,
                "kilobytes_per_caller": 4096, "processor_millis_per_caller": 10, "pages": 50000, "kilobytes": 409600,
                "processor_millis": 100
            },
            "login": {
                "breached_file": "", "breached_url": "", "allow_private": false, "wait_millis": 200, "timeout_millis": 5000
            },
            "traffic": { "max_keys": 200000 }
        });
        assert_eq!(serde_json::to_value(SecuritySettings::default()).unwrap(), expected);
        // As the specification writes them.
        let named = json!({ "api": { "inventory": { "max-records": 7 } }, "objects": { "max-keys": 8 } });
        let settings: SecuritySettings = serde_json::from_value(named).unwrap();
        let shown = serde_json::to_value(&settings).unwrap();
        assert_eq!(shown["api"], json!({ "inventory": { "max_records": 7 } }));
        assert_eq!(shown["objects"], json!({ "max_keys": 8 }));
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_place() {
        let place = |security: Value| {
            let problem = kit::typed::<crate::GlobalConfig>(json!({ "security": security })).unwrap_err();
            (problem.pointer, problem.message)
        };
        let wrong = json!({ "api": { "inventory": { "max_records": "x" } } });
        assert_eq!(place(wrong).0, "/security/api/inventory/max_records");
        assert_eq!(place(json!({ "api": null })).0, "/security/api");
        assert_eq!(place(json!({ "dnsbl": "x" })).0, "/security/dnsbl");
        let (pointer, message) = place(json!({ "objects": { "max_kys": 1 } }));
        assert_eq!(pointer, "/security/objects/max_kys");
        assert!(message.contains("did you mean `max-keys`?"), "{message}");
        let (pointer, message) = place(json!({ "trafic": {} }));
        assert_eq!(pointer, "/security/trafic");
        assert!(message.contains("did you mean `traffic`?"), "{message}");
        assert_eq!(place(json!({ "ledger": { "enabled": 1 } })).0, "/security/ledger/enabled");
    }

    #[test]
    fn settings_without_their_plugin_are_told_once_they_are_changed() {
        assert_eq!(SecuritySettings::default().unused(), []);
        let changed = json!({
            "api": { "inventory": { "max_records": 1 } }, "objects": { "max_keys": 1 },
            "dnsbl": { "wait_millis": 1 }
        });
        let changed: SecuritySettings = serde_json::from_value(changed).unwrap();
        let told: Vec<String> = changed.unused().into_iter().map(|problem| problem.pointer).collect();
        let inactive = plugin_settings().filter(|(plugin, kind)| !plugin.is_active() || kind.lacking.is_some());
        assert_eq!(told, inactive.map(|(_, kind)| format!("/{}", kind.field)).collect::<Vec<_>>());
        assert_eq!(SecuritySettings::unused_fields().len(), told.len());
    }
}
