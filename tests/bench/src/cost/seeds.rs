//! Where a search begins: requests that engines are known to find dear.

use super::recipe::{Piece, Place, Recipe};

fn recipe(what: &str, place: Place, pieces: &[(&str, usize, bool)]) -> Recipe {
    let pieces = pieces.iter().map(|(text, times, grows)| Piece { text: (*text).into(), times: *times, grows: *grows });
    Recipe {
        what: what.into(),
        place,
        content_type: None,
        content_encoding: None,
        gzip: None,
        pieces: pieces.collect(),
    }
}

/// A gzip member of nothing.
const EMPTY_MEMBER: &str = "\x1f\u{8b}\x08\0\0\0\0\0\0\u{ff}\x03\0\0\0\0\0\0\0\0\0";

/// The first recipes.
#[must_use]
pub fn seeds() -> Vec<Recipe> {
    use Place as P;
    let long = "k".repeat(1000);
    let mut all = vec![
        recipe(
            "values below one long key",
            P::Json,
            &[("{\"", 1, false), (&long, 8, false), ("\":[", 1, false), ("\"v{n}\",", 1, true), ("1]}", 1, false)],
        ),
        recipe(
            "values below nested long keys",
            P::Json,
            &[
                ("{\"", 1, false),
                (&long[..200], 1, false),
                ("\":", 1, false),
                (&format!("{{\"{}\":", &long[..100]), 30, false),
                ("[", 1, false),
                ("\"v{n}\",", 1, true),
                ("1]", 1, false),
                ("}", 31, false),
            ],
        ),
        recipe("deep objects", P::Json, &[("{\"k\":", 1, true), ("1", 1, false), ("}", 1, true)]),
        recipe("deep arrays", P::Json, &[("[", 1, true), ("1", 1, false), ("]", 1, true)]),
        recipe("members", P::Json, &[("{", 1, false), ("\"k{n}\":\"v{n}\",", 1, true), ("\"z\":1}", 1, false)]),
        recipe("one string", P::Json, &[("{\"k\":\"", 1, false), ("a b ", 1, true), ("\"}", 1, false)]),
        recipe("escapes", P::Json, &[("{\"k\":\"", 1, false), ("\\u0041", 1, true), ("\"}", 1, false)]),
        recipe("long names", P::Form, &[(&format!("{long}{{n}}=v&"), 1, true)]),
        recipe("short names", P::Form, &[("a{n}=b&", 1, true)]),
        recipe("names alone", P::Form, &[("a{n}&", 1, true)]),
        recipe("one name many times", P::Form, &[("a=b{n}&", 1, true)]),
        recipe("one long name many times", P::Form, &[(&format!("{}=v{{n}}&", &long[..255]), 1, true)]),
        recipe("escaped bytes", P::Form, &[("a=", 1, false), ("%27%20", 1, true)]),
        recipe("attributes", P::Xml, &[("<a>", 1, false), ("<b c{n}=\"d\"/>", 1, true), ("</a>", 1, false)]),
        recipe("attributes of one element", P::Xml, &[("<a ", 1, false), ("c{n}=\"d\" ", 1, true), ("/>", 1, false)]),
        recipe("deep elements", P::Xml, &[("<a>", 1, true), ("x", 1, false), ("</a>", 1, true)]),
        recipe("namespaces", P::Xml, &[("<a ", 1, false), ("xmlns:n{n}=\"d\" ", 1, true), ("/>", 1, false)]),
        recipe("references", P::Xml, &[("<a>", 1, false), ("&#x41;", 1, true), ("</a>", 1, false)]),
        recipe(
            "parts",
            P::Multipart,
            &[("--b\r\ncontent-disposition: form-data; name=a{n}\r\n\r\nv\r\n", 1, true), ("--b--\r\n", 1, false)],
        ),
        recipe(
            "hyphens in a part",
            P::Multipart,
            &[
                ("--b\r\ncontent-disposition: form-data; name=a\r\n\r\n", 1, false),
                ("\r\n--", 1, true),
                ("\r\n--b--\r\n", 1, false),
            ],
        ),
        recipe(
            "headers of a part",
            P::Multipart,
            &[
                ("--b\r\ncontent-disposition: form-data; name=a\r\n", 1, false),
                ("x-{n}: y\r\n", 1, true),
                ("\r\nv\r\n--b--\r\n", 1, false),
            ],
        ),
        recipe("cookies", P::Cookie, &[("a{n}=b; ", 1, true)]),
        recipe("one cookie", P::Cookie, &[("a=", 1, false), ("<b>", 1, true)]),
        recipe("headers", P::Headers, &[("x-{n}: v\n", 1, true)]),
        recipe("one header", P::Header, &[("a b;", 1, true)]),
        recipe("arguments", P::Query, &[("a{n}=b&", 1, true)]),
        recipe("segments", P::Path, &[("a/../", 1, true)]),
        recipe("lines", P::Text, &[("a line of text {n}\n", 1, true)]),
    ];
    let gzip = Some("gzip".to_owned());
    all.push(Recipe { content_encoding: gzip, ..recipe("gzip members", P::Form, &[(EMPTY_MEMBER, 1, true)]) });
    for level in [0, 9] {
        let compressed =
            all.iter().filter(|recipe| recipe.place.limit() == usize::MAX && recipe.content_encoding.is_none());
        let compressed = compressed.filter(|recipe| recipe.gzip.is_none());
        let compressed = compressed.map(|recipe| {
            let what = format!("{}, gzip {level}", recipe.what);
            Recipe { what, gzip: Some(level), ..recipe.clone() }
        });
        all.extend(compressed.collect::<Vec<_>>());
    }
    // What rules look for, without the end that they need.
    for text in UNITS {
        all.push(recipe(&format!("{text:?} over and over"), P::Form, &[("a=", 1, false), (text, 1, true)]));
        all.push(recipe(&format!("arguments {text:?}"), P::Form, &[(&format!("a{{n}}={text}&"), 1, true)]));
        all.push(recipe(
            &format!("values {text:?}"),
            P::Json,
            &[("[", 1, false), (&format!("\"{}\",", text.replace(['"', '\\'], "x")), 1, true), ("1]", 1, false)],
        ));
    }
    all
}

/// Texts that attack rules begin with or turn on.
pub(super) const UNITS: [&str; 72] = [
    "a",
    " ",
    "'",
    "\\\"",
    "(",
    ")",
    "((",
    "/*",
    "*/",
    "/**/",
    "--",
    "-- ",
    "#",
    ";",
    "|",
    "&&",
    "$(",
    "${",
    "`",
    "<",
    ">",
    "<a ",
    "<a href=",
    "<script",
    "onload=",
    " on",
    "javascript:",
    "data:",
    "&#x",
    "&#",
    "%25",
    "\\u",
    "\\x",
    "%u00",
    "../",
    "..\\",
    "/etc/passwd",
    "http://",
    "file://",
    "select ",
    "union select ",
    "1 or 1=1 ",
    "' or '",
    "sleep(",
    "exec(",
    "eval(",
    "base64,",
    "print(",
    "<?php ",
    "$_GET[",
    "{{",
    "}}",
    "{%",
    "@",
    "=",
    "!",
    "~",
    "+",
    ",",
    "0x",
    "1e",
    "1.",
    "\n",
    "\t",
    "\r\n",
    "=(",
    ")=",
    "cmd ",
    "/bin/sh ",
    "a=b ",
    "x:",
    "\u{e9}",
];
