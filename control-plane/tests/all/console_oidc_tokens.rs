//! ID tokens that are refused, keys that change, and which operator a person is.

use accounts::{Identity, Operator, Role};
use base::clock;
use serde_json::{Value, json};
use store::AccessChange;

use crate::console_support::{BEGINNING, ConsoleApi};
use crate::oidc_support::{Behaviour, Double, Instead, Signer, enter};

/// A login that is refused, and the reason in the audit log.
async fn refused(double: &Double, console: &ConsoleApi, change: impl FnOnce(&mut Behaviour)) -> String {
    double.change(change);
    let answer = enter(double, console).await;
    assert_eq!((answer.status.as_u16(), answer.header("set-cookie")), (401, ""), "{}", answer.text);
    assert_eq!(answer.body["error"], "token_refused");
    let told = last_refusal(console).await;
    console.advance(61_000);
    told
}

/// The reason of the last refused login, in the audit log.
async fn last_refusal(console: &ConsoleApi) -> String {
    let events = console.events().await;
    let last = events.iter().rfind(|event| event["action"] == "login-refused").unwrap();
    last["detail"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn every_kind_of_key_signs() {
    let double = Double::start().await;
    let console = double.console(|_| {}).await;
    double.person("1", "grace", &["soc"]);
    let newer_name = json!({ "alg": "Ed25519" });
    for (signer, header) in [
        (Signer::rsa("one"), json!({})),
        (Signer::p256("two"), json!({})),
        (Signer::ed25519("three"), json!({})),
        (Signer::ed25519("four"), newer_name),
    ] {
        let algorithm = format!("{} {header}", signer.algorithm());
        double.change(|behaviour| (behaviour.signer, behaviour.header) = (signer, header));
        assert_eq!(enter(&double, &console).await.status, 200, "{algorithm}");
        console.advance(61_000);
    }
}

#[tokio::test]
async fn a_token_that_the_provider_has_not_signed_for_this_login_is_refused() {
    let double = Double::start().await;
    let console = double.console(|_| {}).await;
    double.person("1", "grace", &["soc"]);
    let right = json!({ "keys": [Signer::rsa("one").jwk(), Signer::p256("two").jwk()] });
    double.change(|behaviour| behaviour.keys = Some(right));
    let public = Signer::rsa("one").public();
    for (signer, why) in [
        (Signer::none("one"), "is signed with `none`; RS256, ES256 and EdDSA"),
        (Signer::hmac("one", &public), "is signed with `HS256`; RS256, ES256 and EdDSA"),
        (Signer::hmac("one", b""), "is signed with `HS256`; RS256, ES256 and EdDSA"),
        (Signer::p256("two"), "has a wrong signature"),
    ] {
        let told = refused(&double, &console, |behaviour| behaviour.signer = signer).await;
        assert!(told.contains(why), "{told}");
    }
    for (signer, key) in [(Signer::p256("one"), "`one` (ES256)"), (Signer::ed25519("four"), "`four` (EdDSA)")] {
        double.change(|behaviour| behaviour.signer = signer);
        let answer = enter(&double, &console).await;
        assert_eq!((answer.status.as_u16(), &answer.body["error"]), (503, &json!("provider_key_unknown")), "{key}");
        assert_eq!(answer.header("set-cookie"), "");
        let told = last_refusal(&console).await;
        assert!(told.contains(&format!("the ID token is signed with the key {key}; the key set (")), "{told}");
        console.advance(61_000);
    }
    // The header alone says RS256.
    let told = refused(&double, &console, |behaviour| {
        (behaviour.signer, behaviour.header) = (Signer::hmac("one", &public), json!({ "alg": "RS256" }));
    });
    assert!(told.await.contains("has a wrong signature"));
    for (header, why) in [
        (json!({ "alg": "none" }), "`none`"),
        (json!({ "crit": ["x"] }), "critical"),
        (json!({ "typ": "at+jwt" }), "another type"),
    ] {
        let told = refused(&double, &console, |behaviour| {
            (behaviour.signer, behaviour.header) = (Signer::rsa("one"), header);
        });
        assert!(told.await.contains(why), "{why}");
    }
    double.change(|behaviour| behaviour.header = json!({}));
    assert_eq!(enter(&double, &console).await.status, 200);
}

#[tokio::test]
async fn a_token_for_another_client_time_or_login_is_refused() {
    let double = Double::start().await;
    let console = double.console(|_| {}).await;
    let now = || double.clock.load(std::sync::atomic::Ordering::Relaxed) / 1000;
    let person = json!({ "sub": "1", "preferred_username": "grace", "email": "g@example.com", "groups": ["soc"] });
    let with = |more: Value| {
        let mut claims = person.clone();
        claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        claims
    };
    for (claims, why) in [
        (json!({ "iss": "https://evil.example" }), "another issuer"),
        (json!({ "iss": null }), "another issuer"),
        (json!({ "aud": "other" }), "`aud`"),
        (json!({ "aud": null }), "`aud`"),
        (json!({ "aud": ["palisade", "other"] }), "`azp`"),
        (json!({ "aud": ["palisade"], "azp": "other" }), "`azp`"),
        (json!({ "nonce": "other" }), "`nonce`"),
        (json!({ "nonce": null }), "`nonce`"),
        (json!({ "exp": null }), "lacks `exp`"),
        (json!({ "iat": null }), "lacks `exp` or `iat`"),
        (json!({ "exp": "soon" }), "no time"),
        (json!({ "sub": "" }), "`sub`"),
        (json!({ "sub": null }), "`sub`"),
        (json!({ "sub": 7 }), "`sub`"),
        (json!({ "at_hash": "AAAA" }), "`at_hash`"),
    ] {
        let told = refused(&double, &console, |behaviour| behaviour.claims = with(claims.clone())).await;
        assert!(told.contains(why), "{claims}: {told}");
    }
    // At the edges of the clocks' difference.
    for (claims, why) in [
        (json!({ "exp": now() - 60 }), "expired"),
        (json!({ "iat": now() + 61 + 61 }), "future"),
        (json!({ "nbf": now() + 61 + 122 }), "future"),
        (json!({ "iat": now() + 183 - 661 }), "too old"),
    ] {
        let told = refused(&double, &console, |behaviour| behaviour.claims = with(claims.clone())).await;
        assert!(told.contains(why), "{claims}: {told}");
    }
    for claims in [
        json!({ "aud": ["other", "palisade"], "azp": "palisade" }),
        json!({ "exp": now() - 59 }),
        json!({ "iat": now() + 60 }),
        json!({ "iat": now() - 660 }),
        json!({ "at_hash": at_hash() }),
    ] {
        double.change(|behaviour| behaviour.claims = with(claims.clone()));
        let answer = enter(&double, &console).await;
        assert_eq!(answer.status, 200, "{claims}: {}", answer.text);
    }
}

fn at_hash() -> String {
    use base64::Engine as _;
    let whole = ring::digest::digest(&ring::digest::SHA256, b"the-access-token");
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(&whole.as_ref()[..16])
}

#[tokio::test]
async fn a_new_key_is_fetched_once_it_signs_and_unknown_ones_not_without_end() {
    let double = Double::start().await;
    let console = double.console(|_| {}).await;
    double.person("1", "grace", &["soc"]);
    assert_eq!(enter(&double, &console).await.status, 200);
    let asked = || double.change(|behaviour| behaviour.asked["/jwks"]);
    assert_eq!(enter(&double, &console).await.status, 200);
    assert_eq!(asked(), 1, "keys are kept");
    console.advance(60_000);
    double.change(|behaviour| behaviour.signer = Signer::p256("new"));
    assert_eq!(enter(&double, &console).await.status, 200);
    assert_eq!(asked(), 2);
    let unknown = json!({ "keys": [] });
    double.change(|behaviour| (behaviour.signer, behaviour.keys) = (Signer::p256("made up"), Some(unknown)));
    console.advance(20_000);
    let read_at = clock::rfc3339(BEGINNING + 60_000);
    for _ in 0..5 {
        let answer = enter(&double, &console).await;
        assert_eq!((answer.status.as_u16(), &answer.body["error"]), (503, &json!("provider_key_unknown")));
        assert_eq!(answer.header("retry-after"), "40", "a minute after the set was read");
        assert!(!answer.text.contains("made up"), "{}", answer.text);
        let told = last_refusal(&console).await;
        let again = clock::rfc3339(BEGINNING + 120_000);
        for part in
            ["the key `made up` (ES256)", "/jwks, read at ", &read_at, "has `new` (ES256)", &again, "publish a key"]
        {
            assert!(told.contains(part), "{part}: {told}");
        }
    }
    assert_eq!(asked(), 2, "not within a minute");
    // The set is read again then; what it has is said anew.
    console.advance(40_000);
    let answer = enter(&double, &console).await;
    assert_eq!((answer.status.as_u16(), answer.header("retry-after"), asked()), (503, "60", 3));
    assert!(last_refusal(&console).await.contains("has no key that can be used"));
    // It cannot be read: that is what is wrong, beside the key.
    console.advance(60_000);
    double.change(|behaviour| behaviour.instead = [("/jwks", Instead::Status(500))].into());
    assert_eq!(enter(&double, &console).await.body["error"], "provider_failed");
    let told = last_refusal(&console).await;
    assert!(
        told.contains("the key `made up` (ES256), which the key set (") && told.contains("has answered 500"),
        "{told}"
    );
}

#[tokio::test]
async fn a_name_at_the_provider_is_no_way_to_an_account() {
    let double = Double::start().await;
    let console = double.console(|_| {}).await;
    double.person("mallory", "alice", &["root"]);
    let refused = enter(&double, &console).await;
    assert_eq!((refused.status.as_u16(), &refused.body["error"]), (403, &json!("not_allowed")), "{}", refused.text);
    assert_eq!(refused.header("set-cookie"), "");
    let events = console.events().await;
    let last = events.iter().rfind(|event| event["action"] == "login-refused").unwrap();
    let detail = last["detail"].as_str().unwrap();
    assert!(
        detail.contains("another operator has the name `alice`") && detail.ends_with("subject mallory"),
        "{detail}"
    );
    // One who is linked, and renamed at the provider to a name that is taken here, stays who they are.
    double.person("1", "grace", &["soc"]);
    assert_eq!(enter(&double, &console).await.body["operator"]["name"], "grace");
    double.person("1", "alice", &["soc"]);
    let renamed = enter(&double, &console).await;
    assert_eq!(renamed.body["operator"]["name"], "grace", "{}", renamed.text);
    // An admin links, once, and removes the link.
    let alice = console.login("alice").await;
    let link = async |name: &str, subject: &str| {
        let body = json!({ "name": name, "subject": subject });
        console.post(&alice, "/operators/_link_identity", &body).await.status.as_u16()
    };
    assert_eq!((link("missing", "x").await, link("bob", "").await), (404, 400));
    assert_eq!((link("bob", "1").await, link("bob", "2").await, link("bob", "3").await), (409, 200, 409));
    double.person("2", "robert", &["soc"]);
    let entered = enter(&double, &console).await;
    assert_eq!(
        (&entered.body["operator"]["name"], &entered.body["operator"]["role"]),
        (&json!("bob"), &json!("analyst"))
    );
    let listed = console.get(&alice, "/operators/_list").await.body;
    let has = |name: &str| {
        listed["operators"].as_array().unwrap().iter().find(|of| of["name"] == name).unwrap()["provider"].clone()
    };
    assert_eq!((has("bob"), has("grace"), has("alice")), (json!(true), json!(true), json!(false)));
    let cookie = entered.header("set-cookie").split(';').next().unwrap().to_owned();
    let body = json!({ "name": "bob" });
    assert_eq!(console.post(&alice, "/operators/_unlink_identity", &body).await.status, 200);
    assert_eq!(console.post(&alice, "/operators/_unlink_identity", &body).await.body["error"], "not_linked");
    assert_eq!(
        console.send("GET", "/session/_me", &[("cookie", &cookie)], None).await.status,
        401,
        "sessions have ended"
    );
    let events = console.events().await;
    for action in ["identity-link", "identity-unlink"] {
        assert!(events.iter().any(|event| event["action"] == action && event["ref"] == "operators/bob"), "{action}");
    }
}

#[tokio::test]
async fn an_identity_is_of_one_provider_and_ends_with_its_operator() {
    let double = Double::start().await;
    let console = double.console(|settings| settings.creates = false).await;
    let alice = console.login("alice").await;
    let link = json!({ "name": "bob", "subject": "1" });
    assert_eq!(console.post(&alice, "/operators/_link_identity", &link).await.status, 200);
    double.person("1", "robert", &["soc"]);
    assert_eq!(enter(&double, &console).await.body["operator"]["name"], "bob");
    // The same subject at another provider is another person.
    let identity =
        Identity { issuer: "https://other.example".to_owned(), subject: "2".to_owned(), linked_at_millis: 1 };
    let change = AccessChange::IdentityLink { name: "anna".to_owned(), identity };
    assert!(console.api.state.store.access_change(change, "{}".to_owned()).await.unwrap());
    double.person("2", "ann", &["soc"]);
    assert_eq!(enter(&double, &console).await.body["error"], "not_allowed");
    double.person("1", "robert", &["soc"]);
    // A later operator of the same name is another one.
    assert_eq!(console.post(&alice, "/operators/_remove", &json!({ "name": "bob" })).await.status, 200);
    let bob = Operator::new("bob", "bob@example.com", Role::Admin, String::new(), 1).unwrap();
    assert!(console.api.state.store.operator_add(bob).await.unwrap());
    assert_eq!(enter(&double, &console).await.body["error"], "not_allowed");
    assert!(!console.api.state.store.operator("bob").await.unwrap().unwrap().has_identity);
}

#[tokio::test]
async fn an_address_links_where_it_is_configured_and_verified() {
    let double = Double::start().await;
    let claims = |subject: &str, email: &str, verified: Value| json!({ "sub": subject, "preferred_username": "a", "email": email, "email_verified": verified, "groups": ["root"] });
    let try_with = async |console: &ConsoleApi, claims: Value| {
        double.change(|behaviour| behaviour.claims = claims);
        enter(&double, console).await
    };
    let off = double.console(|settings| settings.creates = false).await;
    assert_eq!(try_with(&off, claims("1", "alice@example.com", json!(true))).await.status, 403);
    let on = double.console(|settings| (settings.creates, settings.links_by_email) = (false, true)).await;
    for unverified in [json!(false), Value::Null, json!("yes"), json!(1)] {
        assert_eq!(try_with(&on, claims("1", "alice@example.com", unverified)).await.status, 403);
    }
    assert_eq!(try_with(&on, claims("1", "eve@example.com", json!(true))).await.status, 403);
    let linked = try_with(&on, claims("1", "Alice@Example.com", json!(true))).await;
    assert_eq!(linked.body["operator"]["name"], "alice", "{}", linked.text);
    // Of two operators with one address neither is taken.
    let twin = Operator::new("alma", "Bob@example.com", Role::Viewer, String::new(), 1).unwrap();
    assert!(on.api.state.store.operator_add(twin).await.unwrap());
    assert_eq!(try_with(&on, claims("3", "bob@example.com", json!(true))).await.status, 403);
    // Another person with the same address later.
    assert_eq!(try_with(&on, claims("2", "alice@example.com", json!(true))).await.status, 403);
    assert_eq!(try_with(&on, claims("1", "other@example.com", json!(false))).await.body["operator"]["name"], "alice");
}

#[tokio::test]
async fn the_last_admin_keeps_the_role_whatever_the_provider_gives() {
    let double = Double::start().await;
    let console = double.console(|_| {}).await;
    let store = &console.api.state.store;
    let role = async |groups: &[&str]| {
        double.person("1", "grace", groups);
        enter(&double, &console).await
    };
    let kept = async || {
        let events = console.events().await;
        events.into_iter().filter(|event| event["action"] == "operator-role-kept").collect::<Vec<Value>>()
    };
    let first = role(&["root"]).await;
    assert_eq!(first.body["operator"]["role"], "admin");
    let cookie = first.header("set-cookie").split(';').next().unwrap().to_owned();
    for name in ["alice", "bob"] {
        let change = AccessChange::OperatorRole { name: name.to_owned(), role: Role::Viewer, keep_admin: false };
        assert!(store.access_change(change, "{}".to_owned()).await.unwrap());
    }
    assert_eq!((role(&["root"]).await.body["operator"]["role"].clone(), kept().await.len()), (json!("admin"), 0));
    let entered = role(&["soc"]).await;
    assert_eq!(
        (entered.status.as_u16(), &entered.body["operator"]["role"]),
        (200, &json!("admin")),
        "{}",
        entered.text
    );
    assert_eq!(store.operator("grace").await.unwrap().unwrap().role, Role::Admin);
    assert_eq!(
        console.send("GET", "/session/_me", &[("cookie", &cookie)], None).await.status,
        200,
        "nothing has changed"
    );
    let told = kept().await;
    assert_eq!(
        (told.len(), &told[0]["ref"], &told[0]["user"]["name"]),
        (1, &json!("operators/grace"), &json!("grace"))
    );
    let detail = told[0]["detail"].as_str().unwrap();
    assert!(detail.starts_with("via: oidc: admin stays, not analyst: this is the last admin"), "{detail}");
    assert!(!console.events().await.iter().any(|event| event["action"] == "operator-role"), "no change is reported");
    assert_eq!(role(&[]).await.status, 403, "no role is no login");
    // Once there is another admin, the role follows.
    let change = AccessChange::OperatorRole { name: "bob".to_owned(), role: Role::Admin, keep_admin: false };
    assert!(store.access_change(change, "{}".to_owned()).await.unwrap());
    assert_eq!(role(&["soc"]).await.body["operator"]["role"], "analyst");
    assert_eq!(kept().await.len(), 1);
    assert_eq!(console.send("GET", "/session/_me", &[("cookie", &cookie)], None).await.status, 401);
}

#[tokio::test]
async fn the_role_is_that_of_the_groups_at_each_login() {
    let double = Double::start().await;
    let console = double.console(|_| {}).await;
    let role = async |groups: &[&str]| {
        double.person("1", "grace", groups);
        enter(&double, &console).await
    };
    assert_eq!(role(&["none"]).await.body["error"], "not_allowed");
    assert!(console.api.state.store.operator("grace").await.unwrap().is_none(), "no one is added without a role");
    let first = role(&["root", "soc"]).await;
    assert_eq!(first.body["operator"]["role"], "admin");
    let cookie = first.header("set-cookie").split(';').next().unwrap().to_owned();
    assert_eq!(role(&["soc"]).await.body["operator"]["role"], "analyst");
    assert_eq!(
        console.send("GET", "/session/_me", &[("cookie", &cookie)], None).await.status,
        401,
        "the admin's session"
    );
    let events = console.events().await;
    let changed = events.iter().rfind(|event| event["action"] == "operator-role").unwrap();
    assert_eq!(
        (&changed["detail"], &changed["ref"]),
        (&json!("via: oidc: admin to analyst"), &json!("operators/grace"))
    );
    assert_eq!(role(&[]).await.status, 403);
    // Only the userinfo endpoint has the groups: of the same person, or of none.
    double.change(|behaviour| {
        behaviour.claims = json!({ "sub": "1", "preferred_username": "grace", "email": "g@example.com" });
        behaviour.userinfo = json!({ "sub": "1", "groups": ["root"] });
    });
    assert_eq!(enter(&double, &console).await.body["operator"]["role"], "admin");
    // What the ID token says stays.
    double.change(|behaviour| {
        behaviour.claims = json!({ "sub": "1", "preferred_username": "grace", "groups": ["soc"] });
        behaviour.userinfo = json!({ "sub": "1", "email": "g@example.com", "groups": ["root"] });
    });
    assert_eq!(enter(&double, &console).await.body["operator"]["role"], "analyst");
    double.change(|behaviour| {
        behaviour.claims = json!({ "sub": "1", "preferred_username": "grace", "email": "g@example.com" });
    });
    double.change(|behaviour| behaviour.userinfo = json!({ "sub": "2", "groups": ["root"] }));
    assert_eq!(enter(&double, &console).await.body["error"], "token_refused");

    let local = double.console(|settings| {
        (settings.role_claim, settings.roles, settings.default_role) = (None, Vec::new(), Some(Role::Viewer));
    });
    let local = local.await;
    double.person("1", "grace", &["root"]);
    assert_eq!(enter(&double, &local).await.body["operator"]["role"], "viewer");
    let alice = local.login("alice").await;
    let body = json!({ "name": "grace", "role": "admin" });
    assert_eq!(local.post(&alice, "/operators/_role", &body).await.status, 200);
    assert_eq!(enter(&double, &local).await.body["operator"]["role"], "admin", "the console's role stays");
}
