//! The fuzz target of the scanners without a fuzzer: values and anchors, cut, joined and changed at random places. Seeded.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

#[allow(unreachable_pub, reason = "it is shared with the fuzz target")]
#[path = "../../../../fuzz/src/bodies/response_scan.rs"]
mod response_scan_body;

const PIECES: [&str; 31] = [
    "4111 1111 1111 1111",
    "4111111111111111",
    "123-45-6789",
    "DE89 3704 0044 0532 0130 00",
    "1 85 05 2A 000 846 12",
    "AKIAIOSFODNN7EXAMPLE",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefghijklmnopqrst",
    "-----BEGIN PRIVATE KEY-----",
    "-----END PRIVATE KEY-----",
    "a@shop.example",
    "\\n",
    "\\",
    "\"",
    "{\"a\":",
    "[",
    ",",
    "}",
    " ",
    "ORA-00933",
    "<title>500.1 - x",
    "SQLSTATE[42",
    "\u{e4}",
    "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj",
    "1",
    "\\u0022",
    "\\u00a0",
    "%20",
    "&nbsp;",
    "aws_secret_access_key=",
    "wJalrXUtnFEMI\\/K7MDENG\\u002FbPxRfiCYEXAMPLEKEY",
    "b@shop.example",
];

#[test]
fn texts_made_of_pieces_are_scanned() {
    let mut state = 1u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    for _ in 0..3000 {
        let mut text = Vec::new();
        for _ in 0..random(20) {
            let piece = PIECES[random(PIECES.len())].as_bytes();
            let cut = if random(4) == 0 { random(piece.len()) } else { piece.len() };
            text.extend_from_slice(&piece[..cut]);
        }
        if !text.is_empty() && random(3) == 0 {
            let at = random(text.len());
            text[at] = random(256) as u8;
        }
        response_scan_body::run(&text);
        // The same as a string of JSON, which must stay one.
        let quoted = serde_json::to_vec(&String::from_utf8_lossy(&text)).unwrap();
        response_scan_body::run(&quoted);
    }
    for number in [
        "4111111111111111",
        "-4111111111111111",
        "4111111111111111.0",
        "[4111111111111111]",
        "{\"a\" : 4111111111111111 }",
    ] {
        response_scan_body::run(number.as_bytes());
    }
}
