//! Documents learned from small traffic made up here.

use serde_json::{Value, json};

use super::*;

/// A learner that is fed with requests, all of them answered.
struct Traffic(Learner);

impl Traffic {
    fn new() -> Self {
        Self(Learner::new(Options::default()))
    }

    fn send(&mut self, method: &str, path: &str, body: Option<&Value>, status: u16) {
        let kind = [(b"content-type".to_vec(), b"application/json".to_vec())];
        let text = body.map(Value::to_string).unwrap_or_default();
        self.0.observe(&Observation {
            method: method.as_bytes(),
            path: path.as_bytes(),
            headers: if body.is_some() { &kind } else { &[] },
            body: text.as_bytes(),
            status: Some(status),
            response_headers: &[],
            response_body: b"",
        });
    }

    fn get(&mut self, path: &str) {
        self.send("GET", path, None, 200);
    }

    fn finish(self) -> Value {
        self.0.finish().document
    }
}

fn paths(document: &Value) -> Vec<&str> {
    document["paths"].as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn identifiers_become_parameters_and_words_stay() {
    let mut traffic = Traffic::new();
    for number in 0..40 {
        traffic.get(&format!("/api/v1/users/{number}"));
        traffic.get(&format!("/api/v1/users/{number}/orders/550e8400-e29b-41d4-a716-4466554400{number:02}"));
        traffic.get("/api/v1/users/me");
        traffic.get("/api/v1/health");
    }
    let document = traffic.finish();
    let expected =
        ["/api/v1/health", "/api/v1/users/me", "/api/v1/users/{userId}", "/api/v1/users/{userId}/orders/{orderId}"];
    assert_eq!(paths(&document), expected);
    let order = &document["paths"]["/api/v1/users/{userId}/orders/{orderId}"]["parameters"];
    assert_eq!((&order[0]["schema"]["type"], &order[1]["schema"]["format"]), (&json!("integer"), &json!("uuid")));
}

#[test]
fn slugs_are_folded_by_their_number_and_commands_are_not() {
    let mut traffic = Traffic::new();
    let things = ["shoes", "hats", "lamps", "chairs", "tables", "books", "pens", "cups", "bowls", "rugs"];
    for (place, thing) in things.iter().enumerate() {
        for colour in ["red", "blue"] {
            traffic.get(&format!("/products/{colour}-{thing}"));
            traffic.get(&format!("/products/{colour}-{thing}/reviews"));
        }
        for _ in 0..30 {
            // Each of them takes something else.
            let body = json!({ format!("field_{thing}"): place, format!("other_{thing}"): true });
            traffic.send("POST", &format!("/rpc/do{}", thing.to_uppercase()), Some(&body), 200);
        }
    }
    let document = traffic.finish();
    let shown = paths(&document);
    assert!(shown.contains(&"/products/{product}") && shown.contains(&"/products/{product}/reviews"), "{shown:?}");
    assert_eq!(shown.iter().filter(|path| path.starts_with("/rpc/do")).count(), 10, "{shown:?}");
    assert!(!document.to_string().contains("red-shoes"));
}

#[test]
fn what_was_refused_or_attacks_teaches_nothing() {
    let mut traffic = Traffic::new();
    for number in 0..30 {
        traffic.get(&format!("/items?limit={}", number % 10 + 1));
        traffic.send("GET", &format!("/items?limit=x{number}"), None, 400);
        traffic.send("GET", &format!("/wp-admin/{number}"), None, 404);
        traffic.get("/items?limit=1%27%20OR%20%271%27%3D%271");
        traffic.get("/files/../../etc/passwd");
    }
    let learner = &traffic.0;
    assert_eq!((learner.counts.learned, learner.counts.refused, learner.counts.attacks), (30, 60, 60));
    let document = traffic.finish();
    assert_eq!(paths(&document), ["/items"]);
    let get = &document["paths"]["/items"]["get"];
    assert_eq!(get["parameters"][0]["schema"]["type"], "integer");
    assert_eq!(get["responses"]["400"]["x-evidence"], 30);
}

#[test]
fn claims_need_evidence() {
    let learn = |count: usize| {
        let mut traffic = Traffic::new();
        for number in 0..count {
            let body = json!({ "kind": if number % 2 == 0 { "cat" } else { "dog" }, "age": number % 9, "note": null });
            traffic.send("POST", "/pets?page=1", Some(&body), 201);
        }
        let document = traffic.finish();
        let post = document["paths"]["/pets"]["post"].clone();
        (post["requestBody"]["content"]["application/json"]["schema"].clone(), post)
    };
    let (few, post) = learn(5);
    assert_eq!((few.get("required"), few["properties"]["kind"].get("enum")), (None, None));
    assert_eq!((&post["parameters"][0]["required"], &post["requestBody"]["required"]), (&json!(false), &json!(false)));
    let (many, post) = learn(300);
    assert_eq!(many["required"], json!(["age", "kind", "note"]));
    assert_eq!(many["additionalProperties"], false);
    assert_eq!(many["properties"]["kind"]["enum"], json!(["cat", "dog"]));
    assert_eq!(many["properties"]["kind"]["x-enum-evidence"], json!([150, 150]));
    assert_eq!((&many["properties"]["age"]["minimum"], &many["properties"]["age"]["maximum"]), (&json!(0), &json!(8)));
    assert_eq!(many["properties"]["note"]["type"], "null");
    assert_eq!((&post["x-evidence"], &post["x-confidence"]), (&json!(300), &json!(0.9967)));
    assert_eq!(post["parameters"][0]["required"], true);
}

#[test]
fn nullable_optional_and_mixed_values_are_described() {
    let mut traffic = Traffic::new();
    for number in 0..100 {
        let mut body = json!({ "price": if number % 3 == 0 { json!(null) } else { json!(number) }, "any": null });
        if number % 2 == 0 {
            body["tags"] = json!(["a", format!("b{number}")]);
        }
        body["any"] = if number % 2 == 0 { json!(1) } else { json!("text") };
        traffic.send("PUT", "/things/7", Some(&body), 200);
    }
    let document = traffic.finish();
    let schema = &document["paths"]["/things/{thingId}"]["put"]["requestBody"]["content"]["application/json"]["schema"];
    assert_eq!(schema["properties"]["price"]["type"], json!(["integer", "null"]));
    assert_eq!(schema["properties"]["any"]["type"], json!(["integer", "string"]));
    assert_eq!(schema["required"], json!(["any", "price"]));
    assert_eq!(schema["properties"]["tags"]["items"]["type"], "string");
}

#[test]
fn maps_have_no_names() {
    let mut traffic = Traffic::new();
    for number in 0..60 {
        let by_user =
            json!({ format!("user{number}@shop.example"): number, "550e8400-e29b-41d4-a716-446655440000": 1 });
        let by_word: serde_json::Map<String, Value> = (0..3)
            .map(|place| (format!("word{}", char::from(b'a' + ((number + place * 7) % 26) as u8)), json!(1)))
            .collect();
        traffic.send("POST", "/scores", Some(&json!({ "by_user": by_user, "by_word": by_word })), 200);
    }
    let document = traffic.finish();
    let schema = &document["paths"]["/scores"]["post"]["requestBody"]["content"]["application/json"]["schema"];
    for map in ["by_user", "by_word"] {
        let map = &schema["properties"][map];
        assert_eq!((map.get("properties"), &map["additionalProperties"]["type"]), (None, &json!("integer")), "{map}");
    }
    assert!(!document.to_string().contains("shop.example"));
}

#[test]
fn no_value_leaks() {
    let mut traffic = Traffic::new();
    for number in 0..200 {
        let (password, plan) = if number % 2 == 0 { ("hunter2", "secretplanx@mail.example") } else { ("letmein", "b") };
        let body = json!({
            "email": format!("person{}@shop.example", number % 3),
            "password": password,
            "api_key": "sk_live_4eC39HqLyjWDarjtT1zdp7dc",
            "card_number": 4_111_111_111_111_111_u64,
            "plan": plan,
        });
        traffic.send("POST", "/signup?token=3f2c9a70b1d4e5f6", Some(&body), 200);
        traffic.get(&format!("/people/alice{}", number % 3));
        traffic.get("/reset/aB3xY9kLm2Qw7");
    }
    let text = traffic.finish().to_string();
    for secret in ["hunter2", "letmein", "sk_live", "4111", "mail.example", "shop.example", "3f2c9a70", "aB3xY9"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
}

#[test]
fn memory_is_bounded_by_the_parts_that_are_kept() {
    let options = Options { max_nodes: 500, ..Options::default() };
    let mut learner = Traffic(Learner::new(options));
    for number in 0..3000_u32 {
        let word: String = (0..4).map(|place| char::from(b'a' + ((number >> (place * 4)) % 16) as u8)).collect();
        learner.get(&format!("/{word}/{word}?{word}=1"));
        learner.send("POST", "/objects", Some(&json!({ word: { "deep": [[[number]]] } })), 200);
    }
    assert!(learner.0.room.left <= 500);
    let learned = learner.0.finish();
    assert!(learned.document.to_string().len() < 500_000);
    assert_eq!(learned.counts.observed, 6000);
}

#[test]
fn forms_and_lists_in_queries_are_described() {
    let mut traffic = Traffic::new();
    let kind = [(b"content-type".to_vec(), b"application/x-www-form-urlencoded; charset=utf-8".to_vec())];
    for number in 0..50 {
        traffic.get(&format!("/search?ids={number},{}&tag=a&tag=b&on=true", number + 1));
        traffic.0.observe(&Observation {
            method: b"POST",
            path: b"/login",
            headers: &kind,
            body: format!("user=u{number}&password=p&remember=true").as_bytes(),
            status: Some(302),
            response_headers: &[],
            response_body: b"",
        });
    }
    let document = traffic.finish();
    let parameters = document["paths"]["/search"]["get"]["parameters"].as_array().unwrap().clone();
    let of = |name: &str| parameters.iter().find(|parameter| parameter["name"] == name).unwrap();
    assert_eq!((&of("ids")["explode"], &of("ids")["schema"]["items"]["type"]), (&json!(false), &json!("integer")));
    assert_eq!((&of("tag")["schema"]["type"], &of("on")["schema"]["type"]), (&json!("array"), &json!("boolean")));
    let content = &document["paths"]["/login"]["post"]["requestBody"]["content"];
    let form = &content["application/x-www-form-urlencoded"]["schema"];
    assert_eq!(form["required"], json!(["password", "remember", "user"]));
    assert_eq!(form["properties"]["remember"]["type"], "boolean");
}

#[test]
fn the_contract_library_takes_what_taught() {
    let mut traffic = Traffic::new();
    let body = |number: u32| json!({ "when": "2024-02-29T10:00:00Z", "amount": f64::from(number) / 4.0, "id": number });
    for number in 0..200 {
        traffic.send("POST", &format!("/orders/{number}/items?dry=false"), Some(&body(number)), 201);
    }
    let text = traffic.finish().to_string();
    let compiled = contract::compile::compile(&text, "", contract::compile::Options { responses: true }).unwrap();
    assert_eq!(compiled.warnings, Vec::<String>::new());
    let contract = contract::Contract::open(&compiled.image).unwrap();
    let contract::Found::Operation(matched) = contract.find(b"POST", b"/orders/9/items", false) else { panic!() };
    let check = contract.request_body(matched.operation, Some(b"application/json"), true);
    let contract::BodyCheck::Required(Some(schema)) = check else { panic!("{check:?}") };
    let judge = |body: &Value| contract.check_body(schema, body.to_string().as_bytes(), false);
    assert_eq!(judge(&body(7)), contract::BodyResult::Valid);
    let mut wrong = body(7);
    wrong["when"] = json!("yesterday");
    assert!(matches!(judge(&wrong), contract::BodyResult::Invalid(_)));
}
