//! `docs/seclang.md` lists every word of the language; here each is compiled, so that the page says what is so.

use std::collections::BTreeMap;

use seclang::compile::{Words, words};
use seclang::{DataFiles, Source, compile};

const PAGE: &str = include_str!("../../../../../docs/seclang.md");

struct OneFile;

impl DataFiles for OneFile {
    fn read(&self, _: &str) -> Option<Vec<u8>> {
        Some(b"192.0.2.1\n".to_vec())
    }
}

/// What the page says of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    TakesEffect,
    NoEffect,
    Refused,
}

/// The words of each section, with what the page says of them. Only lists and first columns of tables count.
fn page() -> BTreeMap<String, Vec<(String, State)>> {
    let mut sections: BTreeMap<String, Vec<(String, State)>> = BTreeMap::new();
    let (mut section, mut state, mut in_list) = (String::new(), None, false);
    for line in PAGE.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            (section, state, in_list) = (title.to_owned(), None, false);
        }
        for (start, found) in
            [("Take effect:", State::TakesEffect), ("No effect", State::NoEffect), ("Refused", State::Refused)]
        {
            if line.starts_with(start) {
                (state, in_list) = (Some(found), found == State::TakesEffect);
            }
        }
        let listed = match line.strip_prefix("| ") {
            Some(row) => row.split('|').next().unwrap_or_default(),
            None if in_list => line,
            None => continue,
        };
        in_list &= !line.is_empty();
        let Some(state) = state else { continue };
        let names = listed.split('`').skip(1).step_by(2).map(|name| (name.to_owned(), state));
        sections.entry(section.clone()).or_default().extend(names);
    }
    sections
}

/// What compiling makes of a text, and what it says.
fn compiled(text: &str) -> (State, String) {
    match compile(&[Source::new("test", text)], &OneFile) {
        Err(errors) => (State::Refused, errors[0].to_string()),
        Ok(program) => match program.warnings().next() {
            Some(warning) => (State::NoEffect, warning.message),
            None => (State::TakesEffect, String::new()),
        },
    }
}

/// Every word of a section is what the page says, and the page has every word that the compiler knows.
fn check(section: &str, known: &[&str], silent: &[&str], rule: impl Fn(&str) -> String) {
    let page = page();
    let listed = &page[section];
    for (name, state) in listed {
        let (found, message) = compiled(&rule(name));
        // Words of every rule set are accepted without a word.
        let expected = if silent.contains(&name.as_str()) { State::TakesEffect } else { *state };
        assert_eq!(found, expected, "{section}: {name}: {message}");
        let is_named = message.to_ascii_lowercase().contains(&name.to_ascii_lowercase());
        assert!(found == State::TakesEffect || is_named, "{section}: {name} is not named: {message}");
        assert!(!message.contains("unknown"), "{section}: {name}: {message}");
    }
    for word in known {
        let count = listed.iter().filter(|(name, _)| name == word).count();
        assert_eq!(count, 1, "{section}: {word} is on the page {count} times");
    }
}

#[test]
fn variables_are_as_the_page_says() {
    let Words { variables, .. } = words();
    check("Variables", &variables, &[], |name| format!("SecRule {name} \"@unconditionalMatch\" \"id:1\""));
    for field in ["REGION", "CITY", "POSTAL_CODE", "LATITUDE", "LONGITUDE", "DMA_CODE", "AREA_CODE"] {
        let (state, message) = compiled(&format!("SecRule GEO:{field} \"@rx a\" \"id:1\""));
        assert_eq!(state, State::NoEffect, "{field}");
        assert!(message.contains(field), "{message}");
    }
}

#[test]
fn operators_are_as_the_page_says() {
    let Words { operators, .. } = words();
    check("Operators", &operators, &[], |name| {
        let argument = match name {
            "ipMatch" => "192.0.2.0/24",
            "validateByteRange" => "1-255",
            "detectSQLi" | "detectXSS" | "geoLookup" => "",
            _ => "1",
        };
        format!("SecRule ARGS \"@{name} {argument}\" \"id:1\"")
    });
    for name in ["rbl", "geoLookup"] {
        assert_eq!(compiled(&format!("SecRule ARGS \"!@{name} x\" \"id:1\"")).0, State::TakesEffect, "{name}");
    }
}

#[test]
fn transformations_are_as_the_page_says() {
    let Words { transformations, .. } = words();
    check("Transformations", &transformations, &[], |name| format!("SecRule ARGS \"a\" \"id:1,t:{name}\""));
}

#[test]
fn actions_are_as_the_page_says() {
    let Words { actions, .. } = words();
    check("Actions", &actions, &[], |name| match name {
        "id" => "SecAction \"id:1\"".to_owned(),
        "chain" => "SecRule ARGS \"a\" \"id:1,chain\"\nSecRule ARGS \"b\"".to_owned(),
        "skipAfter" => "SecAction \"id:1,skipAfter:END\"\nSecMarker END".to_owned(),
        "xmlns" => "SecRule XML:/s:a \"a\" \"id:1,xmlns:s=http://s\"".to_owned(),
        name => {
            let value = match name {
                "accuracy" | "maturity" | "phase" | "severity" | "skip" => ":1",
                "status" => ":403",
                "ctl" => ":ruleEngine=Off",
                "deprecatevar" => ":ip.a=1/60",
                "expirevar" => ":ip.a=60",
                "initcol" => ":ip=%{REMOTE_ADDR}",
                "setvar" => ":tx.a=1",
                "setenv" => ":a=1",
                "t" => ":none",
                "logdata"
                | "msg"
                | "redirect"
                | "rev"
                | "sanitiseArg"
                | "sanitiseRequestHeader"
                | "sanitiseResponseHeader"
                | "setrsc"
                | "setsid"
                | "setuid"
                | "tag"
                | "ver" => ":a",
                _ => "",
            };
            format!("SecAction \"id:1,{name}{value}\"")
        }
    });
    for allow in ["allow", "allow:phase", "allow:request"] {
        assert_eq!(compiled(&format!("SecAction \"id:1,{allow}\"")).0, State::TakesEffect);
    }
}

#[test]
fn controls_are_as_the_page_says() {
    let Words { controls, .. } = words();
    let silent = ["auditEngine", "auditLogParts", "debugLogLevel"];
    check("ctl", &controls, &silent, |name| {
        let value = match name {
            "requestBodyLimit" | "responseBodyLimit" | "ruleRemoveById" => "1",
            "ruleRemoveTargetById" => "1-5;ARGS:a",
            "ruleRemoveTargetByTag" | "ruleRemoveTargetByMsg" => "a;ARGS:a",
            "requestBodyProcessor" => "JSON",
            _ => "On",
        };
        format!("SecAction \"id:1,ctl:{name}={value}\"")
    });
}

#[test]
fn directives_are_as_the_page_says() {
    let Words { directives, .. } = words();
    check("Directives", &directives, &[], |name| {
        let rule = "SecRule ARGS \"a\" \"id:1,tag:a,msg:'a'\"\n";
        match name {
            "SecAction" => "SecAction \"id:1\"".to_owned(),
            "SecRule" => rule.to_owned(),
            "SecArgumentSeparator" => format!("{name} &"),
            "SecCookieFormat" => format!("{name} 0"),
            "SecDefaultAction" => format!("{name} \"phase:2,pass\""),
            "SecResponseBodyMimeTypesClear" => name.to_owned(),
            "SecRequestBodyLimitAction" | "SecResponseBodyLimitAction" => format!("{name} Reject"),
            "SecXmlExternalEntity" => format!("{name} Off"),
            "SecParseXmlIntoArgs" | "SecRuleEngine" | "SecRequestBodyAccess" | "SecResponseBodyAccess" => {
                format!("{name} On")
            }
            "SecRuleUpdateActionById" => format!("{rule}{name} 1 \"pass\""),
            "SecRuleUpdateTargetById" => format!("{rule}{name} 1 \"!ARGS:a\""),
            "SecRuleUpdateTargetByTag" | "SecRuleUpdateTargetByMsg" => format!("{rule}{name} a \"!ARGS:a\""),
            _ => format!("{name} 1"),
        }
    });
}
