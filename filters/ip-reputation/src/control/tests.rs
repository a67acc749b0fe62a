use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use kit::{
    ChallengeRoot, Collection, Context, Entity as _, EntitySource, FieldProblem, Guard, Head, Item, PluginSettings,
    References, Slot, SourceHealth, Tools, View,
};
use material::{Material, Next};
use prost::Message as _;
use serde_json::{Map, Value, json};
use snapshot::TableKind;
use tables::SourceLabels;

use super::catalog::{CATEGORIES, CatalogEntry, ENTRIES, IDS};
use super::*;
use crate::IpReputationStep;

/// What was told of sources, in order.
#[derive(Default)]
pub(super) struct Told(pub(super) Mutex<Vec<String>>);

impl SourceHealth for Told {
    fn fails(&self, subject: &str, why: &str) {
        self.0.lock().unwrap().push(format!("{subject} fails: {why}"));
    }

    fn works(&self, subject: &str) {
        self.0.lock().unwrap().push(format!("{subject} works"));
    }

    fn ends(&self, subject: &str) {
        self.0.lock().unwrap().push(format!("{subject} ends"));
    }
}

struct Nothing;

impl References for Nothing {
    fn exists(&self, _collection: &str, _id: &str) -> Option<bool> {
        None
    }
}

/// All entities: feeds, bouncers, and databases, whose ids begin with `asn-` and `geo-`.
struct Feeds(Arc<Collection>);

impl EntitySource for Feeds {
    fn slot(&self, _collection: &str, id: &str) -> Option<&Slot> {
        self.0.get(id)
    }

    fn collection(&self, _collection: &str) -> Option<&Arc<Collection>> {
        Some(&self.0)
    }
}

fn feeds(all: impl IntoIterator<Item = (String, Value)>) -> Feeds {
    let slot = |(id, fields): (String, Value)| {
        let head = Head { id: id.clone(), ..Head::default() };
        let entity: Arc<dyn kit::AnyEntity> = match fields.get("api_key") {
            Some(_) => Arc::new(Item::<SvcBouncer> { head, body: serde_json::from_value(fields).unwrap() }),
            None if id.starts_with("asn-") => {
                Arc::new(Item::<AsnDatabase> { head, body: serde_json::from_value(fields).unwrap() })
            }
            None if id.starts_with("geo-") => {
                Arc::new(Item::<GeoDatabase> { head, body: serde_json::from_value(fields).unwrap() })
            }
            None => Arc::new(Item::<ThreatFeed> { head, body: serde_json::from_value(fields).unwrap() }),
        };
        (id, Slot { revision: 1, entity })
    };
    Feeds(Arc::new(all.into_iter().map(slot).collect()))
}

type Compiled = Result<(Option<IpReputationStep>, Vec<String>), Vec<FieldProblem>>;

/// The step of a configuration, and what is off.
fn compiled(config: Value, entities: &Feeds) -> Compiled {
    let Value::Object(config) = config else { panic!("no object") };
    compiled_of(&config, entities)
}

fn compiled_of(config: &Map<String, Value>, entities: &Feeds) -> Compiled {
    compiled_with(config, entities, &PluginSettings::default())
}

fn compiled_with(config: &Map<String, Value>, entities: &Feeds, settings: &PluginSettings) -> Compiled {
    let (view, tools) = (View::new(entities), Tools::default());
    let (mut parts, mut body, mut request, mut warnings) = (kit::Parts::new(), 0, 0, Vec::new());
    let mut guards: Vec<Box<dyn Guard>> = Vec::new();
    let mut context = Context {
        view: &view,
        tools: &tools,
        plugin_settings: settings,
        keys: &ChallengeRoot::for_checks(),
        fail_open: false,
        chain: &[],
        metadata: &BTreeMap::new(),
        parts: &mut parts,
        largest_body: &mut body,
        largest_request: &mut request,
        warnings: &mut warnings,
        guards: &mut guards,
    };
    let step = compile::compile(config, &mut context)?;
    let step = step.map(|bytes| IpReputationStep::decode(bytes.as_slice()).unwrap());
    Ok((step, guards.iter().flat_map(|guard| guard.gaps(&[], &[])).collect()))
}

fn three() -> Feeds {
    feeds([
        ("tor".to_owned(), json!({ "url": "https://a/", "weight": 40, "tag": "feed:tor-exit" })),
        ("drop".to_owned(), json!({ "url": "https://b/", "action": "block" })),
        ("off".to_owned(), json!({ "url": "https://c/", "enabled": false })),
    ])
}

#[test]
fn a_step_has_the_enabled_feeds_or_those_that_are_named() {
    let (step, gaps) = compiled(json!({}), &three()).unwrap();
    let step = step.unwrap();
    let mut found: Vec<_> = step.feeds.iter().map(|feed| (&*feed.id, &*feed.tag, feed.weight, feed.blocks)).collect();
    found.sort_by_key(|feed| feed.0);
    assert_eq!(found, [("drop", "feed:drop", 50.0, true), ("tor", "feed:tor-exit", 40.0, false)]);
    assert_eq!((step.monitor, step.score_threshold, step.status), (false, 0.0, 403));
    assert!(step.feeds.is_sorted_by_key(|feed| &feed.key) && gaps.is_empty(), "{gaps:?}");

    let config = json!({ "feeds": ["tor", "off"], "mode": "monitor", "status": 404, "score_threshold": 90,
                         "passthrough": ["192.0.2.7", "2001:db8::/32"] });
    let (step, gaps) = compiled(config, &three()).unwrap();
    let step = step.unwrap();
    assert_eq!((step.feeds.len(), &*step.feeds[0].id, step.monitor, step.status), (1, "tor", true, 404));
    assert_eq!((step.score_threshold, step.passthrough.len()), (90.0, 2));
    assert_eq!(gaps, ["the threat feed `off` is disabled"]);
}

#[test]
fn without_a_feed_there_is_no_step_and_a_preset_does_not_miss_it() {
    let nothing = feeds([]);
    let idle =
        "no threat feed, no bouncer and no DNS blocklist is enabled, so the IP reputation does nothing".to_owned();
    assert_eq!(compiled(json!({}), &nothing), Ok((None, vec![idle])));
    let laid = (PLUGIN.preset.lay_down.unwrap())(&Map::new()).unwrap().0.unwrap();
    assert_eq!(compiled(laid, &nothing), Ok((None, Vec::new())));
    assert_eq!(compiled(json!({ "feeds": ["off"] }), &three()).unwrap().0, None);
}

#[test]
fn enabled_zones_of_blocklists_count_unless_the_step_leaves_them_out() {
    let settings = json!({ "wait_millis": 7, "zones": [
        { "zone": "ZEN.example.", "weight": 30, "action": "block" },
        { "zone": "other.example", "tag": "own" },
        { "zone": "off.example", "enabled": false },
    ] });
    let settings: DnsblSettings = serde_json::from_value(settings).unwrap();
    let mut all = PluginSettings::default();
    all.insert("dnsbl", Arc::new(settings));
    let (step, gaps) = compiled_with(&Map::new(), &feeds([]), &all).unwrap();
    let step = step.unwrap();
    let mut found: Vec<_> =
        step.feeds.iter().map(|feed| (&*feed.id, &*feed.tag, feed.weight, feed.blocks, feed.zone)).collect();
    found.sort_by_key(|feed| feed.0);
    assert_eq!(
        found,
        [("other.example", "own", 50.0, false, true), ("zen.example", "dnsbl:zen.example", 30.0, true, true)]
    );
    assert_eq!((step.wait_millis, gaps), (7, Vec::new()));
    let Value::Object(without) = json!({ "blocklists": false }) else { panic!() };
    let (step, gaps) = compiled_with(&without, &feeds([]), &all).unwrap();
    assert_eq!((step, gaps.len()), (None, 1), "it does nothing: {gaps:?}");
}

#[test]
fn more_feeds_than_are_used_are_named() {
    let all = (0..66).map(|number| (format!("f{number:02}"), json!({ "url": "https://a/" })));
    let (step, gaps) = compiled(json!({}), &feeds(all)).unwrap();
    assert_eq!((step.unwrap().feeds.len(), gaps.len()), (MAX_FEEDS, 1));
    assert_eq!(gaps[0], "the threat feeds `f64`, `f65` are not used: 64 others before them are enabled");
}

#[test]
fn wrong_fields_are_named() {
    let problems = |config: Value| {
        let found = compiled(config, &three()).unwrap_err();
        found.into_iter().map(|problem| problem.pointer).collect::<Vec<_>>()
    };
    assert_eq!(problems(json!({ "mode": "deny" })), ["/mode"]);
    assert_eq!(problems(json!({ "feed": [] })), ["/feed"]);
    let wrong = json!({ "status": 99, "score_threshold": -1, "passthrough": ["192.0.2.7", "office"], "feeds": ["tor", "gone"] });
    assert_eq!(problems(wrong), ["/score_threshold", "/status", "/passthrough/1", "/feeds/1"]);
    assert_eq!(problems(json!({ "bouncers": ["tor"] })), ["/bouncers/0"], "a feed is no bouncer");
    assert!(compiled(json!({ "report_to_bouncer": true }), &three()).is_ok());
}

#[test]
fn all_enabled_bouncers_count_unless_some_are_named() {
    let bouncer = |more: Value| {
        let mut fields = json!({ "api_key": "k" });
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fields
    };
    let all = feeds([
        ("tor".to_owned(), json!({ "url": "https://a/" })),
        ("one".to_owned(), bouncer(json!({}))),
        ("two".to_owned(), bouncer(json!({ "action": "monitor", "weight": 7, "tag": "own" }))),
        ("off".to_owned(), bouncer(json!({ "enabled": false }))),
    ]);
    let step = |config: Value| compiled(config, &all).unwrap();
    let bouncers = |step: &IpReputationStep| {
        let bouncers = step.feeds.iter().filter(|feed| feed.bouncer);
        let mut shown: Vec<_> =
            bouncers.map(|feed| (feed.id.clone(), feed.tag.clone(), feed.weight, feed.blocks)).collect();
        shown.sort_by(|one, other| one.0.cmp(&other.0));
        shown
    };
    let (one, two) =
        (("one".to_owned(), "crowd".to_owned(), 90.0, true), ("two".to_owned(), "own".to_owned(), 7.0, false));
    let (found, gaps) = step(json!({}));
    let found = found.unwrap();
    assert_eq!((bouncers(&found), found.feeds.len(), gaps), (vec![one.clone(), two.clone()], 3, Vec::new()));
    let (named, gaps) = step(json!({ "bouncers": ["two", "off"] }));
    assert_eq!((bouncers(&named.unwrap()), gaps), (vec![two], vec!["the bouncer `off` is disabled".to_owned()]));
    let many = (0..9).map(|number| (format!("b{number}"), bouncer(json!({}))));
    let (many, gaps) = compiled(json!({}), &feeds(many)).unwrap();
    assert_eq!(
        (many.unwrap().feeds.len(), gaps),
        (8, vec!["the bouncer `b8` is not used: 8 others before it are enabled".to_owned()])
    );
}

#[test]
fn a_step_has_the_classes_of_enabled_databases_and_what_decisions_on_networks_need() {
    let bouncer = json!({ "api_key": "k", "scopes": ["as", "country"] });
    let base = [("crowd".to_owned(), bouncer)];
    let with = |more: &[(&str, Value)]| {
        let more = more.iter().map(|(id, fields)| ((*id).to_owned(), fields.clone()));
        let (step, gaps) = compiled(json!({}), &feeds(base.clone().into_iter().chain(more))).unwrap();
        (step.unwrap(), gaps)
    };
    let (step, gaps) = with(&[("asn-off", json!({ "enabled": false })), ("geo-off", json!({ "enabled": false }))]);
    assert_eq!((step.feeds.len(), step.by_network, step.by_country), (1, false, false));
    let [networks, countries] = &gaps[..] else { panic!("{gaps:?}") };
    assert!(networks.contains("`crowd` has decisions on networks, which match nothing without an ASN database"));
    assert!(
        countries.contains("`crowd` has decisions on countries, which match nothing without a geolocation database")
    );

    let mut categories =
        json!({ "categories": [{ "name": "own", "weight": 7, "asns": [1] }, { "name": "cdn", "tag": "edge" }] });
    let (step, gaps) = with(&[("asn-a", categories.clone()), ("geo-a", json!({}))]);
    assert_eq!((step.by_network, step.by_country, gaps.len()), (true, true, 0), "{gaps:?}");
    let classes = step.feeds.iter().filter(|feed| feed.class);
    let mut classes: Vec<_> =
        classes.map(|feed| (&*feed.name, &*feed.tag, feed.weight, feed.blocks, &*feed.id)).collect();
    classes.sort_by_key(|class| class.0);
    assert_eq!(classes, [("cdn", "edge", 0.0, false, "asn-a"), ("own", "asn:own", 7.0, false, "asn-a")]);
    categories["enabled"] = json!(false);
    assert_eq!(with(&[("asn-a", categories)]).0.feeds.len(), 1);
    let many: Vec<(String, Value)> =
        (0..9).map(|number| (format!("asn-{number}"), json!({ "categories": [{ "name": "a" }] }))).collect();
    let (step, _) = compiled(json!({}), &feeds(many)).unwrap();
    assert_eq!(step.unwrap().feeds.len(), MAX_DATABASES);
}

#[test]
fn a_preset_lays_it_down_unless_it_is_switched_off() {
    let lay_down = PLUGIN.preset.lay_down.unwrap();
    let laid = |config: Value| lay_down(config.as_object().unwrap()).map(|laid| laid.0);
    assert_eq!(laid(json!({})), Ok(Some(json!({ "mode": "block", "feeds": null }))));
    assert_eq!(laid(json!({ "reputation_mode": "monitor" })), Ok(Some(json!({ "mode": "monitor", "feeds": null }))));
    assert_eq!(laid(json!({ "reputation": false, "reputation_mode": "monitor" })), Ok(None));
    assert_eq!(laid(json!({ "reputation_mode": "off" })).unwrap_err().pointer, "/reputation_mode");
}

#[test]
fn the_catalogue_has_fourteen_entries_that_make_feeds() {
    assert_eq!((ENTRIES.len(), IDS.iter().collect::<BTreeSet<_>>().len()), (14, 14));
    for entry in &ENTRIES {
        let shown = entry.shown();
        assert!(CATEGORIES.contains(&shown["category"].as_str().unwrap()), "{shown}");
        let mut feed = CatalogEntry::by_id(entry.id).unwrap().feed();
        let wants_more = entry.id == "abuseipdb-blacklist" || entry.id == "azure-ranges";
        assert_eq!(feed["enabled"], !wants_more, "{feed}");
        assert_eq!(feed["url"].as_str().unwrap().is_empty(), shown["manual_url"].as_bool().unwrap());
        assert!(feed["id"].as_str().unwrap().starts_with("threat-feed_"), "{feed}");
        for field in ["id", "name", "description", "tags", "metadata", "kind"] {
            feed.as_object_mut().unwrap().remove(field).unwrap();
        }
        let feed: ThreatFeed = serde_json::from_value(feed).unwrap();
        assert_eq!(feed.check(&Head::default(), &Nothing), []);
        fetch::plan(&feed).unwrap();
    }
    let weighs = |id: &str| CatalogEntry::by_id(id).unwrap().feed();
    assert_eq!((&weighs("spamhaus-drop")["weight"], &weighs("spamhaus-drop")["action"]), (&json!(90), &json!("block")));
    assert_eq!(weighs("cloudflare-v6")["weight"], 0);
    assert_eq!(weighs("abuseipdb-blacklist")["headers"], json!({ "Key": "" }));
}

#[test]
fn keys_of_feeds_are_short_and_all_of_them_fit_a_label() {
    let ids = (0..MAX_FEEDS).map(|number| format!("{number:0>128}"));
    let list = feeds::parse(&feeds::Format::CidrLines, b"192.0.2.1", 1).unwrap().addresses.to_bytes();
    let lists: Vec<(String, Arc<[u8]>)> = ids.map(|id| (id, list.clone().into())).collect();
    assert!(table::flatten(&lists, 100, &SourceLabels::default()).unwrap().left_out.is_empty());
    assert_eq!(table::key("tor"), table::key("tor"));
}

#[test]
fn a_table_is_made_without_the_lists_that_are_too_long_for_it() {
    let list = |id: &str, first: u8, count: usize| {
        let text: String =
            (0..count).map(|number| format!("{first}.0.{}.{}\n", number / 100, number % 100 * 2)).collect();
        let set = feeds::parse(&feeds::Format::CidrLines, text.as_bytes(), count).unwrap().addresses;
        (id.to_owned(), Arc::<[u8]>::from(set.to_bytes()))
    };
    let (small, large, larger) = (list("small", 1, 10), list("large", 2, 300), list("larger", 3, 301));
    let flatten = |lists: &[_], most| table::flatten(lists, most, &SourceLabels::default()).unwrap();
    let left_out = |lists: &[_], most| flatten(lists, most).left_out.into_keys().collect::<Vec<String>>();
    let all = [larger.clone(), small.clone(), large.clone()];
    assert_eq!(left_out(&all, 611), [] as [&str; 0]);
    assert_eq!(left_out(&all, 610), ["larger"]);
    assert_eq!(left_out(&all, 309), ["large", "larger"]);
    assert_eq!(left_out(&all, 9).len(), 3, "an empty table is a table");
    assert_eq!(flatten(&all, 610).base, flatten(&[small.clone(), large], 610).base);
    let why = &flatten(&all, 610).left_out["larger"];
    assert!(why.contains("(610)") && why.contains("(301)"), "{why}");
    let damaged = ("a".to_owned(), vec![7].into());
    assert_eq!(left_out(&[damaged, small], 100), ["a"], "a list that cannot be read is no fault of the others");
}

#[test]
fn a_change_of_one_address_of_a_feed_is_one_small_delta() {
    let list = |id: &str, addresses: &[String]| {
        let set = feeds::parse(&feeds::Format::CidrLines, addresses.join("\n").as_bytes(), 50_000).unwrap().addresses;
        (id.to_owned(), Arc::<[u8]>::from(set.to_bytes()))
    };
    let of = |first: u8| (0..5_000).map(move |number| format!("{first}.0.{}.{}", number / 100, number % 100 * 2));
    let (one, mut two): (Vec<String>, Vec<String>) = (of(20).collect(), of(30).collect());
    let before = table::flatten(&[list("one", &one), list("two", &two)], 50_000, &SourceLabels::default()).unwrap();
    // The lowest address of all is of the other feed now: its label would be the first one.
    two.push("1.0.0.1".to_owned());
    let after = table::flatten(&[list("one", &one), list("two", &two)], 50_000, &before.labels).unwrap();
    let material = Material::default();
    material.publish("t", TableKind::Ranges, before.base).unwrap();
    let state = material.get("t").unwrap().base_state();
    material.publish("t", TableKind::Ranges, after.base).unwrap();
    let Some(Next::Change(change, next)) = material.next("t", TableKind::Ranges, Some(state)) else { panic!("a base") };
    assert!(change.data.len() < 64, "{} bytes", change.data.len());
    assert_eq!(material.get("t").unwrap().state(), next);
}
