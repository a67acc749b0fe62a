use regex_automata::meta;

use super::super::backtracking::Effort;
use super::super::linear::Linear;
use super::super::translate;
use super::*;

/// Text without any match, of several lines.
const PROSE: &str = "garden Anna blue; please ring the bell.\nnorth street and 42 (small) boxes & a gift\nsystem \
                     count, not even the Meyers' notes\n";

/// What values are made of besides pieces of the pattern.
const PIECES: [&str; 20] = [
    "\n", "\r\n", ";", "|", "`", "{", "&&", "$", "\\", "/", "\"", "'", " ", "=", "json.", "\0", "\u{e9}", "env ", "<",
    "a",
];

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// A text that the parsed pattern matches, but for its assertions.
fn write(hir: &Hir, random: &mut Random, out: &mut Vec<u8>) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => out.extend(&literal.0),
        HirKind::Class(Class::Bytes(class)) => {
            if let Some(range) = class.ranges().get(random.below(class.ranges().len().max(1))) {
                out.push(range.start() + random.below(usize::from(range.end() - range.start()) + 1) as u8);
            }
        }
        HirKind::Class(Class::Unicode(_)) => {}
        HirKind::Repetition(repetition) => {
            let extra = if random.below(3) == 0 { random.below(3) as u32 } else { 0 };
            let times = (repetition.min + extra).min(repetition.max.unwrap_or(u32::MAX)).min(40);
            (0..times).for_each(|_| write(&repetition.sub, random, out));
        }
        HirKind::Capture(capture) => write(&capture.sub, random, out),
        HirKind::Concat(parts) => parts.iter().for_each(|part| write(part, random, out)),
        HirKind::Alternation(branches) => write(&branches[random.below(branches.len())], random, out),
    }
}

fn value(hir: &Hir, random: &mut Random) -> Vec<u8> {
    let mut out = Vec::new();
    // Long enough for the general engine not to be asked alone.
    let filler = PROSE.as_bytes();
    while out.len() < 140 {
        let start = random.below(filler.len());
        out.extend(&filler[start..(start + random.below(90)).min(filler.len())]);
        for _ in 0..random.below(3) {
            out.extend(PIECES[random.below(PIECES.len())].as_bytes());
        }
    }
    for _ in 0..random.below(3) {
        let mut piece = Vec::new();
        write(hir, random, &mut piece);
        piece.truncate(300);
        match random.below(4) {
            0 => piece.truncate(random.below(piece.len() + 1)),
            1 if !piece.is_empty() => {
                let at = random.below(piece.len());
                piece[at] = random.below(256) as u8;
            }
            _ => {}
        }
        let at = match random.below(5) {
            0 => out.len(),
            1 => 0,
            _ => random.below(out.len() + 1),
        };
        out.splice(at..at, piece);
    }
    if random.below(6) == 0 {
        out.push(b'\n');
    }
    if random.below(2) == 0 {
        // Most values have no backslash.
        out.iter_mut().filter(|byte| **byte == b'\\').for_each(|byte| *byte = b'_');
    }
    out
}

/// Compares a pattern with the general engine; how many values matched, and how many the places decided.
fn compare(pattern: &str, values: usize, random: &mut Random) -> (usize, usize) {
    let linear = Linear::new(pattern).unwrap();
    let general = meta::Regex::builder()
        .syntax(super::super::syntax())
        .configure(meta::Config::new().utf8_empty(false))
        .build(pattern)
        .unwrap();
    let hir = syntax::parse_with(pattern, &super::super::syntax()).unwrap();
    let starts = [&b"\\$"[..], b"\\", b""].map(|absent| (absent, Starts::new(pattern, absent)));
    let (mut matched, mut decided) = (0, 0);
    for _ in 0..values {
        let value = value(&hir, random);
        let at = if random.below(4) == 0 { random.below(40) } else { 0 };
        let mut captures = general.create_captures();
        general.search_captures(&Input::new(&value).range(at..), &mut captures);
        let expected = captures.get_match().map(|found| (found.start(), found.end()));
        let mut effort = Effort::without_steps();
        let found = linear.search(&value, at, true, &mut effort);
        for group in 0..captures.group_len().min(super::super::MAX_CAPTURES) {
            let expected = captures.get_group(group).map(|span| (span.start, span.end));
            assert_eq!(found.and_then(|spans| spans[group]), expected, "{pattern}\non {:?}", value.escape_ascii());
        }
        assert_eq!(linear.search(&value, at, false, &mut effort).is_some(), expected.is_some(), "{pattern}");
        assert!(!effort.limited);
        matched += usize::from(expected.is_some());
        for (absent, starts) in &starts {
            let Some(starts) = starts else { continue };
            if absent.iter().any(|byte| value[at..].contains(byte)) {
                continue;
            }
            match starts.search(&value, at, &mut 0) {
                Found::Nothing => assert_eq!(expected, None, "{pattern}\non {:?}", value.escape_ascii()),
                Found::Match(start, _) => assert_eq!(expected.map(|span| span.0), Some(start), "{pattern}"),
                Found::Open(start) => assert!(expected.is_none_or(|span| span.0 >= start), "{pattern}"),
            }
            decided += 1;
        }
    }
    (matched, decided)
}

/// The patterns of the linear engine in the core rule set; none where it was not fetched (`make crs`).
fn core_rules() -> Vec<String> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../.cache/crs");
    let root = std::env::var_os("PALISADE_CRS_DIR").map_or(root, Into::into);
    let Ok(entries) = std::fs::read_dir(root.join("rules")) else { return Vec::new() };
    let mut patterns = Vec::new();
    for entry in entries.map(|entry| entry.unwrap().path()).filter(|path| path.extension() == Some("conf".as_ref())) {
        let text = String::from_utf8_lossy(&std::fs::read(entry).unwrap()).into_owned();
        for line in text.lines().filter(|line| line.trim_start().starts_with("SecRule")) {
            let Some((_, rest)) = line.split_once("\"@rx ").or_else(|| line.split_once("\"!@rx ")) else {
                continue;
            };
            let Some((pattern, _)) = rest.rsplit_once("\" \\").or_else(|| rest.split_once("\" \"")) else {
                continue;
            };
            if pattern.contains("%{") {
                continue;
            }
            match translate::translate(pattern.replace("\\\"", "\"").as_bytes()) {
                Ok(translated) if !translated.backtracking => patterns.push(translated.pattern),
                _ => {}
            }
        }
    }
    patterns.sort();
    patterns.dedup();
    patterns
}

#[test]
fn agrees_with_the_general_engine() {
    let patterns = [
        "(?i)(?:[\\n;`|&]|\\$\\()\\s*(?:[a-z]+/|[a-z ]*\\x5c)?(cat|ls|who(?:ami)?)\\b",
        "^(?:json\\x2e)?[;|]?(env|e)=",
        "(?:^|[;&])x[0-9]",
        "\\bzq\\b",
        "z$",
        "(?i)(z)|z(q)?",
        "q\\x24?x(?:ab)*?y",
        "\\A;",
        "[^a]\\Bq",
        "x|q*",
        "\\x5c",
        "[\\x00-\\x08]{2,5}(?:.*z)?",
    ];
    let mut random = Random(1);
    for pattern in patterns {
        let (matched, _) = compare(pattern, 400, &mut random);
        assert!(matched > 10, "{pattern}: {matched}");
    }
    let all = core_rules();
    let counts = all.iter().map(|pattern| compare(pattern, 300, &mut random));
    let (matched, decided) = counts.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
    assert!(
        all.is_empty() || (all.len() > 150 && matched > 1000 && decided > 1000),
        "{} {matched} {decided}",
        all.len()
    );
}

#[test]
fn gives_up_in_time() {
    // Every place begins what may be a match and runs to the end of the value.
    let starts = Starts::new(";[^x]*x", b"").unwrap();
    assert!(matches!(starts.search(&b";".repeat(4000), 0, &mut 0), Found::Open(_)));
    assert_eq!(starts.search(b"--;abcx", 0, &mut 0), Found::Match(2, 7));
    assert_eq!(Starts::new("[a-z]+=", b"").map(|_| ()), None);
}

#[test]
fn leaves_out_what_needs_an_absent_byte() {
    let reduced = |pattern: &str| {
        let hir = syntax::parse_with(pattern, &super::super::syntax()).unwrap();
        reduced(&hir, b"\\$").map(|hir| hir.to_string())
    };
    let plain = |pattern: &str| syntax::parse_with(pattern, &super::super::syntax()).unwrap().to_string();
    assert_eq!(reduced("(?:[a-z ]*\\x5c)?cat"), Some(plain("cat")));
    assert_eq!(reduced("a(?:b|c\\x24)d"), Some(plain("abd")));
    assert_eq!(reduced("[\\x24x]+"), Some(plain("x+")));
    assert_eq!(reduced("a\\x5c"), None);
    assert_eq!(reduced("(?:\\x24){2}"), None);
}
