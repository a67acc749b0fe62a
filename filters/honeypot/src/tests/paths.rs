//! Decoy paths.

use super::*;

fn traps(paths: &[&str]) -> Chain {
    chain(policy(&json!({ "paths": paths })))
}

#[test]
fn every_spelling_of_a_decoy_is_caught() {
    let chain = traps(&["/.Env", "/wp-admin*"]);
    let spellings = [
        "/.env",
        "/.ENV",
        "/.env?x=1",
        "/.env?",
        "/%2eenv",
        "/%2E%65nv",
        "/%252eenv",
        "/%25252eenv",
        "/%u002eenv",
        "//.env",
        "/./.env",
        "/x/../.env",
        "/x/%2e%2e/.env",
        "/x/..%2f.env",
        "/x%5c..%5c.env",
        "/x\\..\\.env",
        "\\.env",
        "/.env;jsessionid=1",
        "/.env;a%2fb",
        "/x/..;/.env",
        "/;x/.env",
        "/.env.",
        "/.env%20",
        "/.env%00.png",
        "/.env%3fx",
        "/.env%0a",
        "/.env#x",
        "/x/%c0%ae%c0%ae/.env",
        "/x/..%c0%af.env",
        "http://other.example/.env",
        "/WP-Admin/setup.php",
        "/wp-admin",
        "/wp-administrator",
        "/blog/../wp-admin/",
        "/%77p-admin%2f",
    ];
    for spelling in spellings {
        assert!(caught(&chain, spelling), "{spelling}");
    }
    assert!(caught(&chain, b"/x/\xc0\xae\xc0\xae/.env"));
}

#[test]
fn what_is_no_decoy_passes() {
    let chain = traps(&["/.Env", "/wp-admin*", "/a/b", "/%2f*", "/dots/..", "/x;y*", "/100%"]);
    for path in [
        "/",
        "/.en",
        "/.envx",
        "/.env/x",
        "/x/.env",
        "/x?/.env",
        "/?/../.env",
        "/search?q=/wp-admin",
        "/wp-admi",
        "/blog/wp-admin",
        "/a",
        "/a/",
        "/a/b/c",
        "/a/b/../c",
        "/x",
        "/dots",
        "/..",
        "*",
        "",
        "%",
        "/%",
        "/\u{212a}",
    ] {
        assert!(!caught(&chain, path), "{path}");
    }
    assert!(!caught(&chain, b"/\xff\xfe\xc0"));
    // What is odd about a decoy is compared as it is, and only so.
    for path in ["/%2f", "/%2Fx", "/dots/..", "/x;y", "/x;yz", "/100%", "/a//b"] {
        assert!(caught(&chain, path), "{path}");
    }
}

#[test]
fn a_prefix_matches_whatever_follows_and_an_exact_path_nothing_else() {
    let chain = traps(&["/a*", "/a/b*", "/a/c", "/b", "/b/c*", "/B/D", "/\u{e4}"]);
    // Backends serve a page for its path with a slash at the end too.
    for path in
        ["/a", "/ab", "/a/", "/a/b/c", "/a/c", "/b", "/b/", "/b/c", "/B/Cd", "/b/d", "/b/d//", "/%C3%A4", "/%c3%a4"]
    {
        assert!(caught(&chain, path), "{path}");
    }
    for path in ["/b/b", "/c", "/b/dd", "/bb", "/%C3%84", "/"] {
        assert!(!caught(&chain, path), "{path}");
    }
}

#[test]
fn a_slash_at_the_end_of_a_decoy_makes_no_other_path() {
    let chain = traps(&["/backup/", "/Old//", "/x;y/", "/dots/../", "/both", "/both/", "/data/*"]);
    for path in [
        "/backup",
        "/backup/",
        "/backup//",
        "/BACKUP",
        "/backup?x=/",
        "/backup/x/..",
        "/backup/x/%2e%2e",
        "/backup/x/..;a",
        "/backup/.",
        "/y/../backup/x/..%2f",
        "/backup;a",
        "/old",
        "/old/",
        "/old//",
        // What is odd about a decoy is compared as it is.
        "/x;y/",
        "/x;y",
        "/dots/../",
        "/both",
        "/both/",
        // What leads up to a folder is in it.
        "/data/",
        "/data/x",
        "/y/../data/x/..",
        "/y/../data/x/%2e%2e",
        "/y/../data/x\\..;a",
    ] {
        assert!(caught(&chain, path), "{path}");
    }
    for path in ["/", "/backups", "/backup/x", "/backup/x/", "/x", "/dots", "/a/backup", "/data", "/y/../data"] {
        assert!(!caught(&chain, path), "{path}");
    }
    let host = FakeHost::at(0);
    status(&chain, get(b"/backup/x/..", &[]), &host);
    status(&chain, get(b"/both", &[]), &host);
    let messages: Vec<String> =
        host.events_json().iter().map(|event| event["message"].as_str().unwrap().to_owned()).collect();
    assert_eq!(
        messages,
        ["/backup/", "/both"].map(|decoy| format!("honeypot `traps`: the decoy path `{decoy}` was asked for")),
        "as the policy has it"
    );
}

#[test]
fn a_script_is_served_for_what_is_behind_its_name() {
    let chain = traps(&["/phpinfo.php", "/old/setup.PHP", "/x.html"]);
    for path in ["/phpinfo.php/", "/phpinfo.php/x/y", "/PHPinfo.php/x", "/old/setup.php;a/x", "/phpinfo.php%2fx"] {
        assert!(caught(&chain, path), "{path}");
    }
    for path in ["/phpinfo.phpx/", "/a/phpinfo.php/x", "/x.html/y", "/.php/phpinfo.php"] {
        assert!(!caught(&chain, path), "{path}");
    }
}

#[test]
fn the_event_names_the_decoy_as_the_policy_has_it() {
    let chain = traps(&["/WP-admin*", "/wp-admin/x*"]);
    let host = FakeHost::at(0);
    assert_eq!(status(&chain, get(b"/x/..//wp-ADMIN/x/y?token=1", &[]), &host), Some(404));
    let event = host.events_json().remove(0);
    assert_eq!(event["message"], "honeypot `traps`: the decoy path `/WP-admin*` was asked for");
    assert_eq!((&event["event"]["category"], &event["event"]["module"]), (&json!("honeypot"), &json!("honeypot")));
    assert_eq!((&event["threat"]["tags"], &event["threat"]["score"]), (&json!(["honeypot:path"]), &json!(100)));
    assert_eq!(event["http"]["path"], "/x/..//wp-ADMIN/x/y");
}

#[test]
fn a_thousand_paths_of_full_length_and_a_path_of_64_kib() {
    let long = |index: usize| format!("/{index:04}{}", "x".repeat(1019));
    let exact: Vec<String> = (0..500).map(long).collect();
    let prefixes: Vec<String> = (500..1000).map(|index| format!("{}*", &long(index)[..1023])).collect();
    let all = [exact, prefixes].concat();
    let chain = chain(policy(&json!({ "paths": all })));
    for index in 0..1000 {
        assert!(caught(&chain, long(index)), "{index}");
        assert_eq!(caught(&chain, format!("{}y", long(index))), index >= 500, "{index}");
    }
    assert!(!caught(&chain, long(1000)));
    let deep = "/x".repeat(32 << 10);
    assert!(!caught(&chain, &deep));
    assert!(caught(&chain, format!("{}{}", "/.".repeat(32 << 10), long(7))));
    assert!(caught(&chain, format!("{deep}{}{}", "/..".repeat(32 << 10), long(7))));
    assert!(caught(&chain, format!("/{}/..{}", "a".repeat(64 << 10), long(7))));
    assert!(caught(&chain, format!("{}{}", long(700), "%00".repeat(20 << 10))));
    assert!(!caught(&chain, vec![0xff; 64 << 10]));
    assert!(!caught(&chain, "%".repeat(64 << 10)));
    assert!(!caught(&chain, "%25".repeat(20 << 10)));
}
