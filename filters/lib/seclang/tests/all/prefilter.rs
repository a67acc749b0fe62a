//! The prefilter only leaves out rules that cannot match: random and attack-like transactions on the core rule set,
//! with and without prefilter, have the same results.

use std::sync::Arc;

use seclang::{Engine, Intervention, MatchedRule, Transaction, TransactionStart};

use crate::core_rules;

/// The pieces of values: attacks and harmless text.
const PIECES: &[&str] = &[
    "' or 1=1 -- ",
    "union select ",
    "UNION/**/SELECT",
    "<script>alert(1)</script>",
    " onerror=",
    "javascript:",
    "../",
    "..%2f",
    "%2e%2e/",
    "/etc/passwd",
    "c:\\windows\\win.ini",
    ";cat ",
    "|id",
    "$(whoami)",
    "`ls -la`",
    "wget http://",
    "php://input",
    "<?php ",
    "eval(",
    "system(",
    "base64_decode",
    "${jndi:ldap://",
    "{{7*7}}",
    "O:8:\"stdClass\"",
    "%00",
    "\\u003cscript",
    "&lt;script&gt;",
    "&#x3c;",
    "%u003c",
    "\\x3c",
    "%25%32%37",
    "+and+",
    "sleep(5)",
    "waitfor delay '0:0:5'",
    "0x414243",
    "/*!50000",
    "@@version",
    "information_schema",
    "xp_cmdshell",
    "Mozilla/5.0 ",
    "sqlmap/1.5",
    "nikto",
    "garden",
    "Anna",
    "42",
    " ",
    "=",
    "&",
    "order by 1",
    "\u{e9}\u{20ac}",
    "\r\nSet-Cookie: a=b",
    "Content-Length: 0",
    "http://169.254.169.254/",
    "require('child_process')",
    "__proto__",
    "constructor",
    "import os",
    "ls",
    "ed",
    "curl",
    "SELECT",
    "drop table x",
    "exec",
    "ping -c 1",
    "dark red",
    "json.k1",
    "2026-05-17",
    "a@b.example",
    "\"",
    "'",
    "(",
    ")",
    "<",
    ">",
    "\\",
    "/",
    ";",
    "#",
    "--",
    "\t",
    "\n",
    "\0",
    "%0a",
    "%",
    "+",
    "~",
    "!",
    "c'a't",
    "w\\get",
    "/bin/sh",
    "nc -e",
    "true",
    "null",
    "file:///",
    "gopher://",
    "<!ENTITY x SYSTEM",
    "<!--#exec",
    "document.cookie",
    "String.fromCharCode",
    "java.lang.Runtime",
    "ORA-00933",
    "You have an error in your SQL syntax",
    "Warning: mysql_",
    "Traceback (most recent",
];

/// A generator of numbers that is the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn value(&mut self, most: usize) -> Vec<u8> {
        let mut out = Vec::new();
        for _ in 0..self.below(most) {
            match self.below(12) {
                0 => out.push(self.below(256) as u8),
                1 => out.extend(PIECES[self.below(PIECES.len())].to_ascii_uppercase().as_bytes()),
                2 => {
                    let piece = PIECES[self.below(PIECES.len())].as_bytes();
                    out.extend(piece.iter().flat_map(|byte| format!("%{byte:02x}").into_bytes()));
                }
                _ => out.extend(PIECES[self.below(PIECES.len())].as_bytes()),
            }
        }
        out
    }

    fn escaped(&mut self, most: usize) -> Vec<u8> {
        let value = self.value(most);
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'/' | b'-' | b'(' | b'\'');
        value.iter().flat_map(|&byte| if plain(byte) { vec![byte] } else { format!("%{byte:02X}").into() }).collect()
    }
}

struct Request {
    uri: Vec<u8>,
    headers: Vec<(Vec<u8>, Vec<u8>)>,
    body: Vec<u8>,
    response: Vec<u8>,
}

fn request(random: &mut Random) -> Request {
    let mut uri = b"/shop/".to_vec();
    uri.extend(random.escaped(3));
    for at in 0..random.below(4) {
        uri.push(if at == 0 { b'?' } else { b'&' });
        uri.extend(random.escaped(2));
        uri.push(b'=');
        uri.extend(random.escaped(6));
    }
    let mut headers = vec![(b"Host".to_vec(), b"shop.example".to_vec()), (b"Accept".to_vec(), b"*/*".to_vec())];
    for name in ["User-Agent", "Referer", "Cookie", "X-Forwarded-For", "Accept-Encoding", "Range", "X-Any"] {
        if random.below(3) == 0 {
            let prefix: &[u8] = if name == "Cookie" { b"a=" } else { b"" };
            headers.push((name.into(), [prefix, &random.value(4)].concat()));
        }
    }
    let mut body = Vec::new();
    let kind = [
        "",
        "application/x-www-form-urlencoded",
        "application/json",
        "application/xml",
        "multipart/form-data; boundary=q",
        "text/plain",
    ][random.below(6)];
    if !kind.is_empty() {
        headers.push((b"Content-Type".to_vec(), kind.into()));
        for at in 0..random.below(6) {
            let piece = match kind {
                "application/json" => {
                    let text =
                        String::from_utf8_lossy(&random.value(5)).replace(['"', '\\', '\n', '\r', '\t', '\0'], " ");
                    let text: String = text.chars().filter(|letter| !letter.is_control()).collect();
                    format!("{}\"k{at}\":\"{text}\"", if at == 0 { "{" } else { "," }).into_bytes()
                }
                "application/xml" => [b"<a b=\"c\">".to_vec(), random.escaped(4), b"</a>".to_vec()].concat(),
                "text/plain" => random.value(5),
                kind if kind.starts_with("multipart") => [
                    format!("--q\r\nContent-Disposition: form-data; name=\"n{at}\"; filename=\"").into_bytes(),
                    random.escaped(2),
                    b"\"\r\n\r\n".to_vec(),
                    random.value(3),
                    b"\r\n".to_vec(),
                ]
                .concat(),
                _ => [format!("p{at}=").into_bytes(), random.escaped(6), b"&".to_vec()].concat(),
            };
            body.extend(piece);
        }
        match kind {
            "application/json" => body.extend(b"}"),
            kind if kind.starts_with("multipart") => body.extend(b"--q--\r\n"),
            _ => {}
        }
        headers.push((b"Content-Length".to_vec(), body.len().to_string().into()));
    }
    Request { uri, headers, body, response: random.value(8) }
}

type Outcome = (Vec<MatchedRule>, Vec<u64>, Vec<Option<Intervention>>, Option<Intervention>, Vec<Option<Vec<u8>>>);

fn run(engine: &Arc<Engine>, request: &Request) -> Outcome {
    let start = TransactionStart { client_addr: b"192.0.2.7".to_vec(), now_millis: 1, ..TransactionStart::default() };
    let mut transaction = Transaction::new(Arc::clone(engine), start);
    transaction.request_line(if request.body.is_empty() { b"GET" } else { b"POST" }, &request.uri, b"HTTP/1.1");
    for (name, value) in &request.headers {
        transaction.request_header(name, value);
    }
    let mut interventions = vec![transaction.request_headers(), transaction.request_body(&request.body, true)];
    transaction.response_line(200, b"HTTP/1.1");
    transaction.response_header(b"Content-Type", b"text/html");
    interventions.push(transaction.response_headers());
    interventions.push(transaction.response_body(&request.response, true));
    transaction.logging();
    let variables: [(&str, &str); 9] = [
        ("TX", "blocking_inbound_anomaly_score"),
        ("TX", "detection_inbound_anomaly_score"),
        ("TX", "blocking_outbound_anomaly_score"),
        ("TX", "sql_injection_score"),
        ("TX", "xss_score"),
        ("TX", "0"),
        ("TX", "1"),
        ("MATCHED_VAR", ""),
        ("MATCHED_VAR_NAME", ""),
    ];
    let read = |(name, key): (&str, &str)| transaction.variable(name.as_bytes(), key.as_bytes());
    (
        transaction.matched_rules().to_vec(),
        transaction.matched_ids().collect(),
        interventions,
        transaction.would_block().cloned(),
        variables.map(read).to_vec(),
    )
}

fn compare(extra: &str, seed: u64, count: usize) {
    let program = seclang::compile(&core_rules::sources(extra), &core_rules::files()).unwrap();
    let with_prefilter = Arc::new(Engine::new(program.clone()).unwrap());
    let all = Arc::new(Engine::without_prefilter(program).unwrap());
    let mut random = Random(seed);
    let mut seen = std::collections::BTreeSet::new();
    for number in 0..count {
        let request = request(&mut random);
        let (with, without) = (run(&with_prefilter, &request), run(&all, &request));
        assert_eq!(with, without, "transaction {number}: {:?}", String::from_utf8_lossy(&request.uri));
        seen.extend(without.0.iter().filter(|rule| rule.logged).map(|rule| rule.rule_id));
    }
    assert!(seen.len() > 40, "only {} rules matched: these transactions prove little", seen.len());
}

#[test]
fn the_prefilter_changes_nothing_at_paranoia_level_4() {
    let setup = "SecAction \"id:1,phase:1,nolog,pass,ctl:ruleEngine=DetectionOnly,setvar:tx.blocking_paranoia_level=4,\
                 setvar:tx.detection_paranoia_level=4,setvar:tx.crs_validate_utf8_encoding=1\"";
    compare(setup, 1, 400);
}

#[test]
fn the_prefilter_changes_nothing_when_rules_block() {
    let setup = "SecAction \"id:1,phase:1,nolog,pass,setvar:tx.inbound_anomaly_score_threshold=40,\
                 ctl:ruleRemoveTargetById=942100;ARGS:p1,ctl:ruleRemoveTargetByTag=attack-xss;REQUEST_HEADERS\"";
    compare(setup, 2, 400);
}
