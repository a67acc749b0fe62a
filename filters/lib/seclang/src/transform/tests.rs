//! Inputs and outputs of every transformation.

use super::*;

/// Rows of transformation, input, output.
const CASES: &[(Transform, &[u8], &[u8])] = &[
    (Transform::None, b"aB ", b"aB "),
    (Transform::Base64Decode, b"dGVzdA==", b"test"),
    (Transform::Base64Decode, b"dGVz\r\ndA==", b"test"),
    (Transform::Base64Decode, b"dGVzdA", b"dGVzdA"),
    (Transform::Base64Decode, b"dGV!zdA==", b"dGV!zdA=="),
    (Transform::Base64Decode, b"dGVz=dA=", b"dGVz=dA="),
    (Transform::Base64DecodeExt, b"dGVzdA", b"test"),
    (Transform::Base64DecodeExt, b"dG.V!z\0dA==", b"test"),
    (Transform::Base64DecodeExt, b"P.HNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==", b"<script>alert(1)</script>"),
    (Transform::Base64DecodeExt, b"a=b", b""),
    (Transform::Base64DecodeExt, b"!!", b""),
    (Transform::Base64Encode, b"test", b"dGVzdA=="),
    (Transform::Base64Encode, b"\xff\xfe\xfd", b"//79"),
    (Transform::CmdLine, b"C^OMMAND /C dir", b"command/c dir"),
    (Transform::CmdLine, b"\"command\" 'x' \\y", b"command x y"),
    (Transform::CmdLine, b"a,b;c\t\r\n d", b"a b c d"),
    (Transform::CmdLine, b"cat  /etc (x", b"cat/etc(x"),
    (Transform::CmdLine, b"plain", b"plain"),
    (Transform::CompressWhitespace, b"a \t\r\n\x0b\x0cb", b"a b"),
    (Transform::CompressWhitespace, b"a\tb", b"a b"),
    (Transform::CompressWhitespace, b"a\xa0\xa0b", b"a\xa0\xa0b"),
    (Transform::CssDecode, b"ja\\vascript", b"javascript"),
    (Transform::CssDecode, b"\\6a\\000061 v", b"jav"),
    (Transform::CssDecode, b"\\1\\123x", b"\x01#x"),
    (Transform::CssDecode, b"\\ff1c\\0ff41\\00ff41x\\12ff41", b"<aaxA"),
    (Transform::CssDecode, b"a\\\nb\\", b"ab"),
    (Transform::EscapeSeqDecode, b"\\a\\b\\f\\n\\r\\t\\v\\?\\'\\\"\\\\", b"\x07\x08\x0c\n\r\t\x0b?'\"\\"),
    (Transform::EscapeSeqDecode, b"\\x41\\X42\\101\\8\\z\\x4", b"ABA8zx4"),
    (Transform::EscapeSeqDecode, b"end\\", b"end\\"),
    (Transform::HexDecode, b"74657374", b"test"),
    (Transform::HexDecode, b"4A4", b"J"),
    (Transform::HexEncode, b"te\x00\xff", b"746500ff"),
    (Transform::HtmlEntityDecode, b"&lt;&GT&quot;&amp;&nbsp;", b"<>\"&\xa0"),
    (Transform::HtmlEntityDecode, b"&#x41;&#X42&#67;&#x", b"ABC&#x"),
    (Transform::HtmlEntityDecode, b"&ltscript&#62", b"<script>"),
    (Transform::HtmlEntityDecode, b"&#;&unknown;&", b"&#;&unknown;&"),
    (Transform::HtmlEntityDecode, b"&#99999999999999999999;", b"\xff"),
    (Transform::JsDecode, b"\\u0041\\uff1c\\x42\\103\\n\\'", b"A<BC\n'"),
    (Transform::JsDecode, b"\\777\\8\\u12\\xzz\\", b"?78u12xzz\\"),
    (Transform::Length, b"", b"0"),
    (Transform::Length, b"a\0b", b"3"),
    (Transform::Lowercase, b"aB\xc9", b"ab\xc9"),
    (Transform::Uppercase, b"aB\xe9", b"AB\xe9"),
    (Transform::Md5, b"", b"\xd4\x1d\x8c\xd9\x8f\x00\xb2\x04\xe9\x80\x09\x98\xec\xf8\x42\x7e"),
    (Transform::Sha1, b"", b"\xda\x39\xa3\xee\x5e\x6b\x4b\x0d\x32\x55\xbf\xef\x95\x60\x18\x90\xaf\xd8\x07\x09"),
    (Transform::NormalizePath, b"/a//b/./c/../d", b"/a/b/d"),
    (Transform::NormalizePath, b"/../../etc/passwd", b"/etc/passwd"),
    (Transform::NormalizePath, b"../a/../../b/", b"../../b/"),
    (Transform::NormalizePath, b"a/b/..", b"a"),
    (Transform::NormalizePath, b"a/..", b""),
    (Transform::NormalizePath, b"/..", b"/"),
    (Transform::NormalizePath, b"./a/.", b"a"),
    (Transform::NormalizePath, b"...", b"..."),
    (Transform::NormalizePath, b"a\\..\\b", b"a\\..\\b"),
    (Transform::NormalizePathWin, b"\\a\\..\\b/c", b"/b/c"),
    (Transform::NormalizePathWin, b"..\\..\\x", b"../../x"),
    (Transform::NormalizePathWin, b"a\\b\\", b"a/b/"),
    (Transform::ParityEven7bit, b"abc", b"\xe1\xe2c"),
    (Transform::ParityOdd7bit, b"abc", b"ab\xe3"),
    (Transform::ParityZero7bit, b"\xe1bc", b"abc"),
    (Transform::RemoveComments, b"a/* x */b", b"ab"),
    (Transform::RemoveComments, b"a<!-- x -->b--c", b"ab"),
    (Transform::RemoveComments, b"a#b", b"a"),
    (Transform::RemoveComments, b"a/* open", b"a "),
    (Transform::RemoveComments, b"a-b/c<d", b"a-b/c<d"),
    (Transform::RemoveCommentsChar, b"a/*b*/c--d#e<!--f-->g", b"abcdefg"),
    (Transform::RemoveCommentsChar, b"a-b/c*d", b"a-b/c*d"),
    (Transform::RemoveNulls, b"a\0b\0", b"ab"),
    (Transform::RemoveWhitespace, b" a\t\xc2\xa0b\xa0\n", b"ab"),
    (Transform::RemoveWhitespace, b"\xc2\xa1", b"\xc2\xa1"),
    (Transform::ReplaceComments, b"a/* x */b/**/c", b"a b c"),
    (Transform::ReplaceComments, b"a/* open", b"a "),
    (Transform::ReplaceComments, b"a*/b", b"a*/b"),
    (Transform::ReplaceNulls, b"a\0b", b"a b"),
    (Transform::SqlHexDecode, b"select 0x414243, 0X44 0xzz 0x4", b"select ABC, D 0xzz 0x4"),
    (Transform::Trim, b" \ta b\n ", b"a b"),
    (Transform::TrimLeft, b" a ", b"a "),
    (Transform::TrimRight, b" a ", b" a"),
    (Transform::Trim, b"  ", b""),
    (Transform::UrlDecode, b"a+%41%zz%4", b"a A%zz%4"),
    (Transform::UrlDecode, b"%u0041", b"%u0041"),
    (Transform::UrlDecodeUni, b"%u0041%uff1c%u2019%U0042+%43", b"A<'B C"),
    (Transform::UrlDecodeUni, b"%u004", b"%u004"),
    (Transform::UrlDecodeUni, b"%u4e41", b"A"),
    (Transform::UrlEncode, b"a b*/\xff", b"a+b*%2f%ff"),
    (Transform::Utf8ToUnicode, b"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", b"%u00e9%u20ac%u1f600"),
    (Transform::Utf8ToUnicode, b"\xc0\xaf", b"%u002f\xc0"),
    (Transform::Utf8ToUnicode, b"\xe9a\xe2\x82b\xc3", b"a\x82b"),
    (Transform::Utf8ToUnicode, b"\x80a\xf5b\xff", b"\x80a\xf5b\xff"),
    (Transform::Utf8ToUnicode, b"\0a\0\0b\0\xc3\xa9\0", b"ab%u00e9\0"),
];

#[test]
fn transforms_as_the_table_says() {
    for &(transform, input, expected) in CASES {
        let output = transform.apply(input);
        assert_eq!(&*output, expected, "{} of {}", transform.name(), input.escape_ascii());
        let borrowed = matches!(output, Cow::Borrowed(_));
        assert_eq!(borrowed, input == expected, "{} of {}", transform.name(), input.escape_ascii());
    }
}

#[test]
fn every_transformation_is_in_the_table_and_takes_anything() {
    let every_byte: Vec<u8> = (0..=255).collect();
    for &(_, transform) in NAMES {
        assert!(CASES.iter().any(|&(known, ..)| known == transform), "{}", transform.name());
        for input in [&b""[..], b"\\", b"%", b"%u", b"&", b"&#", b"/", b"0x", b"/*", b"=", b"\xf0\x9f", &every_byte] {
            assert!(transform.apply(input).len() <= 6 * input.len() + 40, "{}", transform.name());
        }
    }
}

#[test]
fn names_and_codes_are_read_back() {
    for &(name, transform) in NAMES {
        assert_eq!(Transform::from_name(&name.to_uppercase()), Some(transform));
        assert_eq!(Transform::from_name(transform.name()), Some(transform));
        assert_eq!(Transform::from_code(transform.code()), Some(transform));
    }
    assert_eq!(Transform::from_name("normalisePathWin"), Some(Transform::NormalizePathWin));
    assert_eq!(Transform::NormalizePathWin.name(), "normalizePathWin");
    assert_eq!(Transform::from_name("unknown"), None);
    assert_eq!(Transform::from_code(255), None);
}

#[test]
fn inputs_without_triggers_stay_as_they_are() {
    let all: Vec<Transform> = (0..=255).filter_map(Transform::from_code).collect();
    let mut seed = 7u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize
    };
    let mut tested = 0;
    for _ in 0..20_000 {
        let alphabet: &[u8] = match next() % 3 {
            0 => b"abcxyz019 -_.,:/\\*<>!#\"'^;&%+\t\n\0",
            1 => b"abcDEF0123456789ghi",
            _ => b"\x00\x01\x0b\x7f\x80\xa0\xc2\xc3\xff az",
        };
        let input: Vec<u8> = (0..next() % 12).map(|_| alphabet[next() % alphabet.len()]).collect();
        for transform in &all {
            let Some(triggers) = transform.triggers() else { continue };
            if !crate::operator::ByteSet::of_bytes(&input).intersects(&triggers) {
                tested += 1;
                assert_eq!(transform.apply(&input), input, "{transform:?}");
            }
        }
    }
    assert!(tested > 100_000);
    assert!(Transform::Sha1.triggers().is_none() && Transform::Length.triggers().is_none());
}

/// Byte by byte what those transformations do that look at many bytes at once.
mod reference {
    use super::super::base64;

    pub(super) fn compress_whitespace(input: &[u8]) -> Vec<u8> {
        let mut output: Vec<u8> = Vec::new();
        let mut inside = false;
        for &byte in input {
            let space = matches!(byte, b' ' | b'\t'..=b'\r');
            if !space {
                output.push(byte);
            } else if !inside {
                output.push(b' ');
            }
            inside = space;
        }
        output
    }

    pub(super) fn remove_whitespace(input: &[u8]) -> Vec<u8> {
        let mut output = Vec::new();
        let mut rest = input;
        while let [byte, after @ ..] = rest {
            rest = after;
            match (byte, after) {
                (0xc2, [0xa0, after @ ..]) => rest = after,
                (b' ' | b'\t'..=b'\r' | 0xa0, _) => {}
                _ => output.push(*byte),
            }
        }
        output
    }

    pub(super) fn cmd_line(input: &[u8]) -> Vec<u8> {
        let mut output = Vec::new();
        let mut space = false;
        for &byte in input {
            match byte {
                b'"' | b'\'' | b'\\' | b'^' => continue,
                b' ' | b',' | b';' | b'\t' | b'\r' | b'\n' if space => continue,
                b' ' | b',' | b';' | b'\t' | b'\r' | b'\n' => {
                    output.push(b' ');
                    space = true;
                    continue;
                }
                b'/' | b'(' if space => drop(output.pop()),
                _ => {}
            }
            space = false;
            output.push(byte.to_ascii_lowercase());
        }
        output
    }

    pub(super) fn url_decode(input: &[u8]) -> Vec<u8> {
        let mut output = Vec::new();
        let mut rest = input;
        while let [byte, after @ ..] = rest {
            let digit = |at: usize| after.get(at).and_then(|byte| char::from(*byte).to_digit(16));
            (output, rest) = match (byte, digit(0), digit(1)) {
                (b'+', ..) => ([output, b" ".to_vec()].concat(), after),
                (b'%', Some(high), Some(low)) => ([output, vec![(high * 16 + low) as u8]].concat(), &after[2..]),
                _ => ([output, vec![*byte]].concat(), after),
            };
        }
        output
    }

    pub(super) fn remove_comments_char(input: &[u8]) -> Vec<u8> {
        let mut output = Vec::new();
        let mut rest = input;
        'next: while let [byte, after @ ..] = rest {
            for marker in [&b"/*"[..], b"*/", b"<!--", b"-->", b"--", b"#"] {
                if let Some(after) = rest.strip_prefix(marker) {
                    rest = after;
                    continue 'next;
                }
            }
            output.push(*byte);
            rest = after;
        }
        output
    }

    pub(super) fn normalize_path(input: &[u8]) -> Vec<u8> {
        let (absolute, trailing) = (input.starts_with(b"/"), input.ends_with(b"/"));
        let mut kept: Vec<&[u8]> = Vec::new();
        for segment in input.split(|byte| *byte == b'/').filter(|segment| !matches!(*segment, b"" | b".")) {
            match (segment, kept.last()) {
                (b"..", Some(last)) if *last != b".." => drop(kept.pop()),
                (b"..", _) if absolute => {}
                _ => kept.push(segment),
            }
        }
        let mut output = if absolute { b"/".to_vec() } else { Vec::new() };
        output.extend(kept.join(&b'/'));
        if trailing && !kept.is_empty() {
            output.push(b'/');
        }
        output
    }

    /// As the whole of RFC 4648 asks, for input without line breaks, spaces and NULs.
    pub(super) fn base64_decode(input: &[u8]) -> Vec<u8> {
        let digits = input.iter().rposition(|byte| *byte != b'=').map_or(0, |at| at + 1);
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
        if !input.len().is_multiple_of(4) || input.len() - digits > 2 || !input[..digits].iter().all(plain) {
            return input.to_vec();
        }
        base64::decode_forgiving(&input[..digits]).unwrap()
    }
}

#[test]
fn transforms_chunks_as_it_does_bytes() {
    type Reference = fn(&[u8]) -> Vec<u8>;
    let cases: [(Transform, Reference, &[u8]); 9] = [
        (Transform::CompressWhitespace, reference::compress_whitespace, b" \t\r\n\x0b\x0c\x08\x0e\xa0A"),
        (Transform::RemoveWhitespace, reference::remove_whitespace, b" \t\r\n\x0b\x0c\x08\x0e\xa0\xc2\xa1"),
        (Transform::CmdLine, reference::cmd_line, b" ,;\t\r\n\"'\\^/(AZ@[\x0b"),
        (Transform::UrlDecode, reference::url_decode, b"%+%%2fF0gG%"),
        (Transform::RemoveCommentsChar, reference::remove_comments_char, b"/*<!--#>-"),
        (Transform::NormalizePath, reference::normalize_path, b"/../..//.a"),
        (Transform::Base64Decode, reference::base64_decode, b"==+/AZaz09-_"),
        (Transform::Lowercase, |input| input.to_ascii_lowercase(), b"AZaz@[\xc1"),
        (Transform::Uppercase, |input| input.to_ascii_uppercase(), b"AZaz`{\xe1"),
    ];
    let mut seed = 3u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize
    };
    for (transform, reference, special) in cases {
        let mut changed = 0;
        for round in 0..20_000 {
            // From nothing but what matters to nothing but what does not.
            let plain = round % 40;
            let length = next() % if round % 3 == 0 { 12 } else { 120 };
            let byte = |_| if next() % 40 < plain { b"wxyz"[next() % 4] } else { special[next() % special.len()] };
            let input: Vec<u8> = (0..length).map(byte).collect();
            let (output, expected) = (transform.apply(&input), reference(&input));
            assert_eq!(*output, *expected, "{} of {}", transform.name(), input.escape_ascii());
            assert_eq!(matches!(output, Cow::Borrowed(_)), input == expected, "{}", transform.name());
            changed += usize::from(input != expected);
        }
        assert!(changed > 500, "{}: {changed}", transform.name());
    }
}
