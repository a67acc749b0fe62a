use super::*;
use entities::Secret;
use policies::ChallengeKind;

fn asked() -> VerifyToken {
    VerifyToken {
        provider: "w".into(),
        token: "{\"a\": 1}&b".into(),
        ip: "2001:db8::1".into(),
        host: "shop.example".into(),
    }
}

/// Body and headers of the call for a preset.
fn sent(preset: Option<&str>, bind_ip: bool) -> (String, HeaderMap) {
    let provider = ChallengeProvider {
        kind: ChallengeKind::Vendor,
        preset_ref: preset.map(str::to_owned),
        bind_ip,
        site_key: "public".into(),
        secret_key: Secret::from("hunter2"),
        verify_url: "https://vendor.example/verify".into(),
        ..ChallengeProvider::default()
    };
    let call = call(&provider, &asked(), Duration::from_secs(1));
    assert_eq!((call.method, call.url.as_str(), call.redirects), (Method::POST, "https://vendor.example/verify", 0));
    (String::from_utf8(call.body.to_vec()).unwrap(), call.headers)
}

#[test]
fn every_vendor_is_called_in_its_own_words() {
    let token = "%7B%22a%22%3A+1%7D%26b";
    for (preset, bind_ip, body) in [
        (None, true, format!("secret=hunter2&response={token}&remoteip=2001%3Adb8%3A%3A1")),
        (Some("turnstile"), false, format!("secret=hunter2&response={token}")),
        (Some("hcaptcha"), false, format!("secret=hunter2&response={token}&sitekey=public")),
        (Some("friendly-captcha"), true, format!("secret=hunter2&solution={token}&sitekey=public")),
    ] {
        let (sent, headers) = sent(preset, bind_ip);
        assert_eq!(sent, body, "{preset:?}");
        assert_eq!(headers[header::CONTENT_TYPE], "application/x-www-form-urlencoded");
        assert!(!headers.contains_key("rest-key"));
    }
    let (body, headers) = sent(Some("captcha-eu"), true);
    assert_eq!((body.as_str(), &headers["rest-key"]), ("{\"a\": 1}&b", &HeaderValue::from_static("hunter2")));
    assert_eq!(headers[header::CONTENT_TYPE], "application/json");
    assert!(!format!("{headers:?}").contains("hunter2"));
}

#[test]
fn only_a_plain_yes_counts() {
    let yes = |host: Option<&str>| Said::Yes { host: host.map(str::to_owned) };
    for (status, body, said) in [
        (200, r#"{"success":true}"#, yes(None)),
        (200, r#"{"success":true,"hostname":"a.example","error-codes":[]}"#, yes(Some("a.example"))),
        (200, r#"{"success":true,"hostname":null}"#, yes(None)),
        (200, r#"{"success":false,"error-codes":["timeout-or-duplicate"]}"#, Said::No),
        (400, r#"{"success":false,"errors":["solution_missing"]}"#, Said::No),
        (200, r#"{"success":false,"error-codes":7}"#, Said::No),
    ] {
        assert_eq!(read(StatusCode::from_u16(status).unwrap(), body.as_bytes()), said, "{status} {body}");
    }
    for (status, body, why) in [
        (500, r#"{"success":true}"#, "status 500"),
        (401, r#"{"success":false,"errors":["secret_invalid"]}"#, "status 401"),
        (302, r#"{"success":true}"#, "status 302"),
        (200, r#"{"success":"true"}"#, "not JSON"),
        (200, r#"{"success":1}"#, "not JSON"),
        (200, "{}", "not JSON"),
        (200, "<html>", "not JSON"),
        (200, "", "not JSON"),
        (
            200,
            r#"{"success":false,"error-codes":["invalid-input-secret"]}"#,
            "our key or fails itself: invalid-input-secret",
        ),
        (200, r#"{"success":false,"error-codes":["internal-error"]}"#, "internal-error"),
    ] {
        match read(StatusCode::from_u16(status).unwrap(), body.as_bytes()) {
            Said::Nothing(said) => assert!(said.contains(why), "{status} {body}: {said}"),
            said => panic!("{status} {body}: {said:?}"),
        }
    }
}

#[test]
fn a_token_is_good_for_its_host_and_those_below() {
    for (solved, asked, good) in [
        ("shop.example", "shop.example", true),
        ("SHOP.example.", "shop.example", true),
        ("shop.example", "www.shop.example", true),
        ("www.shop.example", "shop.example", false),
        ("shop.example", "workshop.example", false),
        ("other.example", "shop.example", false),
        ("example", "shop.example", false),
        ("", "shop.example", true),
        ("shop.example", "", true),
    ] {
        assert_eq!(admits(solved, asked), good, "{solved} {asked}");
    }
}
