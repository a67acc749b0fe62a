//! Both lines of the Core Rule Set load with no rule dropped, block what they should, and nothing else.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use palisade_tests::parts;
use seclang::operator::BACKTRACK_BUDGET;
use seclang::{DataFiles, ENGINE_CONF, Engine, Program, Source, Transaction, TransactionStart};

struct Folder(PathBuf);

impl DataFiles for Folder {
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        std::fs::read(self.0.join(name)).ok()
    }
}

#[test]
fn the_fetched_rule_set_works() {
    works(&parts::crs());
}

#[test]
fn the_3_3_line_works() {
    let folder = parts::crs3();
    let version = std::fs::read_to_string(folder.join("VERSION")).unwrap();
    assert!(version.starts_with("3.3."), "{} holds {version}", folder.display());
    works(&folder);
}

fn works(folder: &Path) {
    let sources = sources(folder);
    let program = seclang::compile(&sources, &Folder(folder.join("rules"))).unwrap_or_else(|diagnostics| {
        let all: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
        panic!("{} errors:\n{}", all.len(), all.join("\n\n"))
    });
    for warning in program.warnings() {
        println!("{}:{}: {}", warning.origin, warning.line, warning.message);
    }
    let written: BTreeSet<u64> = sources.iter().flat_map(|source| ids(&source.text)).collect();
    let loaded: BTreeSet<u64> = program.rule_ids().collect();
    let dropped: Vec<&u64> = written.difference(&loaded).collect();
    println!("{} ids written, {} loaded", written.len(), loaded.len());
    assert!(written.len() > 200, "only {} ids were found in {}", written.len(), folder.display());
    assert!(dropped.is_empty(), "dropped: {dropped:?}");

    // As it travels.
    let engine = Arc::new(Engine::new(Program::decode(&program.encode()).unwrap()).unwrap());
    for uri in [
        "/items?id=1%27%20UNION%20SELECT%20password%20FROM%20users--%20",
        "/items?q=%3Cscript%3Ealert(document.cookie)%3C/script%3E",
        "/download?file=../../../../etc/passwd",
    ] {
        let blocked = get(&engine, uri).unwrap_or_else(|| panic!("{uri} passes"));
        assert_eq!((blocked.0, blocked.1), (403, 949_110), "{uri}");
    }
    for uri in ["/", "/items?id=17&colour=dark+red", "/search?q=garden+chairs&page=2"] {
        assert_eq!(get(&engine, uri), None, "{uri}");
    }
}

fn sources(folder: &Path) -> Vec<Source> {
    let read = |path: &Path| std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut rules: Vec<PathBuf> = std::fs::read_dir(folder.join("rules"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "conf"))
        .collect();
    rules.sort();
    let mut sources = vec![
        Source::new("engine.conf", ENGINE_CONF),
        Source::new("crs-setup.conf", read(&folder.join("crs-setup.conf"))),
    ];
    sources.extend(rules.iter().map(|path| Source::new(path.file_name().unwrap().to_string_lossy(), read(path))));
    sources
}

/// The ids that rules have, found by their look alone: `id:` behind a quote, a comma or a blank, outside comments.
fn ids(text: &[u8]) -> Vec<u64> {
    let text = String::from_utf8_lossy(text);
    let mut found = Vec::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        for (at, _) in line.match_indices("id:") {
            let before = line[..at].chars().next_back();
            if !before.is_none_or(|before| matches!(before, '"' | ',' | ' ' | '\t')) {
                continue;
            }
            let rest = line[at + 3..].trim_start_matches('\'');
            let digits = &rest[..rest.bytes().take_while(u8::is_ascii_digit).count()];
            found.extend(digits.parse::<u64>().ok());
        }
    }
    found
}

/// Status and rule id of what stops a request, if anything does.
fn get(engine: &Arc<Engine>, uri: &str) -> Option<(u16, u64)> {
    let start = TransactionStart {
        unique_id: b"test".to_vec(),
        now_millis: 1_750_000_000_000,
        random: 7,
        client_addr: b"127.0.0.1".to_vec(),
        client_port: 40_000,
        server_addr: b"127.0.0.1".to_vec(),
        server_port: 80,
    };
    let mut transaction = Transaction::new(Arc::clone(engine), start);
    transaction.request_line(b"GET", uri.as_bytes(), b"HTTP/1.1");
    for (name, value) in [
        ("Host", "shop.example"),
        ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"),
        ("Accept", "text/html"),
    ] {
        transaction.request_header(name.as_bytes(), value.as_bytes());
    }
    transaction
        .request_headers()
        .or_else(|| transaction.request_body(b"", true))
        .map(|stopped| (stopped.status, stopped.rule_id))
}

/// The most that forms of honest text cost the backtracker, at the strictest paranoia level.
#[test]
fn long_forms_leave_most_of_the_budget() {
    for folder in [parts::crs(), parts::crs3()] {
        let mut sources = sources(&folder);
        let levels =
            ["paranoia_level", "executing_paranoia_level", "blocking_paranoia_level", "detection_paranoia_level"];
        let levels = levels.map(|name| format!("setvar:tx.{name}=4")).join(",");
        let strict = format!("SecAction \"id:1,phase:1,nolog,pass,ctl:ruleEngine=DetectionOnly,{levels}\"");
        sources.insert(2, Source::new("strict.conf", strict));
        let program = seclang::compile(&sources, &Folder(folder.join("rules"))).unwrap();
        let engine = Arc::new(Engine::new(program).unwrap());
        for (fields, length) in [(1, 1 << 20), (128, 8 << 10), (1000, 1 << 10), (1000, 100)] {
            let (spent, exceeded) = spent(&engine, fields, length);
            println!("{}: {fields} fields of {length} bytes: {spent} steps, {exceeded:?}", folder.display());
            assert!(spent < BACKTRACK_BUDGET as u64 / 2, "{fields} fields of {length} bytes: {spent} steps");
        }
    }
}

/// Steps back that a form takes, and the rules that gave up.
fn spent(engine: &Arc<Engine>, fields: usize, length: usize) -> (u64, Vec<u64>) {
    const TEXT: &str = "Dear team, <b>please</b> select the items from the list where price = 10 and (a or b); \
        see https://shop.example/a.php?id=1&x='y' -- ${name} {{thanks}}, O'Neill $(id) ../notes `ls` 1=1 union of ";
    let value: String = TEXT.chars().cycle().take(length).collect();
    let value = value
        .bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") });
    let value: String = value.collect();
    let form: Vec<String> = (0..fields).map(|field| format!("field{field}={value}")).collect();
    let form = form.join("&");
    let mut transaction = Transaction::new(Arc::clone(engine), TransactionStart::default());
    transaction.request_line(b"POST", b"/comments", b"HTTP/1.1");
    for (name, value) in [("Host", "shop.example"), ("Content-Type", "application/x-www-form-urlencoded")] {
        transaction.request_header(name.as_bytes(), value.as_bytes());
    }
    transaction.request_headers();
    transaction.request_body(form.as_bytes(), true);
    (transaction.work().backtracks, transaction.exceeded_limits().iter().map(|limit| limit.rule_id).collect())
}
