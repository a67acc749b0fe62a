use super::*;

fn place(target: &str, path: &str) -> Place {
    Place { rule_id: 942_100, target: Target::parse(target.as_bytes()).unwrap(), path: path.to_owned() }
}

#[test]
fn the_narrowest_exclusion_comes_first() {
    let all = Exclusion::candidates(&place("ARGS:content", "/post"), 50_007);
    let texts: Vec<&str> = all.iter().map(|one| one.seclang.as_str()).collect();
    assert_eq!(
        texts,
        [
            "SecRule REQUEST_FILENAME \"@rx \\A/+post(?:;[^/]*)?/*\\z\" \"id:50007,phase:1,pass,nolog,t:none,\
             ctl:ruleRemoveTargetById=942100;ARGS:content\"",
            "SecRuleUpdateTargetById 942100 \"!ARGS:content\"",
            "SecRule REQUEST_FILENAME \"@rx \\A/+post(?:;[^/]*)?/*\\z\" \"id:50007,phase:1,pass,nolog,t:none,\
             ctl:ruleRemoveById=942100\"",
            "SecRuleRemoveById 942100",
        ]
    );
    assert!(all.iter().map(|one| one.kind.rank()).eq(1..=4));
    let placements: Vec<&str> = all.iter().map(|one| one.kind.placement()).collect();
    assert_eq!(placements, ["before", "after", "before", "after"]);
}

#[test]
fn a_name_that_cannot_be_written_leaves_what_names_none() {
    let all = Exclusion::candidates(&place("ARGS:a\",deny,\"", "/post"), 50_000);
    assert!(all.iter().map(|one| one.kind).eq([ExclusionKind::ScopedRemove, ExclusionKind::RemoveRule]));
    assert!(all.iter().all(|one| !one.seclang.contains("deny")));
}

#[test]
fn a_method_is_excluded_by_itself() {
    let place = Place { rule_id: 911_100, ..place("REQUEST_METHOD:PUT", "/issues/{id}") };
    let all = Exclusion::candidates(&place, 50_001);
    assert!(all.iter().map(|one| one.kind).eq([
        ExclusionKind::ScopedTarget,
        ExclusionKind::ScopedRemove,
        ExclusionKind::RemoveRule
    ]));
    let joined = |endings: Vec<&[u8]>| String::from_utf8(endings.join(b"|".as_slice())).unwrap();
    let folders =
        PROGRAMS.into_iter().filter(|ending| ![b"cgi".as_slice(), b"php", b"pl", b"py", b"rb"].contains(ending));
    let (endings, folders) = (joined(PROGRAMS.to_vec()), joined(folders.collect()));
    let rest = "(?:[^0-9a-z/][^/]*)?";
    let programs =
        format!("\"!@rx \\.(?:{endings})(?:{rest}[/.\\s]*\\z|\\x00)|\\.(?:{folders}){rest}/|/\\.\\.(?:[/;]|\\z)\"");
    let decoded = "t:none,t:urlDecodeUni,t:urlDecodeUni,t:urlDecodeUni,t:lowercase";
    assert_eq!(
        all[0].seclang,
        format!(
            "SecRule REQUEST_FILENAME \"@rx \\A/+issues(?:;[^/]*)?/+[^/]+/*\\z\" \"id:50001,phase:1,pass,nolog,t:none,chain\"\n\
             SecRule REQUEST_METHOD \"@streq PUT\" \"t:none,chain\"\n\
             SecRule REQUEST_FILENAME {programs} \"{decoded},chain\"\n\
             SecRule &REQUEST_HEADERS:Destination \"@eq 0\" \"t:none,ctl:ruleRemoveTargetById=911100;REQUEST_METHOD\""
        )
    );
    let kept = [Kept::Rule(911_100)];
    let target = Target::parse(b"REQUEST_METHOD:MOVE").unwrap();
    assert_eq!(
        free_input(&target, "/a", &kept, 50_001, Some(",f1,")).unwrap(),
        format!(
            "SecRule REQUEST_FILENAME \"@rx \\A/+a(?:;[^/]*)?/*\\z\" \"id:50001,phase:1,pass,nolog,t:none,chain\"\n\
             SecRule REQUEST_METHOD \"@streq MOVE\" \"t:none,chain\"\n\
             SecRule REQUEST_FILENAME {programs} \"{decoded},chain\"\n\
             SecRule &REQUEST_HEADERS:Destination \"@eq 1\" \"t:none,chain\"\n\
             SecRule REQUEST_HEADERS:Destination {programs} \"{decoded},chain\"\n\
             SecRule UNIQUE_ID \"@contains ,f1,\" \"t:none,ctl:ruleRemoveTargetById=911100;REQUEST_METHOD\""
        )
    );
}

#[test]
fn a_folded_path_is_a_pattern() {
    for (path, pattern) in [
        ("/orders/{id}/notes.{x}", r"@rx \A/+orders(?:;[^/]*)?/+[^/]+/+notes\.[^/]+/*\z"),
        ("/files/{id}.pdf", r"@rx \A/+files(?:;[^/]*)?/+[^/]+\.pdf(?:;[^/]*)?/*\z"),
        ("/a.b+c/{id}", r"@rx \A/+a\.b\+c(?:;[^/]*)?/+[^/]+/*\z"),
        ("/a.b", r"@rx \A/+a\.b(?:;[^/]*)?/*\z"),
        ("/caf%C3%A9", r"@rx \A/+caf\xC3\xA9(?:;[^/]*)?/*\z"),
        ("/100%25", r"@rx \A/+100\x25(?:;[^/]*)?/*\z"),
        ("/", r"@rx \A/+(?:;[^/]*)?/*\z"),
    ] {
        assert_eq!(condition(path).as_deref(), Some(pattern), "{path}");
    }
    for path in ["/a\" \"id:1,pass,ctl:ruleEngine=Off\"", "/a\\", "/a b", "/%{tx.a}", "/\u{e4}", "/a%2Fb", "a"] {
        assert_eq!(condition(path), None, "{path}");
    }
    let earlier = |path: &str| operators(path).nth(1).unwrap();
    assert_eq!(earlier("/a.b"), "@streq /a.b");
    assert_eq!(earlier("/a.b+c/{id}"), "@rx \\A/a\\.b\\+c/[^/]+\\z");
}

/// What is known of a path without an engine is what the engine does.
#[test]
fn a_path_is_selected_as_the_engine_selects_it() {
    let paths = ["/", "/a", "/a/{id}", "/files/{id}.pdf", "/caf%C3%A9", "/my%20docs/{slug}/x", "/100%25", "/a%3Bb"];
    let uris = [
        "/",
        "//",
        "/;x=1",
        "/a",
        "/a/",
        "//a//",
        "/%61",
        "/a;s=1",
        "/a;s=1/b",
        "/a/b",
        "/a/b/",
        "/a/b;c",
        "/a/;c",
        "/a/b/c",
        "/A",
        "/ab",
        "/a%0a",
        "/x%0a/a",
        "/a%0a/b",
        "/files/1.pdf",
        "/files/1.pdf;v=2",
        "/files/1;2.pdf",
        "/files/.pdf",
        "/files/1.pdf.exe",
        "/files/1.pdfx",
        "/caf%C3%A9",
        "/caf%c3%a9/",
        "/caf\u{e9}",
        "/cafe",
        "/my%20docs/ann/x",
        "/my+docs/ann/x",
        "/my%20docs;a/ann;b/x;c?d",
        "/my%20docs/ann/x#/y",
        "/100%25",
        "/100%",
        "/a%3Bb",
        "/a;b",
        "/a%3Bb;c",
        "a",
        "",
    ];
    for path in paths {
        let rule = format!(
            "SecRuleEngine On\nSecRule REQUEST_FILENAME \"{}\" \"id:1,phase:1,pass,log\"",
            condition(path).unwrap()
        );
        let sources = [seclang::Source::new("rule", rule.as_str())];
        let program = seclang::compile(&sources, waf_presets::data_files()).unwrap();
        let engine = std::sync::Arc::new(seclang::Engine::new(program).unwrap());
        for uri in uris {
            let start = seclang::TransactionStart {
                unique_id: b"1".to_vec(),
                now_millis: 1_700_000_000_000,
                random: 1,
                client_addr: b"192.0.2.1".to_vec(),
                client_port: 40_000,
                server_addr: b"192.0.2.2".to_vec(),
                server_port: 443,
            };
            let mut transaction = seclang::Transaction::new(std::sync::Arc::clone(&engine), start);
            transaction.request_line(b"GET", uri.as_bytes(), b"HTTP/1.1");
            assert!(transaction.request_headers().is_none());
            let is_matched = transaction.matched_ids().any(|id| id == 1);
            assert_eq!(selects(path, uri.as_bytes()), is_matched, "{path} {uri}");
            // All that fold to a path are selected, but for segments with parameters alone.
            let target = uri.split(['?', '#']).next().unwrap();
            let is_of_path = uri.starts_with('/')
                && !uri.contains("/;")
                && exchange::fold::fold(target.as_bytes()).as_deref() == Some(path);
            assert!(!is_of_path || is_matched, "{path} {uri}");
        }
    }
}

#[test]
fn a_path_reaches_what_its_pattern_selects() {
    for (folded, path, is_reached) in [
        ("/users/{slug}/profile", "/users/ann/profile", true),
        ("/users/{slug}/profile", "/users/{id}/profile", true),
        ("/users/{slug}/profile", "/users//profile", false),
        ("/users/{slug}/profile", "/users/ann/posts", false),
        ("/users/{slug}", "/users/ann/profile", false),
        ("/files/{id}.pdf", "/files/a.pdf", true),
        ("/files/{id}.pdf", "/files/a.png", false),
        ("/files/{id}.pdf", "/files/.pdf", false),
        ("/a", "/a", true),
        ("/a", "/{id}", false),
        ("/a%2Bb", "/a+b", true),
        ("/a", "/a%3Bb", true),
        ("/a%3Bb", "/a", false),
    ] {
        assert_eq!(reaches(folded, path), is_reached, "{folded} {path}");
    }
    for (one, other, is_one) in [
        ("/a", "/{id}", true),
        ("/a/{id}", "/{id}/b", true),
        ("/users/{slug}/list", "/{slug}/ann/list", true),
        ("/users/{slug}/list", "/{slug}/ann/posts", false),
        ("/a/{id}", "/b/{id}", false),
        ("/a", "/a/{id}", false),
    ] {
        assert_eq!((overlap(one, other), overlap(other, one)), (is_one, is_one), "{one} {other}");
    }
    let exclusion = &Exclusion::candidates(&place("ARGS:bio", "/users/{slug}/profile"), 50_000)[0];
    assert!(
        exclusion.seclang.contains(r#""@rx \A/+users(?:;[^/]*)?/+[^/]+/+profile(?:;[^/]*)?/*\z""#),
        "{}",
        exclusion.seclang
    );
    assert!(exclusion.reach.contains("/users/{slug}/profile (any name stands for {slug})"), "{}", exclusion.reach);
}

#[test]
fn the_paths_of_exclusions_are_known() {
    let of = |path: &str| Exclusion::candidates(&place("ARGS:bio", path), 50_000).remove(0).seclang;
    let of_profile = of("/profile").replace("ctl:ruleRemoveTargetById=942100;ARGS:bio", "chain");
    let texts = [format!("# Exclusion 50000 by ann\n{}", of("/users/ann")), of("/users/{id}"), of_profile];
    let both = format!("{}\n{}", of("/a"), of("/b.c"));
    let earlier = "SecRule REQUEST_FILENAME \"@streq /old\" \"id:1,phase:1,pass,nolog,ctl:ruleRemoveById=942100\"";
    let all = texts.iter().chain([&both]).map(String::as_str).chain([earlier]);
    let named = NamedPaths::of(all);
    let paths = ["/users/ann", "/users/{id}", "/users/bob", "/profile", "/a", "/b.c", "/bxc", "/old", "/"];
    assert!(paths.into_iter().filter(|path| named.has(path)).eq(["/users/ann", "/a", "/b.c", "/old"]));
}

#[test]
fn ids_that_are_named_anywhere_are_taken() {
    assert_eq!(free_ids(std::iter::empty()).count(), 10_000);
    let taken = ["id:50000", "# Exclusion 50001 by x", "id:150002", "50004,"];
    assert!(free_ids(taken.into_iter()).take(3).eq([50_002, 50_003, 50_005]));
    let all: String = IDS.map(|id| format!("{id} ")).collect();
    assert_eq!(free_ids([all.as_str()].into_iter()).next(), None);
}
