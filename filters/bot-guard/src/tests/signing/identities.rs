//! Which bot a signed request is, and what follows.

use super::*;

#[test]
fn a_signed_request_is_verified_and_skips_what_a_verified_one_does() {
    let worker = Worker::new();
    let (verdict, signals) = worker.meets(&mut Signed::new().exchange());
    let Verdict::Skip(Skip { steps, reason }) = verdict else { panic!("{verdict:?}") };
    assert_eq!((steps, reason.as_str()), (Skipped::Access, "`signerbot`, verified by its signature"));
    let signed = "bot:signed: directory https://agent.example";
    assert_eq!(signals, [signed, "bot:verified:signerbot", "bot:ai:signerbot", "bot:ai"]);
    let mut unsigned = Signed::new().exchange();
    unsigned.request.headers = Headers::from([("user-agent", SIGNER)]);
    assert_eq!(worker.meets(&mut unsigned), (Verdict::Pass, vec!["bot:ai:signerbot".to_owned(), "bot:ai".to_owned()]));
}

#[test]
fn a_bot_is_the_one_whose_directory_has_the_key() {
    let worker = Worker::new();
    let (own, other) = (Signed::new(), Signed::of_other());
    assert_eq!(worker.finds(&other), "-", "another one's signature says nothing of the bot that the user agent names");
    assert_eq!(worker.finds(&Signed { user_agent: "x OtherBot/2", ..other.clone() }), "v otherbot");
    assert_eq!(
        worker.finds(&Signed { user_agent: BROWSER, ..own.clone() }),
        "v signerbot",
        "the directory names the bot"
    );
    assert_eq!(worker.finds(&Signed { user_agent: BROWSER, ..other }), "v otherbot");
    let stolen = own.clone().agent(&format!("sig=\"{OTHER}\""));
    assert_eq!(worker.finds(&Signed { user_agent: "OtherBot", ..stolen }), "the directory has no such key");
    // Directories that no bot of the policy names, and fields that name none.
    for field in [
        "sig=\"https://unknown.example\"",
        "sig=\"https://agent.example/path\"",
        "sig=\"http://agent.example\"",
        "sig=\"https://agent.example\";type=jwks_uri",
        "sig=\"https://agent.example\";type=new",
        "sig=\"https://agent.example\";type=\"directory\"",
        "sig=https",
        "sig=(\"https://agent.example\")",
        "sig",
        "other=\"https://agent.example\"",
        "\"https://agent.example\"",
        "\"https://agent.example",
    ] {
        assert_eq!(worker.finds(&Signed { base: Some("x".to_owned()), ..own.clone().agent(field) }), "-", "{field}");
    }
    for field in ["sig=\"https://Agent.example/\"", "sig=\"https://agent.example:443\";type=directory"] {
        assert_eq!(worker.finds(&own.clone().agent(field)), "v signerbot", "{field}");
    }
    // A field that is not covered could be anyone's.
    let uncovered = Signed { components: "\"@authority\"".to_owned(), ..own.clone() };
    assert_eq!(worker.finds(&uncovered), "-");
    // Without the field the user agent names the bot.
    let mut without = uncovered;
    without.headers.clear();
    assert_eq!(worker.finds(&without), "v signerbot");
    assert_eq!(worker.finds(&Signed { user_agent: BROWSER, ..without.clone() }), "-");
    assert_eq!(worker.finds(&Signed { user_agent: "OtherBot", ..without }), "the directory has no such key");
}

#[test]
fn of_several_signatures_that_of_the_bot_counts() {
    let worker = Worker::new();
    let parameters = Signed::of_other().parameters;
    let outer = format!(r#"outer=("@authority" "signature-agent";key="outer");{parameters}"#);
    let mut exchange = Signed::new().exchange();
    let base = |label: &str, url: &str, parameters: &str| {
        format!(
            "\"@authority\": site.example\n\"signature-agent\";key=\"{label}\": \"{url}\"\n\"@signature-params\": (\"@authority\" \"signature-agent\";key=\"{label}\");{parameters}"
        )
    };
    let sign = |key: SigningKey, base: String| {
        base64::Engine::encode(&base64::engine::general_purpose::STANDARD, key.sign(base.as_bytes()).to_bytes())
    };
    let own = sign(key_of(1), base("sig", AGENT, &Signed::new().parameters));
    let others = sign(key_of(2), base("outer", OTHER, &parameters));
    let inner = format!(r#"sig=("@authority" "signature-agent";key="sig");{}"#, Signed::new().parameters);
    for (user_agent, found) in [(SIGNER, "v signerbot"), ("OtherBot", "v otherbot"), (BROWSER, "v otherbot")] {
        exchange.request.headers = Headers::new(&[
            (":scheme", "https".to_owned()),
            ("user-agent", user_agent.to_owned()),
            ("signature-agent", format!("outer=\"{OTHER}\", sig=\"{AGENT}\"")),
            ("signature-input", "first=(\"@authority\");created=1;tag=\"other\"".to_owned()),
            ("signature-input", format!("{outer}, {inner}")),
            ("signature", format!("outer=:{others}:")),
            ("signature", format!("sig=:{own}:")),
        ]);
        exchange.score = exchange::Score::default();
        assert_eq!(worker.finds_in(&mut exchange), found, "{user_agent}");
    }
}

#[test]
fn a_policy_without_the_switch_looks_at_no_signature() {
    for step in [BotGuardStep { signatures: false, ..step() }, BotGuardStep { verify: false, ..step() }] {
        let worker = Worker::with(step, bots());
        assert!(!worker.tables.names().contains(&KEYS.to_owned()), "no table is asked for without a need");
        assert_eq!(worker.finds(&Signed::new()), "-");
        assert_eq!(worker.finds(&Signed { user_agent: BROWSER, ..Signed::new() }), "-");
    }
    let no_directory = Worker::with(step(), some_bots());
    assert!(!no_directory.tables.names().contains(&KEYS.to_owned()));
}

#[test]
fn a_denied_bot_is_denied_with_a_signature_and_one_without_bypass_skips_nothing() {
    let mut denied = bots();
    denied[4].reaction = BotReaction::Deny.into();
    let worker = Worker::with(step(), denied);
    worker.publish(&[(AGENT, &[key_of(1)])]);
    for user_agent in [SIGNER, BROWSER] {
        let (verdict, signals) = worker.meets(&mut Signed { user_agent, ..Signed::new() }.exchange());
        assert!(matches!(verdict, Verdict::Refuse(Refusal { status: 451, .. })), "{verdict:?}");
        assert!(signals.contains(&"bot:verified:signerbot".to_owned()), "{signals:?}");
    }
    let worker = Worker::with(BotGuardStep { bypass: false, ..step() }, bots());
    worker.publish(&[(AGENT, &[key_of(1)])]);
    let mut exchange = Signed::new().exchange();
    assert_eq!((worker.meets(&mut exchange).0, exchange.score.total()), (Verdict::Pass, 15.0));
}

#[test]
fn a_bad_signature_is_the_impersonators_unless_another_method_knows_better() {
    // The signer with reverse DNS.
    let mut with_dns = bots();
    with_dns[4].method = METHOD.to_vec();
    let bad = Signed { base: Some("x".to_owned()), ..Signed::new() };
    let expired = Signed::new().times(-300, -100);
    let outcome = |finding: Option<Finding>, bots: &[KnownBot], signed: &Signed| {
        let worker = Worker::with(step(), bots.to_vec());
        worker.publish(&[(AGENT, &[key_of(1)])]);
        if let Some(finding) = finding {
            let mut builder = KeysBuilder::default();
            let verdict = CrawlerVerdict { finding, until: NOW + 1000, renew: NOW + 1000 };
            builder.put(&key(&METHOD, "192.0.2.7".parse().unwrap()), &verdict.to_bytes()).unwrap();
            worker.take(TABLE, builder.build().unwrap());
        }
        let mut exchange = signed.exchange();
        let (verdict, signals) = worker.meets(&mut exchange);
        let tag = signals.into_iter().find(|tag| {
            ["bot:verified:", "bot:impersonator:", "bot:bad-signature:"].iter().any(|start| tag.starts_with(start))
                && !tag.contains(' ')
        });
        let word = match verdict {
            Verdict::Skip(_) => "skip",
            Verdict::Refuse(_) => "refuse",
            Verdict::Pass => "pass",
            other => panic!("{other:?}"),
        };
        (word, exchange.score.total(), tag.unwrap_or_default())
    };
    let table = [
        (None, ("refuse", 60.0, "bot:bad-signature:signerbot"), ("pass", 15.0, "")),
        (Some(Finding::Verified), ("skip", 0.0, "bot:verified:signerbot"), ("skip", 0.0, "bot:verified:signerbot")),
        (Some(Finding::Unverifiable), ("refuse", 60.0, "bot:bad-signature:signerbot"), ("pass", 15.0, "")),
        (
            Some(Finding::Impersonator),
            ("refuse", 60.0, "bot:impersonator:signerbot"),
            ("refuse", 60.0, "bot:impersonator:signerbot"),
        ),
    ];
    for (finding, of_bad, of_expired) in table {
        let bots = if finding.is_some() { &with_dns } else { &bots() };
        let owned = |(word, score, tag): (&'static str, f64, &str)| (word, score, tag.to_owned());
        assert_eq!(outcome(finding, bots, &bad), owned(of_bad), "{finding:?}");
        assert_eq!(outcome(finding, bots, &expired), owned(of_expired), "{finding:?}");
        assert_eq!(outcome(finding, bots, &Signed::new()).0, "skip", "{finding:?}: a right one");
    }
    // No verdict yet: reverse DNS may still verify it.
    assert_eq!(outcome(None, &with_dns, &bad), ("pass", 15.0, String::new()));
    // What the policy says of impersonators holds.
    for (action, weight) in [(BotReaction::Monitor, 60.0), (BotReaction::Allow, 0.0)] {
        let worker = Worker::with(BotGuardStep { impersonator: action.into(), ..step() }, bots());
        worker.publish(&[(AGENT, &[key_of(1)])]);
        let mut exchange = bad.exchange();
        assert_eq!((worker.meets(&mut exchange).0, exchange.score.total()), (Verdict::Pass, weight), "{action:?}");
    }
    // A browser with a bad signature names no bot.
    let (verdict, signals) = Worker::new().meets(&mut Signed { user_agent: BROWSER, ..bad }.exchange());
    assert_eq!(
        (verdict, signals),
        (Verdict::Pass, vec!["bot:bad-signature: not signed by `directory https://agent.example`".to_owned()])
    );
}
