use exchange::fake::FakeHost;
use snapshot::{Challenge, Widget};

use super::*;
use crate::tests::{exchange, header, reply};

const NOW: u64 = 1_900_000_000_000;
const SUBMISSION: &str = r#"{"token":"0.abc-DEF"}"#;

fn widget() -> Widget {
    let all = |source: &str| vec![source.to_owned()];
    Widget {
        site_key: "public\"key".into(),
        script_url: "https://vendor.example/api.js?a=1&b=2".into(),
        html: "<div class=w data-key=\"{site_key}\" data-lang={lang}></div><script nonce=\"{nonce}\">go()</script>"
            .into(),
        response_field: "w-response".into(),
        script_sources: all("https://vendor.example"),
        style_sources: Vec::new(),
        frame_sources: all("https://frames.vendor.example"),
        connect_sources: all("https://vendor.example"),
        computes: false,
    }
}

fn settings(widget: Widget) -> Challenge {
    Challenge {
        provider: "challenge-provider_w".into(),
        clearance_ttl_seconds: 1800,
        cookie_name: "svc-clearance".into(),
        keys: vec![b"a key".to_vec()],
        bind_ip: true,
        bind_ua: true,
        widget: Some(widget),
        ..Challenge::default()
    }
}

fn challenges() -> Challenges {
    Challenges::new(settings(widget())).unwrap()
}

fn submission(token: &str) -> Exchange {
    exchange("POST", "192.0.2.1", &[(HEADER, token), (":authority", "Shop.Example:8443")])
}

/// What became of a submission with this answer, and the categories and tags of its events.
fn answered(answer: Confirmation, host: &FakeHost) -> (Reply, Vec<String>) {
    host.events.borrow_mut().clear();
    let (challenges, mut exchange) = (challenges(), submission(SUBMISSION));
    assert!(matches!(challenges.access("test", true, &mut exchange, host), Verdict::Ask(_)));
    let reply = reply(challenges.confirmed("test", answer, &mut exchange, host));
    let told = host.events_json();
    let of = |event: &Value| {
        format!("{} {} {}", event["event"]["category"], event["event"]["outcome"], event["threat"]["tags"])
    };
    (reply, told.iter().map(of).collect())
}

fn page(challenges: &Challenges, headers: &[(&str, &str)], host: &FakeHost) -> (String, String) {
    let mut all = vec![("accept", "text/html")];
    all.extend(headers);
    let reply = challenges.present(&exchange("GET", "192.0.2.1", &all), 40.0, 403, host);
    assert_eq!((reply.status, header(&reply, "cache-control")), (403, "no-store"));
    let policy = header(&reply, "content-security-policy").to_owned();
    (String::from_utf8(reply.body).unwrap(), policy)
}

#[test]
fn the_control_plane_is_asked_about_the_token_of_this_caller() {
    let (challenges, host) = (challenges(), FakeHost::at(NOW));
    let Verdict::Ask(ask) = challenges.access("test", false, &mut submission(SUBMISSION), &host) else {
        panic!("nobody is asked")
    };
    let question = VerifyToken {
        provider: "challenge-provider_w".into(),
        token: "0.abc-DEF".into(),
        ip: "192.0.2.1".into(),
        host: "shop.example".into(),
    };
    assert_eq!(ask, Ask::new(&question, 5000));
}

#[test]
fn only_a_yes_earns_a_clearance() {
    let host = FakeHost::at(NOW);
    let (yes, told) = answered(Confirmation::Yes, &host);
    assert_eq!(yes.status, 204);
    assert_eq!(told, [r#""challenge" "observed" ["challenge:passed"]"#]);
    let cookie = header(&yes, "set-cookie").split(';').next().unwrap().to_owned();
    assert!(cookie.starts_with("svc-clearance=") && header(&yes, "set-cookie").contains("; HttpOnly; SameSite=Lax"));
    let failed = r#""challenge" "blocked" ["challenge:failed"]"#;
    let dependency = r#""dependency" "observed" []"#;
    for (answer, events) in [
        (Confirmation::No, vec![failed]),
        (Confirmation::Overrun, vec![failed]),
        (Confirmation::Unavailable, vec![dependency, failed]),
        (Confirmation::NoControlPlane, vec![dependency, failed]),
    ] {
        let (reply, told) = answered(answer, &host);
        assert_eq!((reply.status, header(&reply, "set-cookie")), (403, ""), "{answer:?}");
        assert_eq!(reply.body, br#"{"error":"challenge_failed"}"#);
        assert_eq!(told, events, "{answer:?}");
    }
    // It is as good as one that was worked for: bound to the caller, for its time, whatever the score.
    let cleared = |ip: &str, score, now| challenges().cleared(&exchange("GET", ip, &[("cookie", &cookie)]), score, now);
    assert!(cleared("192.0.2.77", 100.0, NOW + 1_799_999));
    assert!(!cleared("192.0.3.1", 0.0, NOW) && !cleared("192.0.2.1", 0.0, NOW + 1_800_000));
}

#[test]
fn what_is_no_token_is_refused_before_anybody_is_asked() {
    let (challenges, host) = (challenges(), FakeHost::at(NOW));
    let longest = json!({ "token": "\"".repeat(4096) }).to_string();
    assert!(matches!(challenges.access("test", true, &mut submission(&longest), &host), Verdict::Ask(_)));
    let long = json!({ "token": "x".repeat(4097) }).to_string();
    for wrong in
        ["", "{}", "x", r#"{"token":""}"#, r#"{"token":7}"#, r#"{"token":"a\nb"}"#, r#"{"token":"é"}"#, long.as_str()]
    {
        for last in [false, true] {
            let verdict = challenges.access("test", last, &mut submission(wrong), &host);
            assert_eq!(reply(verdict).status, 403, "{wrong}");
        }
    }
    // A puzzle may be for whoever comes behind.
    let puzzle = r#"{"challenge":"a.b","nonce":1}"#;
    assert_eq!(challenges.access("test", false, &mut submission(puzzle), &host), Verdict::Pass);
    assert_eq!(reply(challenges.access("test", true, &mut submission(puzzle), &host)).status, 403);
    for mut other in [exchange("GET", "192.0.2.1", &[(HEADER, SUBMISSION)]), exchange("POST", "192.0.2.1", &[])] {
        assert_eq!(challenges.access("test", true, &mut other, &host), Verdict::Pass);
    }
}

#[test]
fn host_names_come_without_their_port_and_only_as_names() {
    let of = |authority: &str| host_name(&exchange("GET", "192.0.2.1", &[(":authority", authority)]));
    let names = ["shop.example", "shop.example:443", "[2001:db8::1]:443", "a b", "x/../y", ""].map(of);
    assert_eq!(names, ["shop.example", "shop.example", "[2001:db8::1]", "", "", ""]);
    assert_eq!(of(&"x".repeat(256)), "");
    assert_eq!(host_name(&exchange("GET", "192.0.2.1", &[("host", "SHOP.example")])), "shop.example");
}

#[test]
fn the_page_holds_the_widget_and_its_policy_lets_in_nothing_else() {
    let host = FakeHost::at(NOW);
    let challenges = Challenges::new(Challenge {
        title: "<b>\"Shop\"</b>".into(),
        message: "it's {site_key}".into(),
        ..settings(widget())
    })
    .unwrap();
    let (mut nonces, mut policies) = (Vec::new(), Vec::new());
    for (language, says) in [("en", "Check"), ("fr", "Vérification"), ("de", "Prüfung"), ("es", "Comprobación")] {
        let (page, policy) = page(&challenges, &[("accept-language", language)], &host);
        assert!(page.len() < 12 * 1024, "{} bytes", page.len());
        assert!(page.contains(&format!("<html lang={language}>")) && page.contains(&format!("aria-label=\"{says}\"")));
        assert!(page.contains("&lt;b&gt;&quot;Shop&quot;&lt;/b&gt;") && page.contains("it&#39;s {site_key}"));
        assert!(
            page.contains("data-field=\"w-response\"") && page.contains("data-repeat=1 ") && page.contains("3f2a-77")
        );
        let nonce = policy.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap().to_owned();
        let html = format!(
            "<div class=w data-key=\"public&quot;key\" data-lang={language}></div><script nonce=\"{nonce}\">go()</script>"
        );
        assert!(page.contains(&html), "{page}");
        let script = format!("nonce={nonce} src=\"https://vendor.example/api.js?a=1&amp;b=2\" async defer></script>");
        assert!(page.contains(&script), "{page}");
        let own = page.split("<script>").nth(1).unwrap().split("</script>").next().unwrap();
        assert!(policy.contains(&crate::page::sha256_source(own)), "{policy}");
        policies.push(policy.replace(&nonce, "N"));
        nonces.push(nonce);
    }
    nonces.sort();
    nonces.dedup();
    assert_eq!(nonces.len(), 4, "each answer has its own");
    let directives: Vec<_> = policies[0].split("; ").collect();
    let hash = |directive: &str| directive.split("'sha256-").nth(1).unwrap().split('\'').next().unwrap().to_owned();
    let (script, style) = (hash(directives[1]), hash(directives[2]));
    assert_eq!(
        directives,
        [
            "default-src 'none'",
            &format!("script-src 'sha256-{script}' 'nonce-N' https://vendor.example"),
            &format!("style-src 'sha256-{style}'"),
            "connect-src 'self' https://vendor.example",
            "frame-src https://frames.vendor.example",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'self'",
        ]
    );
}

#[test]
fn a_widget_that_computes_gets_workers_and_a_module_is_one() {
    let host = FakeHost::at(NOW);
    let computing = Widget {
        script_url: "https://cdn.example/w.module.min.js".into(),
        style_sources: vec!["'unsafe-inline'".into()],
        frame_sources: Vec::new(),
        computes: true,
        ..widget()
    };
    let (page, policy) = page(&Challenges::new(settings(computing)).unwrap(), &[], &host);
    assert!(page.contains(" type=module src=\"https://cdn.example/w.module.min.js\""), "{page}");
    assert!(policy.contains("'wasm-unsafe-eval' 'nonce-") && policy.contains("; worker-src blob:; child-src blob:;"));
    assert!(policy.contains("; style-src 'unsafe-inline';") && !policy.contains("frame-src"), "{policy}");
}

#[test]
fn programs_are_told_what_a_client_of_their_own_needs() {
    let (challenges, host) = (challenges(), FakeHost::at(NOW));
    let reply = challenges.present(&exchange("GET", "192.0.2.1", &[("accept", "application/json")]), 40.0, 429, &host);
    assert_eq!((reply.status, header(&reply, "content-type")), (429, "application/json"));
    let body: Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(
        body,
        json!({
            "error": "challenge_required", "kind": "vendor", "by": "challenge-provider_w", "site_key": "public\"key",
            "widget_script_url": "https://vendor.example/api.js?a=1&b=2", "response_field": "w-response",
            "header": HEADER, "reference": "3f2a-77",
        })
    );
}
