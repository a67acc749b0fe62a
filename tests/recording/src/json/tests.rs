use super::*;

#[test]
fn values_are_cut_at_their_ends() {
    let text = b"\xef\xbb\xbf {\"a\": \"}\\\"\", \"b\": [1, {}]}\n12 \"x\"true".as_slice();
    // A buffer of one byte: every state is met between two chunks.
    let mut scanner = Scanner::new(io::BufReader::with_capacity(1, text));
    let mut values = Vec::new();
    let mut value = Vec::new();
    while scanner.peek().unwrap().is_some() {
        assert_eq!(scanner.value(&mut value, 100).unwrap(), Cut::Whole);
        values.push(String::from_utf8(value.clone()).unwrap());
    }
    assert_eq!(values, [r#"{"a": "}\"", "b": [1, {}]}"#, "12", r#""x""#, "true"]);
    assert_eq!(scanner.line(), 2);
}

#[test]
fn a_long_value_is_left_out_and_its_length_told() {
    let mut scanner = Scanner::new(b"[1,2,3] 4".as_slice());
    let mut value = Vec::new();
    assert_eq!(scanner.value(&mut value, 6).unwrap(), Cut::TooLong(7));
    assert!(value.is_empty());
    assert_eq!(scanner.value(&mut value, 6).unwrap(), Cut::Whole);
    assert_eq!(value, b"4");
}

#[test]
fn a_key_is_found_behind_others() {
    let mut scanner = Scanner::new(b"{\"x\": {\"log\": 1}, \"l\\u006fg\": [7]}".as_slice());
    assert!(scanner.enter("log").unwrap());
    assert!(scanner.accept(b'[').unwrap());
    assert!(!Scanner::new(b"{\"x\": 1}".as_slice()).enter("log").unwrap());
    assert!(matches!(Scanner::new(b"{\"x\": ".as_slice()).enter("log"), Err(Stop::Ends(6))));
}

#[test]
fn faults_tell_the_place_and_no_value() {
    #[derive(Debug, serde::Deserialize)]
    struct One {
        #[expect(dead_code, reason = "only its type matters")]
        number: u8,
    }
    let fault = parse::<One>(br#"{"number": "hunter2"}"#).unwrap_err();
    assert_eq!((fault.path.as_str(), fault.why.as_str()), ("number", "invalid type: string, expected u8"));
    let fault = parse::<One>(br#"{"number": 4711}"#).unwrap_err();
    assert_eq!(fault.why, "invalid value: integer, expected u8");
    assert!(parse::<One>(br#"{"number": 1} x"#).unwrap_err().why.contains("behind"));
}
