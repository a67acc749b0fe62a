//! The JSON-Schema-Test-Suite, and a sample of our own that is always run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Contract;
use crate::compile::compile_schema;
use crate::json::Document;
use crate::schema::{Checked, Side, check};

/// Why cases of the suite are left out: the file, words of the description, the reason.
const IGNORED: &[(&str, &str, &str)] = &[
    ("draft2020-12/refRemote.json", "", OUTSIDE),
    ("draft4/refRemote.json", "", OUTSIDE),
    ("draft2020-12/defs.json", "metaschema", OUTSIDE),
    ("draft4/definitions.json", "metaschema", OUTSIDE),
    ("draft2020-12/ref.json", "remote ref, containing refs itself", OUTSIDE),
    ("draft4/ref.json", "remote ref, containing refs itself", OUTSIDE),
    ("draft2020-12/dynamicRef.json", "strict-tree schema", OUTSIDE),
    ("draft2020-12/dynamicRef.json", "tests for implementation dynamic anchor and reference link", OUTSIDE),
    ("draft2020-12/dynamicRef.json", "are independent of order", OUTSIDE),
    ("draft2020-12/dynamicRef.json", "$ref to $dynamicRef finds detached", OUTSIDE),
    ("draft2020-12/format.json", "annotation by default", "formats are asserted"),
    ("draft2020-12/vocabulary.json", "no validation vocabulary", "metaschemas are not read"),
    ("draft4/ref.json", "sibling id", NO_ID),
    ("draft4/ref.json", "Recursive references between schemas", NO_ID),
    ("draft4/ref.json", "Location-independent identifier", NO_ID),
    ("draft4/ref.json", "id must be resolved against nearest parent", NO_ID),
    ("format/hostname.json", "A-label", LABELS),
    (
        "format/hostname.json",
        "hostname with consecutive hyphens (RFC1123)",
        "RFC 5891 reserves them, as 2020-12 has it",
    ),
    ("format/idn-hostname.json", "", LABELS),
];
const OUTSIDE: &str = "outside references are not fetched, and check nothing";
const NO_ID: &str = "schemas of OpenAPI 3.0 have no `id`";
const LABELS: &str = "labels are not decoded: the tables of RFC 5892 and the rules of RFC 5893 are not in filters";

fn judge(schema: &Value, value: &Value, version_31: bool) -> Result<bool, String> {
    let (image, _) = compile_schema(schema, version_31).map_err(|error| error.to_string())?;
    let contract = Contract::open(&image)?;
    let document = Document::read(value.to_string().into_bytes()).map_err(|error| format!("{error:?}"))?;
    match check(&contract, 0, &document, Side::Request, 1_000_000) {
        Checked::Valid => Ok(true),
        Checked::Invalid(..) => Ok(false),
        Checked::Unjudged | Checked::TooCostly => Err("not judged".to_owned()),
    }
}

/// Runs the files of a folder: how many cases passed, and those that did not.
fn run(folder: &Path, version_31: bool) -> (usize, Vec<String>) {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    let (mut passed, mut failed) = (0, Vec::new());
    for file in files {
        let name = format!(
            "{}/{}",
            file.parent().unwrap().file_name().unwrap().to_string_lossy(),
            file.file_name().unwrap().to_string_lossy()
        );
        let groups: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        for group in groups.as_array().unwrap() {
            for test in group["tests"].as_array().unwrap() {
                let title =
                    format!("{}: {}", group["description"].as_str().unwrap(), test["description"].as_str().unwrap());
                let ignored = IGNORED.iter().any(|(of, words, _)| name == *of && title.contains(words));
                let expected = test["valid"].as_bool().unwrap();
                match judge(&group["schema"], &test["data"], version_31) {
                    Ok(valid) if valid == expected => passed += 1,
                    _ if ignored => {}
                    other => failed.push(format!("{name}: {title}: {other:?}, expected {expected}")),
                }
            }
        }
    }
    (passed, failed)
}

#[test]
fn the_suite_agrees() {
    let Some(folder) = std::env::var_os("PALISADE_SCHEMA_TESTS").map(PathBuf::from) else {
        println!("skipped: PALISADE_SCHEMA_TESTS names no folder of the JSON-Schema-Test-Suite");
        return;
    };
    let mut all = Vec::new();
    let mut counts = BTreeMap::new();
    for (part, version_31) in [
        ("draft2020-12", true),
        ("draft2020-12/optional/format", true),
        ("draft4", false),
        ("draft4/optional/format", false),
    ] {
        let (passed, failed) = run(&folder.join(part), version_31);
        counts.insert(part, (passed, failed.len()));
        all.extend(failed);
    }
    println!("passed and failed: {counts:?}; ignored: {} entries", IGNORED.len());
    assert!(IGNORED.iter().all(|(_, _, reason)| !reason.is_empty()));
    assert!(all.is_empty(), "{} failures:\n{}", all.len(), all.join("\n"));
}

/// A schema, whether it is of 3.1, and values with whether they match.
type Sample<'a> = (&'a str, bool, &'a [(&'a str, bool)]);

#[test]
fn the_sample_agrees() {
    let sample: &[Sample<'_>] = &[
        (r#"{"type":"integer"}"#, true, &[("1", true), ("1.0", true), ("1.5", false), ("\"1\"", false)]),
        (r#"{"type":"integer"}"#, false, &[("1", true), ("1.0", false), ("1e0", false)]),
        (r#"{"type":"string","nullable":true}"#, false, &[("null", true), ("\"a\"", true), ("1", false)]),
        (r#"{"type":"string","nullable":true,"enum":["a"]}"#, false, &[("null", true), ("\"b\"", false)]),
        (r#"{"minimum":1,"exclusiveMinimum":true}"#, false, &[("1", false), ("1.1", true)]),
        (r#"{"exclusiveMinimum":1}"#, true, &[("1", false), ("1.1", true)]),
        (r#"{"type":"integer","format":"int32"}"#, true, &[("2147483647", true), ("2147483648", false)]),
        (
            r#"{"type":"integer","format":"int64"}"#,
            true,
            &[("-9223372036854775808", true), ("9223372036854775808", false)],
        ),
        (r#"{"format":"byte"}"#, true, &[("\"YWJj\"", true), ("\"YW Jj\"", false)]),
        (r#"{"format":"float"}"#, true, &[("1e38", true), ("1e39", false)]),
        (r#"{"pattern":"^[\\w-]+$"}"#, true, &[("\"a-b\"", true), ("\"a b\"", false)]),
        (r#"{"pattern":"(?=a)b"}"#, true, &[("\"x\"", true)]),
        (r#"{"$ref":"https://example.com/x.json"}"#, true, &[("1", true)]),
        (r##"{"$ref":"#","type":"object"}"##, false, &[]),
        (
            r#"{"properties":{"a":{"readOnly":true}},"required":["a","b"]}"#,
            true,
            &[("{\"b\":1}", true), ("{\"a\":1}", false)],
        ),
        (r#"{"required":[]}"#, false, &[("{}", true)]),
        (r#"{"multipleOf":0.01}"#, true, &[("19.99", true), ("19.995", false), ("1e300", true)]),
        (
            r#"{"uniqueItems":true}"#,
            true,
            &[("[1,1.0]", false), ("[{\"a\":1,\"b\":2},{\"b\":2,\"a\":1}]", false), ("[1,\"1\"]", true)],
        ),
    ];
    for (schema, version_31, cases) in sample {
        let schema: Value = serde_json::from_str(schema).unwrap();
        for (value, expected) in *cases {
            let (image, _) = compile_schema(&schema, *version_31).unwrap();
            let contract = Contract::open(&image).unwrap();
            let document = Document::read(value.as_bytes()).unwrap();
            let valid = check(&contract, 0, &document, Side::Request, 100_000) == Checked::Valid;
            assert_eq!(valid, *expected, "{schema} {value}");
        }
    }
}
