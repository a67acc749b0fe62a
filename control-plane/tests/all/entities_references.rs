//! References between entities: checked, named, kept, and cut only by force.

use crate::entities_samples;

use crate::entities_support::Api;
use compiler::Compiler;
use serde_json::{Value, json};

/// What is named, by whom, and where.
fn references() -> Vec<(&'static str, &'static str, Value, &'static str)> {
    let plugin = |plugin: &str, config: Value| json!({"plugins": [{"plugin": plugin, "config": config}]});
    let validator =
        |plugin: &str, config: Value| json!({"incoming_request_validators": [{"plugin": plugin, "config": config}]});
    let preset = |field: &str| plugin("SecuritySuitePreset", json!({field: "target"}));
    let rungs = json!([{"min_score": 40, "action": "challenge"}]);
    vec![
        ("waf-rulesets", "waf-configs", json!({"rulesets": ["target"]}), "/rulesets/0"),
        (
            "challenge-providers",
            "threat-policies",
            json!({"tiers": rungs, "challenge_provider": "target"}),
            "/challenge_provider",
        ),
        ("routes", "alert-rules", json!({"routes": ["target"]}), "/routes/0"),
        ("api-contracts", "routes", json!({"metadata": {"svc-api-contract": "target"}}), "/metadata/svc-api-contract"),
        ("waf-configs", "routes", plugin("SvcWaf", json!({"ref": "target"})), "/plugins/0/config/ref"),
        ("threat-policies", "routes", plugin("SvcThreatGate", json!({"policy": "target"})), "/plugins/0/config/policy"),
        (
            "threat-policies",
            "routes",
            plugin("SvcThreatResponse", json!({"policy": "target"})),
            "/plugins/0/config/policy",
        ),
        ("bot-policies", "routes", plugin("SvcBotGuard", json!({"policy": "target"})), "/plugins/0/config/policy"),
        (
            "threat-feeds",
            "routes",
            plugin("SvcIpReputation", json!({"feeds": ["target"]})),
            "/plugins/0/config/feeds/0",
        ),
        (
            "svc-bouncers",
            "routes",
            plugin("SvcIpReputation", json!({"bouncers": ["target"]})),
            "/plugins/0/config/bouncers/0",
        ),
        (
            "api-contracts",
            "routes",
            plugin("SvcApiContract", json!({"contract": "target"})),
            "/plugins/0/config/contract",
        ),
        (
            "malware-scanners",
            "routes",
            plugin("SvcUploadGuard", json!({"scanner": "target"})),
            "/plugins/0/config/scanner",
        ),
        ("threat-policies", "routes", preset("threat_policy"), "/plugins/0/config/threat_policy"),
        ("waf-configs", "routes", preset("waf_config"), "/plugins/0/config/waf_config"),
        ("bot-policies", "routes", preset("bot_policy"), "/plugins/0/config/bot_policy"),
        ("honeypot-policies", "routes", preset("honeypot_policy"), "/plugins/0/config/honeypot_policy"),
        ("api-contracts", "routes", preset("api_contract_id"), "/plugins/0/config/api_contract_id"),
        ("malware-scanners", "routes", preset("uploads_scanner"), "/plugins/0/config/uploads_scanner"),
        (
            "honeypot-policies",
            "global-config",
            validator("IncomingRequestValidatorSvcHoneypot", json!({"policy": "target"})),
            "/incoming_request_validators/0/config/policy",
        ),
        (
            "threat-feeds",
            "global-config",
            validator("IncomingRequestValidatorSvcIpReputation", json!({"feeds": ["target"]})),
            "/incoming_request_validators/0/config/feeds/0",
        ),
        (
            "waf-configs",
            "global-config",
            validator("IncomingRequestValidatorSvcWaf", json!({"ref": "target"})),
            "/incoming_request_validators/0/config/ref",
        ),
    ]
}

#[tokio::test]
async fn every_reference_is_checked_named_and_kept() {
    for (named, naming, mut document, pointer) in references() {
        let api = Api::new().await;
        let (one, target) = (format!("/{naming}/naming"), format!("/{named}/target"));
        let (method, one) = if naming == "global-config" {
            ("PUT", "/global-config/global-config".to_owned())
        } else {
            document["id"] = json!("naming");
            ("POST", one)
        };
        let path = if method == "PUT" { one.clone() } else { format!("/{naming}") };
        let write = async || api.call(method, &path, Some(document.clone())).await;
        let refused = write().await;
        let error = &refused.body["errors"][0];
        assert_eq!((refused.status.as_u16(), error["pointer"].as_str()), (400, Some(pointer)), "{}", refused.text);
        assert_eq!(error["message"], format!("there is no entity `target` in {named}"));

        // One that is near is suggested.
        let mut near = entities_samples::minimal(entities::registry::by_collection(named).unwrap());
        near["id"] = json!("targt");
        assert_eq!(api.call("POST", &format!("/{named}"), Some(near.clone())).await.status, 201);
        let message = write().await.body["errors"][0]["message"].clone();
        assert_eq!(message, format!("there is no entity `target` in {named}, did you mean `targt`?"));

        near["id"] = json!("target");
        assert_eq!(api.call("POST", &format!("/{named}"), Some(near)).await.status, 201);
        let written = write().await;
        assert!(written.status.is_success(), "{}", written.text);
        let refused = api.call("DELETE", &target, None).await;
        assert_eq!((refused.status.as_u16(), &refused.body["error"]), (409, &json!("in_use")), "{}", refused.text);
        let listed = &refused.body["errors"];
        assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
        let by = one.trim_start_matches('/');
        assert_eq!(listed[0]["message"], format!("{by} names it at {pointer}"));
        assert_eq!(api.call("DELETE", &format!("{target}?force=false"), None).await.status, 409);

        let forced = api.call("DELETE", &format!("{target}?force=true"), None).await;
        assert_eq!(forced.status, 200, "{}", forced.text);
        let warnings: Vec<String> = serde_json::from_str(forced.header("x-palisade-warnings")).unwrap();
        assert_eq!(warnings, [format!("{by} names it at {pointer}")]);
        assert_eq!(api.call("GET", &target, None).await.status, 404);
        assert_eq!(api.call("GET", &one, None).await.status, 200, "what named it stays");
        // Another deletion is not held up by what dangles already, nor by another suggestion.
        assert_eq!(api.call("DELETE", &format!("/{named}/targt"), None).await.status, 200);
        // What dangles has to be put right with the next write.
        assert_eq!(api.call("PATCH", &one, Some(json!({"description": "x"}))).await.status, 400);
    }
}

#[tokio::test]
async fn what_gateways_cannot_do_without_is_not_deleted_by_force() {
    let api = Api::new().await;
    api.state.entities.add_admission(std::sync::Arc::new(Compiler::default()));
    api.call("POST", "/waf-configs", Some(json!({"id": "main"}))).await;
    let plugins = json!([{"plugin": "SvcWaf", "config": {"ref": "main"}}]);
    assert_eq!(api.call("POST", "/routes", Some(json!({"id": "shop", "plugins": plugins}))).await.status, 201);
    let refused = api.call("DELETE", "/waf-configs/main?force=true", None).await;
    assert_eq!((refused.status.as_u16(), &refused.body["error"]), (409, &json!("in_use")), "{}", refused.text);
    assert!(refused.text.contains("routes/shop would not work any more"), "{}", refused.text);
    assert_eq!(api.call("GET", "/waf-configs/main", None).await.status, 200);
    api.call("PATCH", "/routes/shop", Some(json!({"enabled": false}))).await;
    assert_eq!(api.call("DELETE", "/waf-configs/main?force", None).await.status, 200, "a disabled route does without");
}

#[tokio::test]
async fn a_route_names_groups_that_are_there_and_keeps_them() {
    let api = Api::new().await;
    api.state.entities.add_admission(std::sync::Arc::new(Compiler::default()));
    let route = json!({"id": "shop", "groups": ["eu"]});
    let refused = api.call("POST", "/routes", Some(route.clone())).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    assert_eq!(refused.body["errors"][0]["pointer"], "/groups/0");
    assert_eq!(refused.body["errors"][0]["message"], "global-config has no group `eu`");
    let global = "/global-config/global-config";
    let patched = api.call("PATCH", global, Some(json!({"groups": {"eu": {"port": 8443}}}))).await;
    assert_eq!(patched.status, 200, "{}", patched.text);
    assert_eq!(api.call("POST", "/routes", Some(route)).await.status, 201);
    let refused = api.call("PATCH", global, Some(json!({"groups": {"eu": null}}))).await;
    let message = refused.body["errors"][0]["message"].as_str().unwrap_or_default();
    assert_eq!(refused.status, 400, "{}", refused.text);
    assert!(message.contains("routes/shop") && message.contains("no group `eu`"), "{message}");
    assert_eq!(api.call("DELETE", "/routes/shop", None).await.status, 200);
    assert_eq!(api.call("PATCH", global, Some(json!({"groups": {"eu": null}}))).await.status, 200);
}
