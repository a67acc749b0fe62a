//! Documents that a server has stored: requests by a hash or another reference.

use snapshot::{content_hash, hex};

use super::*;

#[test]
fn persisted_queries_are_taken_by_their_hash() {
    let hash = hex(&content_hash(b"{a}"));
    let request = |query: Option<&str>, hash: &str| {
        let extensions = format!(r#"{{"persistedQuery":{{"version":1,"sha256Hash":"{hash}"}}}}"#);
        let extensions = Some(json::read(extensions.as_bytes()).unwrap());
        GraphqlRequest { query: query.map(str::to_owned), extensions, ..GraphqlRequest::default() }
    };
    for (query, hash, persisted, fits) in [
        (None, hash.as_str(), Persisted::Allow, true),
        (None, hash.as_str(), Persisted::Only, true),
        (None, hash.as_str(), Persisted::Deny, false),
        (None, "abc", Persisted::Allow, false),
        (Some("{a}"), hash.as_str(), Persisted::Allow, true),
        (Some("{b}"), hash.as_str(), Persisted::Allow, false),
        (Some("{a}"), hash.as_str(), Persisted::Only, false),
    ] {
        let (_, found) = judge_with(&request(query, hash), |rules| rules.persisted = persisted, false);
        let kinds: Vec<Mismatch> = found.iter().map(|found| found.kind).collect();
        assert_eq!(kinds, if fits { vec![] } else { vec![Mismatch::Persisted] }, "{query:?} {persisted:?}");
    }
    assert_eq!(judge_with(&GraphqlRequest::default(), |_| {}, false).1[0].kind, Mismatch::InvalidRequest);
}

/// What is wrong with a request in JSON.
fn found(body: &str, persisted: Persisted) -> Vec<Mismatch> {
    let request = GraphqlRequest::of_json(&json::read(body.as_bytes()).unwrap()).unwrap();
    let (_, found) = judge_with(&request, |rules| rules.persisted = persisted, false);
    found.into_iter().map(|found| found.kind).collect()
}

#[test]
fn other_references_to_a_stored_document_are_found_in_any_case() {
    use Persisted::{Allow, Deny, Only};
    for name in ["documentId", "DOCUMENTID", "queryId", "doc_id", "Doc_Id", "document\u{131}d", "id", "Id"] {
        let alone = format!(r#"{{"{name}":"sha256:abc","variables":{{}}}}"#);
        let empty = format!(r#"{{"{name}":"7","query":""}}"#);
        for body in [&alone, &empty] {
            assert_eq!(found(body, Allow), [], "{body}");
            assert_eq!(found(body, Only), [], "{body}");
            assert_eq!(found(body, Deny), [Mismatch::Persisted], "{body}");
        }
        let beside = format!(r#"{{"query":"{{a}}","{name}":"7"}}"#);
        assert_eq!(found(&beside, Deny), [Mismatch::Persisted], "{beside}");
        assert_eq!(found(&beside, Only), [Mismatch::Persisted], "{beside}");
        // Clients of Relay number their requests with `id`.
        let expected = if name.len() == 2 { vec![] } else { vec![Mismatch::InvalidRequest] };
        assert_eq!(found(&beside, Allow), expected, "{beside}");
        for other in ["null", "\"\"", "{}", "true"] {
            let beside = format!(r#"{{"query":"{{a}}","{name}":{other}}}"#);
            assert_eq!(found(&beside, Deny), [], "{beside}");
            let alone = format!(r#"{{"{name}":{other}}}"#);
            assert_eq!(found(&alone, Allow), [Mismatch::InvalidRequest], "{alone}");
        }
    }
    assert_eq!(found(r#"{"query":"{a}","variables":{"id":"7","documentId":"7"}}"#, Deny), []);
    let both = r#"{"id":"7","extensions":{"persistedQuery":{"sha256Hash":"abc"}}}"#;
    assert_eq!(found(both, Allow), [Mismatch::Persisted], "a hash is one");
}

#[test]
fn a_number_is_a_reference_but_in_an_id() {
    use Persisted::{Allow, Deny, Only};
    for name in ["documentId", "queryId", "doc_id", "DOC_ID"] {
        for number in ["7", "0", "-1", "1.5", "18446744073709551615"] {
            let alone = format!(r#"{{"{name}":{number}}}"#);
            assert_eq!((found(&alone, Allow), found(&alone, Only)), (vec![], vec![]), "{alone}");
            assert_eq!(found(&alone, Deny), [Mismatch::Persisted], "{alone}");
            let beside = format!(r#"{{"query":"{{a}}","{name}":{number}}}"#);
            assert_eq!(found(&beside, Allow), [Mismatch::InvalidRequest], "{beside}");
            assert_eq!(found(&beside, Deny), [Mismatch::Persisted], "{beside}");
        }
    }
    assert_eq!(found(r#"{"id":7}"#, Allow), [Mismatch::InvalidRequest], "no `query`");
    assert_eq!(found(r#"{"query":"{a}","id":7}"#, Deny), [], "the number of the request");
    assert_eq!(found(r#"{"query":"{a}","id":7,"doc_id":7}"#, Deny), [Mismatch::Persisted]);
}

#[test]
fn a_query_or_a_form_may_refer_to_a_stored_document() {
    let found = |text: &str, persisted| {
        let request = GraphqlRequest::of_pairs(text.as_bytes()).unwrap();
        let (_, found) = judge_with(&request, |rules| rules.persisted = persisted, true);
        found.into_iter().map(|found| found.kind).collect::<Vec<_>>()
    };
    for text in [
        "documentId=abc",
        "+DocumentId=abc",
        "document%C4%B1d=abc",
        "d%6Fc_id%5B%5D=1",
        "queryId=1",
        "id=5",
        "x=1;documentId=abc",
        ";Doc_Id=1",
        "x;y;id=5",
        "documentId=;x",
    ] {
        assert_eq!(found(text, Persisted::Allow), [], "{text}");
        assert_eq!(found(text, Persisted::Deny), [Mismatch::Persisted], "{text}");
        assert_eq!(found(&format!("query={{a}}&{text}"), Persisted::Deny), [Mismatch::Persisted], "{text}");
    }
    assert_eq!(found("query={a}&id=5", Persisted::Allow), []);
    assert_eq!(found("query={a}&documentId=5", Persisted::Allow), [Mismatch::InvalidRequest]);
    assert_eq!(found("query={a}&x=1;documentId=5", Persisted::Allow), [Mismatch::InvalidRequest]);
    for none in ["documentId=", "documentId", "x=1;documentId=", "x=1%3BdocumentId=5", "documentIds=5", "x[id]=5"] {
        assert_eq!(found(none, Persisted::Allow), [Mismatch::InvalidRequest], "{none}");
        assert_eq!(found(&format!("query={{a}}&{none}"), Persisted::Deny), [], "{none}");
    }
}
