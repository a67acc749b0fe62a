use std::collections::BTreeSet;

use axum::http::{Method, StatusCode};
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::*;

fn group() -> Group {
    Group { name: "g".to_owned(), about: "About it.".to_owned() }
}

#[test]
fn a_route_is_in_the_document_with_all_that_is_said_of_it() {
    let operation = Operation::new(Method::PUT, "/things/{id}", "things.put", group(), "Put a thing")
        .in_path("id", json!({ "type": "string" }), "Which.")
        .switch("dry", "Only look.")
        .takes("A thing.", [(JSON, json!({ "type": "object" }))])
        .answers(StatusCode::OK, "Done.", json!({ "type": "object" }))
        .fails(StatusCode::CONFLICT, "taken", "there is one.")
        .fails(StatusCode::CONFLICT, "in_use", "it is used.")
        .demands(Security::AdminKey("write"))
        .demands(Security::Open);
    let routes: Routes = Routes::new().on(operation, || async {});
    let document = document(&routes);
    let put = &document["paths"]["/things/{id}"]["put"];
    assert_eq!((&put["operationId"], &put["tags"]), (&json!("things.put"), &json!(["g"])));
    assert_eq!(put["security"], json!([{ "adminKey": ["write"] }]));
    assert_eq!(put["parameters"].as_array().unwrap().len(), 2);
    assert_eq!(put["requestBody"]["required"], true);
    let conflict = &put["responses"]["409"];
    assert_eq!(conflict["description"], "`taken`: there is one. `in_use`: it is used.");
    let words = &conflict["content"]["application/json"]["schema"]["properties"]["error"]["enum"];
    assert_eq!(words, &json!(["taken", "in_use"]));
    assert!(put["responses"]["200"]["headers"]["x-request-id"].is_object());
}

#[test]
fn definitions_of_one_name_and_two_shapes_are_kept_apart() {
    mod one {
        #[derive(schemars::JsonSchema)]
        pub(super) struct Inner {
            #[allow(dead_code, reason = "of interest is its schema")]
            a: u8,
        }
    }
    mod two {
        #[derive(schemars::JsonSchema)]
        pub(super) struct Inner {
            #[allow(dead_code, reason = "of interest is its schema")]
            b: String,
        }
    }
    #[derive(JsonSchema)]
    struct First {
        #[allow(dead_code, reason = "of interest is its schema")]
        inner: one::Inner,
    }
    #[derive(JsonSchema)]
    struct Second {
        #[allow(dead_code, reason = "of interest is its schema")]
        inner: two::Inner,
    }
    let routes: Routes = Routes::new().schema::<First>().schema::<Second>().schema::<First>();
    let schemas = &document(&routes)["components"]["schemas"];
    let target = |name: &str| schemas[name]["properties"]["inner"]["$ref"].as_str().unwrap().to_owned();
    assert_eq!(target("First"), "#/components/schemas/Inner");
    assert_eq!(target("Second"), "#/components/schemas/SecondInner");
    assert!(schemas["Inner"]["properties"]["a"].is_object() && schemas["SecondInner"]["properties"]["b"].is_object());
}

#[test]
fn the_page_names_every_operation_and_every_schema() {
    let operation = Operation::new(Method::GET, "/a/{b}", "a.b", group(), "Read it").answers(
        StatusCode::OK,
        "All.",
        reference("Thing"),
    );
    let routes: Routes = Routes::new().on(operation, || async {}).schema_as("Thing", json!({ "type": "string" }));
    let html = page(&document(&routes)).html;
    for part in ["id=\"op-a-b\"", "href=\"#schema-Thing\"", "id=\"schema-Thing\"", "Read it"] {
        assert!(html.contains(part), "{part}: {html}");
    }
    let ids: Vec<&str> = html.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(ids.len(), ids.iter().collect::<BTreeSet<_>>().len(), "{ids:?}");
}

#[test]
fn nothing_points_nowhere() {
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => fields.iter().for_each(|(key, value)| match value {
                Value::String(target) if key == "$ref" => found.push(target.clone()),
                other => references(other, found),
            }),
            Value::Array(entries) => entries.iter().for_each(|entry| references(entry, found)),
            _ => {}
        }
    }
    let routes: Routes = Routes::new()
        .answer_schema::<xds::NodeStatus>()
        .schema_as("Kind", entity_schema(entities::registry::by_collection("threat-feeds").unwrap()));
    let document = document(&routes);
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 5, "{found:?}");
    found.retain(|target| document.pointer(target.trim_start_matches('#')).is_none());
    // What errors are made of comes with the entity API.
    found.retain(|target| target != "#/components/schemas/FieldProblem");
    assert_eq!(found, Vec::<String>::new());
}
