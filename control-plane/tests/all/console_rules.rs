//! Rules, compiled and tried from the console.

use crate::console_support::{ConsoleApi, Login};
use crate::entities_support::Answer;
use serde_json::{Value, json};

const RULE: &str = "SecRule ARGS:q \"@contains attack\" \"id:1,phase:2,deny,status:406,log,msg:'an attack',\
                    logdata:'%{MATCHED_VAR}',severity:CRITICAL,tag:'custom'\"";

struct Bench {
    console: ConsoleApi,
    login: Login,
}

impl Bench {
    async fn new() -> Bench {
        let console = ConsoleApi::new().await;
        let login = console.login("alice").await;
        Bench { console, login }
    }

    async fn ruleset(&self, id: &str, name: &str, enabled: bool, rules: &[&str]) {
        let document = json!({ "id": id, "name": name, "enabled": enabled, "rules": rules });
        let made = self.console.api.call("POST", "/waf-rulesets", Some(document)).await;
        assert_eq!(made.status, 201, "{}", made.text);
    }

    async fn post(&self, path: &str, body: Value) -> Answer {
        self.console.post(&self.login, path, &body).await
    }

    async fn compile(&self, body: Value) -> Value {
        let answer = self.post("/utils/_compile", body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.body
    }

    async fn test(&self, body: Value) -> Value {
        let answer = self.post("/utils/_test", body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!(answer.body["done"], true, "{}", answer.text);
        answer.body["result"].clone()
    }
}

fn error(answer: &Value, at: usize) -> (u64, &str, &str) {
    assert_eq!(answer["done"], false, "{answer}");
    let error = &answer["errors"][at];
    (error["index"].as_u64().unwrap(), error["origin"].as_str().unwrap(), error["message"].as_str().unwrap())
}

#[tokio::test]
async fn what_compiles_is_done() {
    let bench = Bench::new().await;
    let nothing = json!({"done": true, "missing_rulesets": [], "crs_ignored": false, "warning": null});
    assert_eq!(bench.compile(json!({})).await, nothing);
    assert_eq!(bench.compile(json!({"rules": null, "rulesets": null, "crs": null})).await, nothing);
    assert_eq!(bench.compile(json!({"rules": [RULE], "rulesets": [], "crs": {}})).await, nothing);
    let crs = json!({"rules": ["@import_preset crs", RULE], "crs": {"paranoia_level": 2, "early_blocking": true}});
    assert_eq!(bench.compile(crs.clone()).await, nothing);
    assert_eq!(bench.compile(crs).await, nothing);
}

#[tokio::test]
async fn each_fault_has_its_place_in_the_composition() {
    let bench = Bench::new().await;
    bench
        .ruleset(
            "base",
            "baseline",
            true,
            &["SecAction \"id:10,phase:1,pass,nolog\"", "SecAction \"id:11,phase:1,pass,nolog\""],
        )
        .await;
    let broken = "# mine\nSecRule ARGX \"@rx x\" \"id:2,phase:2,deny\"";
    let answer = bench.compile(json!({"rulesets": ["base"], "rules": [RULE, broken, "@import_preset crz"]})).await;
    let (index, origin, message) = error(&answer, 0);
    assert_eq!((index, origin), (3, "rule 2"));
    assert!(message.contains("--> rule 2, line 2, column 9") && message.contains("\n   |         ^"), "{message}");
    assert!(message.contains("help: did you mean"), "{message}");
    let (index, origin, message) = error(&answer, 1);
    assert_eq!((index, origin), (4, "rule 3"));
    assert!(message.contains("there is no preset `crz`") && message.contains("did you mean `crs`"), "{message}");
    assert!(message.contains("--> rule 3, line 1, column 16") && message.contains('^'), "{message}");
    assert_eq!(answer["errors"].as_array().unwrap().len(), 2, "{answer}");
    let summary = answer["error"].as_str().unwrap();
    assert!(summary.starts_with("rule 2, line 2: unknown variable") && summary.ends_with("(and 1 more)"), "{summary}");
    assert_eq!(answer.as_object().unwrap().len(), 3, "{answer}");
}

#[tokio::test]
async fn faults_of_rulesets_name_the_ruleset() {
    let bench = Bench::new().await;
    let bad = ["SecAction \"id:10,phase:1,pass,nolog\"", "", "SecRule ARGS \"@rx (\" \"id:12,phase:2,deny\""];
    bench.ruleset("old", "baseline", true, &bad).await;
    for reference in [json!("old"), json!({"id": "old"}), json!({"ref": "old"})] {
        let answer = bench.compile(json!({"rulesets": [reference], "rules": [RULE]})).await;
        let (index, origin, message) = error(&answer, 0);
        assert_eq!((index, origin), (2, "ruleset 'baseline', rule 3"), "{message}");
    }
}

#[tokio::test]
async fn a_chain_ends_with_its_element() {
    let bench = Bench::new().await;
    let open = "SecRule ARGS \"@rx a\" \"id:3,phase:2,deny,chain\"";
    let rest = "SecRule ARGS \"@rx b\" \"t:none\"";
    let answer = bench.compile(json!({"rules": [RULE, open, rest]})).await;
    let (index, origin, message) = error(&answer, 0);
    assert_eq!((index, origin), (1, "rule 2"));
    assert!(message.contains("the chain of this rule has no end"), "{message}");
    let whole = format!("{open}\n{rest}");
    assert_eq!(bench.compile(json!({"rules": [RULE, whole]})).await["done"], true);
    let last = bench.compile(json!({"rules": [open]})).await;
    assert_eq!(error(&last, 0).1, "rule 1");
}

#[tokio::test]
async fn rules_that_do_not_go_together_are_refused() {
    let bench = Bench::new().await;
    let answer = bench.compile(json!({"rules": [RULE, RULE]})).await;
    let (index, origin, message) = error(&answer, 0);
    assert_eq!((index, origin), (1, "rule 2"));
    assert!(message.contains("the id 1 is used twice") && message.contains("rule 1:1"), "{message}");
    let clash =
        json!({"rules": ["@import_preset crs", "SecAction \"id:949110,phase:2,pass\""], "crs": {"paranoia_level": 1}});
    let answer = bench.compile(clash).await;
    let (index, origin, _) = error(&answer, 0);
    // The options of the core rule set stand between rulesets and rules.
    assert_eq!((index, origin), (2, "rule 2"));
}

#[tokio::test]
async fn rulesets_that_are_missing_or_disabled_contribute_nothing() {
    let bench = Bench::new().await;
    bench.ruleset("off", "off", false, &[RULE]).await;
    let answer = bench.compile(json!({"rulesets": ["gone", "off", {"id": "gone2"}], "rules": [RULE]})).await;
    assert_eq!(answer["done"], true, "{answer}");
    assert_eq!(answer["missing_rulesets"], json!(["gone", "gone2"]));
}

#[tokio::test]
async fn crs_options_without_the_core_rule_set_are_ignored_with_a_warning() {
    let bench = Bench::new().await;
    let answer = bench.compile(json!({"rules": [RULE], "crs": {"paranoia_level": 2}})).await;
    assert_eq!((&answer["done"], &answer["crs_ignored"]), (&json!(true), &json!(true)));
    assert!(answer["warning"].as_str().unwrap().contains("@import_preset crs"), "{answer}");
    bench.ruleset("core", "core", true, &["@import_preset crs"]).await;
    let imported = bench.compile(json!({"rulesets": ["core"], "crs": {"paranoia_level": 2}})).await;
    assert_eq!((&imported["crs_ignored"], &imported["warning"]), (&json!(false), &Value::Null));
    let twice = bench.compile(json!({"rulesets": ["core"], "rules": ["@import_preset crs"]})).await;
    assert_eq!(twice["done"], true, "{twice}");
    assert!(twice["warning"].as_str().unwrap().starts_with("rule 1: the preset is imported already"), "{twice}");
    let wrong = bench.compile(json!({"rulesets": ["core"], "crs": {"paranoia_level": 7}})).await;
    assert_eq!(error(&wrong, 0).1, "crs");
}

#[tokio::test]
async fn rules_that_inspect_nothing_are_told() {
    let bench = Bench::new().await;
    bench.ruleset("off", "off", false, &[RULE]).await;
    for (body, why) in [
        (json!({"rulesets": ["off"]}), "no rule that runs looks at requests"),
        (json!({"rules": [RULE, "SecRuleEngine Off"]}), "`SecRuleEngine Off`"),
        (json!({"rules": [RULE, "SecRequestBodyAccess Off"]}), "request bodies are not inspected"),
        (json!({"rules": [RULE, "SecRuleRemoveById 1-999999"]}), "no rule that runs looks at requests"),
        (
            json!({"rules": ["SecAction \"id:9,phase:1,pass,nolog,ctl:ruleEngine=Off\"", "@import_preset crs"]}),
            "the rule 9 switches the rule engine off",
        ),
    ] {
        let answer = bench.compile(body.clone()).await;
        assert!(answer["warning"].as_str().is_some_and(|warning| warning.contains(why)), "{body}: {answer}");
    }
    let honest = json!({"rules": [RULE, "SecRuleEngine DetectionOnly"]});
    assert_eq!(bench.compile(honest).await["warning"], Value::Null);
}

#[tokio::test]
async fn bodies_that_are_none_are_400_with_done_false() {
    let bench = Bench::new().await;
    for (body, what) in [
        (json!([]), "not a JSON object"),
        (json!({"rules": "x"}), "/rules"),
        (json!({"rule": []}), "did you mean `rules`"),
        (json!({"rulesets": [1]}), "/rulesets/0"),
        (json!({"crs": {"paranoia": 1}}), "/crs/paranoia"),
    ] {
        let answer = bench.post("/utils/_compile", body).await;
        assert_eq!((answer.status.as_u16(), &answer.body["done"]), (400, &json!(false)), "{}", answer.text);
        assert!(answer.body["error"].as_str().unwrap().contains(what), "{}", answer.text);
        assert_eq!(answer.body["errors"], json!([]));
    }
    let huge = bench.post("/utils/_compile", json!({"rules": ["#".repeat(1024 * 1024)]})).await;
    assert_eq!((huge.status.as_u16(), &huge.body["done"]), (413, &json!(false)));
    let body = bench.post("/utils/_test", json!({"request": {"body": "a", "body_base64": "YQ=="}})).await;
    assert_eq!(body.status, 400);
    assert!(body.text.contains("/request/body_base64"), "{}", body.text);
}

#[tokio::test]
async fn a_trial_shows_what_matched_where_and_what_came_of_it() {
    let bench = Bench::new().await;
    let passing = "SecRule REQUEST_HEADERS:User-Agent \"@contains curl\" \"id:2,phase:1,pass,log,msg:'a tool'\"";
    let request = json!({"method": "GET", "uri": "/?q=an+attack&a=1", "headers": {"User-Agent": "curl/8"}, "body": ""});
    let result = bench.test(json!({"rules": [RULE, passing], "request": request})).await;
    let disposition = &result["disposition"];
    assert_eq!(
        (&disposition["action_type"], &disposition["status"], &disposition["rule_id"], &disposition["msg"]),
        (&json!("block"), &json!(406), &json!(1), &json!("an attack"))
    );
    assert_eq!(
        result["matched_rules"][1],
        json!({
            "id": 1, "phase": 2, "msg": "an attack", "severity": "CRITICAL", "tags": ["custom"], "data": "an attack",
            "matched": [{"variable": "ARGS:q", "value": "an attack"}], "count": 1, "disruptive": true, "logged": true
        })
    );
    assert_eq!(result["events"][0]["rule_id"], 2);
    assert_eq!(result["events"][1]["variable"], "ARGS:q");
    let ran: Vec<bool> = (0..5).map(|at| result["phases"][at]["evaluated"].as_bool().unwrap()).collect();
    assert_eq!(ran, [true, true, false, false, true]);
    assert_eq!(result["phases"][0]["rule_ids"], json!([2]));
    assert_eq!(result["phases"][1]["interruption"]["rule_id"], 1);
    assert_eq!(result["scores"]["total"], 0);

    let benign = bench.test(json!({"rules": [RULE], "request": {"uri": "/", "query": {"q": "chairs"}}})).await;
    assert_eq!(benign["disposition"]["action_type"], "continue");
    assert_eq!((&benign["disposition"]["status"], &benign["matched_rules"]), (&Value::Null, &json!([])));
}

#[tokio::test]
async fn a_trial_takes_bodies_cookies_protocol_and_a_response() {
    let bench = Bench::new().await;
    let blocks = async |rule: &str, exchange: Value| {
        let mut body = exchange;
        body["rules"] = json!([rule]);
        bench.test(body).await["disposition"]["rule_id"] == 5
    };
    let form = json!({"request": {"method": "POST", "headers": {"Content-Type": "application/x-www-form-urlencoded"}, "body": "q=evil"}});
    assert!(blocks("SecRule ARGS_POST:q \"@streq evil\" \"id:5,phase:2,deny\"", form).await);
    let binary = json!({"request": {"method": "POST", "headers": {"content-type": "application/x-www-form-urlencoded"}, "body_base64": "cT3/"}});
    assert!(blocks("SecRule ARGS_POST:q \"@rx \\xff\" \"id:5,phase:2,deny\"", binary).await);
    let cookie = json!({"request": {"cookies": {"session": "stolen"}}});
    assert!(blocks("SecRule REQUEST_COOKIES:session \"@streq stolen\" \"id:5,phase:1,deny\"", cookie).await);
    let old = json!({"request": {"protocol": "HTTP/1.0", "remote_addr": "198.51.100.7"}});
    assert!(blocks("SecRule REQUEST_PROTOCOL \"@streq HTTP/1.0\" \"id:5,phase:1,deny\"", old.clone()).await);
    assert!(blocks("SecRule REMOTE_ADDR \"@ipMatch 198.51.100.0/24\" \"id:5,phase:1,deny\"", old).await);
    let leak = json!({"response": {"status": 500, "headers": {"content-type": "text/html"}, "body": "ORA-00942"}});
    assert!(blocks("SecRule RESPONSE_BODY \"@contains ORA-\" \"id:5,phase:4,deny\"", leak.clone()).await);
    assert!(blocks("SecRule RESPONSE_STATUS \"@streq 500\" \"id:5,phase:3,deny\"", leak).await);
    assert!(!blocks("SecRule RESPONSE_STATUS \"@streq 500\" \"id:5,phase:3,deny\"", json!({})).await);
    let mode = "SecRuleEngine DetectionOnly\nSecAction \"id:5,phase:1,deny,status:418\"";
    let only = bench.test(json!({"rules": [mode]})).await;
    assert_eq!(
        (&only["engine_mode"], &only["disposition"]["action_type"]),
        (&json!("detection_only"), &json!("continue"))
    );
    assert_eq!(only["disposition"]["would_block"]["status"], 418);
    let undecodable = json!({"headers": {"content-encoding": "gzip"}, "method": "POST", "body": "no gzip"});
    let refused = bench.test(json!({"rules": [RULE], "request": undecodable})).await;
    assert_eq!((&refused["disposition"]["status"], &refused["disposition"]["rule_id"]), (&json!(400), &json!(0)));
}

#[tokio::test]
async fn a_trial_meets_the_limits_that_gateways_have() {
    let bench = Bench::new().await;
    let post = |kind: &str, body: String| json!({"method": "POST", "headers": {"content-type": kind}, "body": body});
    let disposition = async |rules: Value, request: Value| {
        let result = bench.test(json!({"rules": rules, "request": request})).await;
        let found = &result["disposition"];
        (found["status"].clone(), found["rule_id"].clone(), found["phase"].clone(), result)
    };
    // The gateway undoes the chunks; rules see that the body came in some.
    let chunked = json!(["SecRule REQUEST_HEADERS:Transfer-Encoding \"@streq chunked\" \"id:5,phase:1,deny\""]);
    let (_, rule, ..) = disposition(chunked.clone(), post("text/plain", "a".into())).await;
    assert_eq!(rule, 5);
    let framed = json!({"method": "POST", "headers": {"content-length": "1"}, "body": "a"});
    let (_, rule, ..) = disposition(chunked, framed).await;
    assert_eq!(rule, Value::Null);
    // Over the limit of a new WAF config, as a form and by the announced length alone.
    for request in [
        post("application/x-www-form-urlencoded", format!("a={}", "b".repeat(1 << 20))),
        json!({"method": "POST", "headers": {"content-type": "text/plain", "content-length": "9000000"}, "body": "a"}),
    ] {
        let (status, rule, phase, result) = disposition(json!([RULE]), request).await;
        assert_eq!((status, rule, phase), (json!(413), json!(0), json!(2)), "{result}");
        assert_eq!(result["phases"][2]["evaluated"], false);
    }
    // The budget of the rules ends: what they look for may be in the rest.
    let counting = |id: usize| {
        format!("SecRule ARGS_POST \"@unconditionalMatch\" \"id:{id},phase:2,pass,nolog,setvar:tx.seen=+1\"")
    };
    let many: Vec<String> = (1000..1400).map(counting).collect();
    let form: String = (0..900).map(|number| format!("a{number}=1&")).collect();
    let (status, rule, phase, result) = disposition(json!(many), post("application/x-www-form-urlencoded", form)).await;
    assert_eq!((status, rule, phase), (json!(503), json!(0), json!(2)), "{}", result["disposition"]);
}

#[tokio::test]
async fn the_core_rule_set_is_tried_with_its_scores() {
    let bench = Bench::new().await;
    let attack = json!({"method": "GET", "uri": "/search?q=1'+UNION+SELECT+password+FROM+users--+-",
                        "headers": {"Host": "shop.example", "User-Agent": "Mozilla/5.0", "Accept": "*/*"}});
    let body = json!({"rules": ["@import_preset crs"], "request": attack});
    let result = bench.test(body.clone()).await;
    let disposition = &result["disposition"];
    assert_eq!((&disposition["action_type"], &disposition["status"]), (&json!("block"), &json!(403)), "{result}");
    assert_eq!(disposition["rule_id"], 949_110);
    let ids: Vec<u64> =
        result["events"].as_array().unwrap().iter().map(|event| event["rule_id"].as_u64().unwrap()).collect();
    assert!(ids.contains(&942_100), "{ids:?}");
    let scores = &result["scores"];
    let inbound = scores["inbound"].as_i64().unwrap();
    assert!(inbound >= 5, "{scores}");
    assert_eq!((&scores["total"], &scores["inbound_threshold"]), (&json!(inbound), &json!(5)));
    assert_eq!(scores["levels"][0], json!({"paranoia_level": 1, "inbound": inbound, "outbound": 0}), "{scores}");

    let mut tolerant = body;
    tolerant["crs"] = json!({"inbound_anomaly_threshold": 1000});
    let passes = bench.test(tolerant).await;
    assert_eq!(passes["disposition"]["action_type"], "continue");
    assert_eq!(passes["scores"]["inbound"], json!(inbound));
    assert_eq!(passes["scores"]["inbound_threshold"], 1000);
    let broken = bench.post("/utils/_test", json!({"rules": ["SecRule"], "request": {}})).await;
    assert_eq!((broken.status.as_u16(), error(&broken.body, 0).1), (200, "rule 1"));
}
