//! Secrets of entities: stored, never shown.

use crate::entities_samples;

use crate::entities_samples::PLANTED;
use crate::entities_support::Api;
use entities::{AlertRule, EntitySet, GeoDatabase, MASK, SvcBouncer};
use ip_reputation::control::ThreatFeed;
use policies::ChallengeProvider;
use serde_json::{Value, json};

/// Every documented secret field, and the sample that has it.
const SECRETS: [(&str, &str, &[&str]); 5] = [
    ("threat-feeds", "list", &["/headers/Key"]),
    ("geo-databases", "places", &["/password", "/headers/X-Token"]),
    ("svc-bouncers", "crowd", &["/api_key", "/push_password"]),
    ("challenge-providers", "widget", &["/secret", "/previous_secret", "/secret_key"]),
    ("alert-rules", "chat", &["/channel/url", "/channel/routing_key", "/channel/headers/X-Auth"]),
];

/// The pointers of all texts in a document that `wanted` says yes to.
fn places(document: &Value, wanted: &dyn Fn(&str) -> bool) -> Vec<String> {
    match document {
        Value::String(text) if wanted(text) => vec![String::new()],
        Value::Array(entries) => {
            let each = entries.iter().enumerate();
            each.flat_map(|(n, entry)| places(entry, wanted).into_iter().map(move |rest| format!("/{n}{rest}")))
                .collect()
        }
        Value::Object(fields) => {
            let each = fields.iter();
            each.flat_map(|(n, entry)| places(entry, wanted).into_iter().map(move |rest| format!("/{n}{rest}")))
                .collect()
        }
        _ => Vec::new(),
    }
}

#[test]
fn every_secret_of_every_kind_is_masked_and_nothing_else_is() {
    for (kind, stored) in entities_samples::all() {
        let entity = kind.read(stored.clone()).unwrap();
        let (shown, id) = (entity.shown(), entity.head().id.clone());
        let expected = SECRETS.iter().find(|(collection, sample, _)| *collection == kind.collection && *sample == id);
        let mut expected: Vec<_> =
            expected.map_or(Vec::new(), |(_, _, pointers)| pointers.iter().map(|one| (*one).to_owned()).collect());
        let mut planted = places(&stored, &|text| text.contains(PLANTED));
        let mut masked = places(&shown, &|text| text == MASK);
        for list in [&mut expected, &mut planted, &mut masked] {
            list.sort();
        }
        assert_eq!(planted, expected, "{}/{id}: a secret in every documented field", kind.collection);
        assert_eq!(masked, expected, "{}/{id}", kind.collection);
        assert!(!shown.to_string().contains(PLANTED));
        let mut unmasked = shown;
        for pointer in &masked {
            *unmasked.pointer_mut(pointer).unwrap() = stored.pointer(pointer).unwrap().clone();
        }
        assert_eq!(unmasked, stored);
        assert!(!format!("{entity:?}").contains(PLANTED));
    }
}

/// An API with all the samples in it.
async fn filled() -> (Api, Vec<String>) {
    let api = Api::new().await;
    let mut answers = Vec::new();
    // What is named comes before what names it.
    let order = ["challenge-providers", "waf-rulesets", "waf-configs", "threat-policies", "bot-policies"];
    let order = order.into_iter().chain(["honeypot-policies", "api-contracts", "malware-scanners", "routes"]);
    let mut samples = entities_samples::all();
    let order: Vec<_> = order.collect();
    samples.sort_by_key(|(kind, _)| order.iter().position(|name| *name == kind.collection).unwrap_or(order.len()));
    for (kind, document) in samples {
        let one = format!("/{}/{}", kind.collection, document["id"].as_str().unwrap());
        let answer = match kind.singleton {
            Some(_) => api.call("PUT", &one, Some(document)).await,
            None => api.call("POST", &format!("/{}", kind.collection), Some(document)).await,
        };
        assert!(answer.status.is_success(), "{one}: {}", answer.text);
        answers.push(answer.text);
    }
    (api, answers)
}

async fn stored(api: &Api, collection: &str, id: &str) -> Value {
    let rows = api.state.store.entities().await.unwrap().rows;
    let row = rows.into_iter().find(|row| row.collection == collection && row.id == id).unwrap();
    serde_json::from_str(&row.body).unwrap()
}

#[tokio::test]
async fn no_answer_shows_a_secret_and_each_write_keeps_it() {
    let (api, mut answers) = filled().await;
    for (collection, id, pointers) in SECRETS {
        let one = format!("/{collection}/{id}");
        let before = stored(&api, collection, id).await;
        let read = api.call("GET", &one, None).await;
        let mut whole = read.body.clone();
        whole["description"] = json!("changed");
        let put = api.call("PUT", &one, Some(whole)).await;
        assert_eq!(put.status, 200, "{}", put.text);
        let merged = api.call("PATCH", &one, Some(json!({"description": "again"}))).await;
        assert_eq!(merged.status, 200, "{}", merged.text);
        // A patch that brings the mask back, and one whose test would find the secret out.
        let brought = json!([{"op": "replace", "path": pointers[0], "value": MASK}]);
        let brought = api.call("PATCH", &one, Some(brought)).await;
        assert_eq!(brought.status, 200, "{}", brought.text);
        // Typed behind the mask.
        let edited = json!([{"op": "replace", "path": pointers[0], "value": format!("{MASK}NEW")}]);
        let edited = api.call("PATCH", &one, Some(edited)).await;
        assert_eq!(edited.status, 400, "{}", edited.text);
        assert_eq!(edited.body["errors"][0]["pointer"], pointers[0], "{}", edited.text);
        let secret = before.pointer(pointers[0]).unwrap();
        let guess = json!([{"op": "test", "path": pointers[0], "value": secret}]);
        let guess = api.call("PATCH", &one, Some(guess)).await;
        assert_eq!(guess.status, 409, "{}", guess.text);
        let copied = json!([{"op": "copy", "from": pointers[0], "path": "/name"}]);
        let copied = api.call("PATCH", &one, Some(copied)).await;
        assert_eq!(copied.body["name"], MASK, "{}", copied.text);
        for pointer in pointers {
            assert_eq!(copied.body.pointer(pointer).unwrap(), MASK, "{one}{pointer}");
            let after = stored(&api, collection, id).await;
            assert_eq!(after.pointer(pointer), before.pointer(pointer), "{one}{pointer} is kept");
        }
        let list = api.call("GET", &format!("/{collection}?filter.id={id}"), None).await;
        answers.extend([read, put, merged, brought, guess, copied, list].map(|answer| answer.text));

        let filter =
            format!("/{collection}?filter.{}={}", pointers[0][1..].replace('/', "."), secret.as_str().unwrap());
        assert_eq!(api.call("GET", &filter, None).await.body, json!([]), "no filter finds a secret out");

        let mut other = before.clone();
        *other.pointer_mut(pointers[0]).unwrap() = json!("https://other.example/hunter2");
        answers.push(api.call("PUT", &one, Some(other)).await.text);
        let after = stored(&api, collection, id).await;
        assert_eq!(after.pointer(pointers[0]).unwrap(), "https://other.example/hunter2");
        answers.push(api.call("DELETE", &one, None).await.text);
    }
    for answer in answers {
        assert!(!answer.contains(PLANTED), "{answer}");
    }
    for event in api.events().await {
        assert!(!event.to_string().contains(PLANTED), "{event}");
    }
}

#[tokio::test]
async fn a_mask_where_no_secret_is_stored_is_an_error_with_its_field() {
    let api = Api::new().await;
    for (collection, id, pointers) in SECRETS {
        for pointer in pointers {
            let mut document = entities_samples::sample(collection, id);
            document["id"] = json!("new");
            if collection == "alert-rules" {
                document["routes"] = json!([]);
            }
            *document.pointer_mut(pointer).unwrap() = json!(MASK);
            let answer = api.call("POST", &format!("/{collection}"), Some(document)).await;
            assert_eq!(answer.status, 400, "{}", answer.text);
            let error = &answer.body["errors"][0];
            assert_eq!(error["pointer"], *pointer, "{}", answer.text);
            assert!(error["message"].as_str().unwrap().contains("none is stored"), "{}", answer.text);
        }
    }
    // A header that is new cannot bring the mask of another one.
    api.call("POST", "/threat-feeds", Some(json!({"id": "f", "url": "http://a", "headers": {"Key": "hunter2"}}))).await;
    let moved = api.call("PATCH", "/threat-feeds/f", Some(json!({"headers": {"Other": MASK}}))).await;
    assert_eq!((moved.status.as_u16(), &moved.body["errors"][0]["pointer"]), (400, &json!("/headers/Other")));
    // An empty one goes away, and that is no secret.
    let emptied = api.call("PATCH", "/threat-feeds/f", Some(json!({"headers": {"Key": ""}}))).await;
    assert_eq!(emptied.body["headers"], json!({"Key": ""}), "{}", emptied.text);
}

#[test]
fn what_was_exported_can_be_checked_and_its_masks_stay() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, document) in entities_samples::all() {
        let shown = kind.read(document).unwrap().shown();
        let place = folder.path().join(kind.collection);
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join(format!("{}.json", shown["id"].as_str().unwrap())), shown.to_string()).unwrap();
    }
    let set = EntitySet::from_dir(folder.path()).unwrap();
    let bouncer = set.get::<SvcBouncer>("crowd").unwrap();
    assert!(bouncer.api_key.is_mask() && bouncer.api_key.reveal().is_empty());
    assert_eq!(set.slot("svc-bouncers", "crowd").unwrap().entity.stored()["api_key"], MASK);
}

#[tokio::test]
async fn secrets_survive_a_restart() {
    let (api, _) = filled().await;
    let loaded = EntitySet::load(api.state.store.as_ref()).await.unwrap();
    assert!(loaded.unreadable().is_empty());
    for (collection, id, pointers) in SECRETS {
        let read = loaded.slot(collection, id).unwrap().entity.stored();
        for pointer in pointers {
            assert!(read.pointer(pointer).unwrap().as_str().unwrap().contains(PLANTED));
        }
    }
    // A mask in the store is not taken for a secret.
    let broken = json!({"id": "broken", "api_key": MASK}).to_string();
    api.state.store.entity_put("svc-bouncers", "broken", broken, 0).await.unwrap();
    let loaded = EntitySet::load(api.state.store.as_ref()).await.unwrap();
    assert_eq!(loaded.unreadable()[0].1.pointer, "/api_key");
}

#[test]
fn the_debug_form_of_an_entity_hides_its_secrets() {
    let set = entities_samples::set();
    let forms = [
        format!("{:?}", set.get::<ThreatFeed>("list").unwrap()),
        format!("{:?}", set.get::<GeoDatabase>("places").unwrap()),
        format!("{:?}", set.get::<SvcBouncer>("crowd").unwrap()),
        format!("{:?}", set.get::<ChallengeProvider>("widget").unwrap()),
        format!("{:?}", set.get::<AlertRule>("chat").unwrap()),
    ];
    for form in forms {
        assert!(form.contains(MASK) && !form.contains(PLANTED), "{form}");
    }
}

#[test]
fn files_are_read_with_secrets_and_without_repeating_them() {
    let folder = tempfile::tempdir().unwrap();
    let feeds = folder.path().join("threat-feeds");
    std::fs::create_dir(&feeds).unwrap();
    for (name, text) in [
        ("a.yaml", "url: http://a\nheaders: { Key: '********' }\n"),
        ("b.yaml", "url: http://a\nheaders: { Key: hunter2 }\nrules: [\n"),
        ("c.yaml", "url: http://a\nheaders: hunter2\n"),
        ("d.json", "{\"headers\": {\"Key\": \"hunter2\"}, ]"),
        ("e.yaml", "headers: { Key: hunter2 }\nheaders: { Key: hunter2 }\n"),
    ] {
        std::fs::write(feeds.join(name), text).unwrap();
    }
    let problems = EntitySet::from_dir(folder.path()).unwrap_err();
    let texts: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), 4, "what was exported has masks: {texts:#?}");
    assert!(texts.iter().all(|text| !text.contains(PLANTED)), "{texts:#?}");
}
