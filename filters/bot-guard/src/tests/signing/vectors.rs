//! The test vectors that the reference implementation of Web Bot Auth publishes, by the key of RFC 9421 B.1.4.

use super::*;

/// When the vectors were signed, in seconds.
const SIGNED_AT: u64 = 1_735_689_600;
const KEYID: &str = "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";
const SIGNATURE_AGENT: &str = "https://signature-agent.test";

fn finds(agent: Option<&str>, input: &str, signature: &str) -> String {
    let directory = id(SIGNATURE_AGENT);
    let vector = KnownBot { directory, ..bot("vectorbot", "ai", &["vectorbot"], BotReaction::Allow, 0.0) };
    // They live for a hundred years.
    let worker = Worker::with(BotGuardStep { signature_max_age: u32::MAX, ..step() }, vec![vector]);
    let worker = Worker { host: FakeHost::at(SIGNED_AT * 1000), ..worker };
    let public = base64::Engine::decode(
        &base64::engine::general_purpose::URL_SAFE_NO_PAD,
        "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs",
    );
    worker.publish_rows(&[SIGNATURE_AGENT], &[(SIGNATURE_AGENT, public.unwrap().try_into().unwrap(), 0, u64::MAX)]);
    let mut headers =
        vec![(":scheme", "https"), ("user-agent", "VectorBot"), ("signature-input", input), ("signature", signature)];
    headers.extend(agent.map(|agent| ("signature-agent", agent)));
    let mut exchange = Exchange::default();
    exchange.request.headers = Headers::new(&headers);
    exchange.request.method = b"GET".to_vec();
    exchange.request.path = b"/path/to/resource".to_vec();
    exchange.request.authority = b"example.com".to_vec();
    exchange.caller.ip = "192.0.2.7".into();
    worker.finds_in(&mut exchange)
}

#[test]
fn the_published_vectors_are_right() {
    let nonce = "zIW8+cdmA3vdYagbxojpONwa/l0EKJ/O3/wD486VvsQjO/RxPaSt6ZxvQaMcQzNnqKN/mQ6hpGiFro2L2qkz5A==";
    let input = format!(
        r#"sig1=("@authority");created=1735689600;keyid="{KEYID}";alg="ed25519";expires=4889289600;nonce="{nonce}";tag="web-bot-auth""#
    );
    let signature = "sig1=:QKN4fTdIYfh82fvoZCQiQA1weuozfCS/Led2zTMbewMMqH8PI2Wsy/5c4ao6B6D09nraNQdBNOADg8aM1MqfCg==:";
    assert_eq!(finds(None, &input, signature), "v vectorbot");
    assert_eq!(finds(None, &input.replace(nonce, "another"), signature), "bad");

    let nonce = "n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==";
    let input = format!(
        r#"sig2=("@authority" "signature-agent";key="agent2");created=1735689600;keyid="{KEYID}";alg="ed25519";expires=4889289600;nonce="{nonce}";tag="web-bot-auth""#
    );
    let signature = "sig2=:RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdhEwYCCg==:";
    let agent = format!("agent2=\"{SIGNATURE_AGENT}\"");
    assert_eq!(finds(Some(&agent), &input, signature), "v vectorbot");
    assert_eq!(finds(Some(&format!("{agent}, sig2=\"https://other.test\"")), &input, signature), "v vectorbot");
    assert_eq!(finds(Some(&format!("{agent};x")), &input, signature), "bad", "another member");

    // The vectors of RSA are of another algorithm, and are left to the other methods.
    let rsa = r#"sig1=("@authority");created=1735689600;keyid="oD0HwocPBSfpNy5W3bpJeyFGY_IQ_YpqxSjQ3Yd-CLA";alg="rsa-pss-sha512";expires=4889289600;nonce="x";tag="web-bot-auth""#;
    assert_eq!(finds(None, rsa, "sig1=:AAAA:"), "it is not one of Ed25519");
}

#[test]
fn the_form_of_earlier_drafts_is_read_as_well() {
    // What deployed agents send: one string, covered as a whole.
    let worker = Worker::new();
    let mut signed =
        Signed { components: r#""@authority" "@method" "@path" "signature-agent""#.to_owned(), ..Signed::new() };
    signed = signed.agent(&format!("\"{AGENT}\""));
    assert_eq!(worker.finds(&signed), "v signerbot");
    assert_eq!(worker.finds(&Signed { user_agent: BROWSER, ..signed.clone() }), "v signerbot");
    // A dictionary that is covered as a whole has the member of the label.
    assert_eq!(worker.finds(&signed.agent(&format!("sig=\"{AGENT}\""))), "v signerbot");
}
