//! The vector of RFC 9421 for Ed25519, and which spellings of keys and signatures are refused.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use exchange::Headers;

use super::fields::{Dictionary, Member};
use super::*;

/// The key of appendix B.1.4.
fn test_key() -> [u8; 32] {
    URL_SAFE_NO_PAD.decode("JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs").unwrap().try_into().unwrap()
}

/// The request of appendix B.2.
fn request() -> Request {
    let digest = "sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:";
    Request {
        method: b"POST".to_vec(),
        path: b"/foo?param=Value&Pet=dog".to_vec(),
        authority: b"example.com".to_vec(),
        headers: Headers::from([
            (":scheme", "https"),
            ("date", "Tue, 20 Apr 2021 02:07:55 GMT"),
            ("content-type", "application/json"),
            ("content-digest", digest),
            ("content-length", "18"),
        ]),
        ..Request::default()
    }
}

#[test]
fn the_vector_of_rfc_9421_b_2_6_is_right() {
    let input = r#"sig-b26=("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519""#;
    let expected = "\"date\": Tue, 20 Apr 2021 02:07:55 GMT\n\"@method\": POST\n\"@path\": /foo\n\"@authority\": example.com\n\
                    \"content-type\": application/json\n\"content-length\": 18\n\
                    \"@signature-params\": (\"date\" \"@method\" \"@path\" \"@authority\" \"content-type\" \"content-length\")\
                    ;created=1618884473;keyid=\"test-key-ed25519\"";
    let inputs = Dictionary::read(input.as_bytes()).unwrap();
    let Some(Member::List(list)) = inputs.get(b"sig-b26") else { panic!() };
    let base = base::signature_base(&request(), list).unwrap();
    assert_eq!(std::str::from_utf8(&base).unwrap(), expected);
    let signature = "wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==";
    let signature: [u8; 64] = STANDARD.decode(signature).unwrap().try_into().unwrap();
    assert!(is_signature(&test_key(), &base, &signature));
    for place in 0..64 {
        let mut damaged = signature;
        damaged[place] ^= 1;
        assert!(!is_signature(&test_key(), &base, &damaged), "{place}");
    }
    assert!(!is_signature(&test_key(), &base[1..], &signature));
}

#[test]
fn keys_of_small_order_and_second_spellings_of_signatures_are_refused() {
    // With the neutral element as key and as R, and 0 as S, the equation holds for every message.
    let neutral: [u8; 32] = std::array::from_fn(|place| u8::from(place == 0));
    let signature: [u8; 64] = std::array::from_fn(|place| neutral.get(place).copied().unwrap_or(0));
    assert!(!is_signature(&neutral, b"anything", &signature));
    // S + L is a second spelling of S (RFC 8032, section 5.1.7).
    let order: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let key = ed25519_dalek::SigningKey::from_bytes(&[7; 32]);
    let right = ed25519_dalek::Signer::sign(&key, b"message").to_bytes();
    assert!(is_signature(&key.verifying_key().to_bytes(), b"message", &right));
    let (mut second, mut carry) = (right, 0_u16);
    for (digit, added) in second[32..].iter_mut().zip(order) {
        carry += u16::from(*digit) + u16::from(added);
        *digit = carry as u8;
        carry >>= 8;
    }
    assert!(!is_signature(&key.verifying_key().to_bytes(), b"message", &second));
}

#[test]
fn a_key_in_the_table_is_read_as_it_was_written() {
    let key = SignerKey { public: test_key(), from: 1, until: u64::MAX };
    let bytes = key.to_bytes();
    assert_eq!(SignerKey::read(&bytes), Some(key));
    assert_eq!(SignerKey::read(&bytes[1..]), None);
    assert_eq!(SignerKey::read(&[bytes.as_slice(), &[0]].concat()), None, "of a later release");
}
