//! Fills `fuzz/corpus` from the checked-in seeds, the core rule set (`PALISADE_CRS_DIR`) and the payloads of its
//! regression tests (`PALISADE_CRS_TESTS`): `cargo run --example corpus` in this folder. What is there already stays.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use palisade_fuzz::bodies::{Files, TARGETS};
use seclang::operator::OperatorKind;
use seclang::transform::Transform;
use seclang::{Engine, Source};
use serde::Deserialize;

/// Seeds longer than this slow a fuzzer down more than they show it, in bytes.
const LONGEST: usize = 8 * 1024;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut corpus = Corpus { root: root.join("corpus"), added: BTreeMap::new() };
    for (target, _) in TARGETS {
        for seed in files(&root.join("seeds").join(target)) {
            corpus.add(target, &std::fs::read(seed).expect("a seed can be read"));
        }
    }
    rules(&mut corpus, include_str!("../rules.conf"));
    if let Some(folder) = std::env::var_os("PALISADE_CRS_DIR") {
        for path in files(&Path::new(&folder).join("rules")).into_iter().filter(|path| has_extension(path, "conf")) {
            rules(&mut corpus, &String::from_utf8_lossy(&std::fs::read(path).expect("a rule file can be read")));
        }
    }
    if let Some(folder) = std::env::var_os("PALISADE_CRS_TESTS") {
        tests(&mut corpus, Path::new(&folder));
    }
    for (target, count) in &corpus.added {
        println!("{target}: {count} seeds");
    }
}

struct Corpus {
    root: PathBuf,
    added: BTreeMap<String, usize>,
}

impl Corpus {
    fn add(&mut self, target: &str, seed: &[u8]) {
        if seed.len() > LONGEST {
            return;
        }
        let folder = self.root.join(target);
        std::fs::create_dir_all(&folder).expect("the corpus can be written");
        // The name follows from the content: running this again adds nothing twice.
        let name: String = Transform::Sha1.apply(seed).iter().map(|byte| format!("{byte:02x}")).collect();
        std::fs::write(folder.join(name), seed).expect("the corpus can be written");
        *self.added.entry(target.to_owned()).or_default() += 1;
    }
}

/// Each block of directives between blank lines: as text, compiled, and its patterns alone.
fn rules(corpus: &mut Corpus, text: &str) {
    for block in text.split("\n\n") {
        let code: Vec<&str> = block.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
        let code = code.join("\n");
        if !code.contains("Sec") {
            continue;
        }
        corpus.add("parser", code.as_bytes());
        if let Ok(program) = seclang::compile(&[Source::new("seed", code.as_bytes())], &Files)
            && Engine::new(program.clone()).is_ok()
        {
            corpus.add("snapshot", &program.encode());
        }
        for (operator, kind) in [("\"@rx ", None), ("\"@pm ", Some(OperatorKind::Pm))] {
            for (at, _) in code.match_indices(operator) {
                let argument = code[at + operator.len()..].split("\" ").next().unwrap_or_default();
                let argument = argument.split("\"\n").next().unwrap_or_default();
                match kind {
                    Some(kind) => {
                        corpus.add("operators", format!("{}\0{argument}\0a {argument}", kind.code() as char).as_bytes())
                    }
                    None => corpus.add("regex", format!("\x02{argument}\0select 1 from x where <a b='c'>").as_bytes()),
                }
            }
        }
    }
}

#[derive(Deserialize)]
struct TestFile {
    tests: Vec<Test>,
}

#[derive(Deserialize)]
struct Test {
    stages: Vec<Stage>,
}

#[derive(Deserialize)]
struct Stage {
    input: Input,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Input {
    method: Option<String>,
    uri: Option<String>,
    version: Option<String>,
    headers: BTreeMap<String, String>,
    data: Option<String>,
}

fn tests(corpus: &mut Corpus, folder: &Path) {
    for path in files(folder) {
        if path.is_dir() {
            tests(corpus, &path);
        } else if has_extension(&path, "yaml") || has_extension(&path, "yml") {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            match serde_saphyr::from_str::<TestFile>(&text) {
                Ok(file) => {
                    file.tests.iter().flat_map(|test| &test.stages).for_each(|stage| input(corpus, &stage.input))
                }
                Err(error) => eprintln!("{}: {error}", path.display()),
            }
        }
    }
}

fn input(corpus: &mut Corpus, input: &Input) {
    let or = |value: &Option<String>, other: &str| value.clone().unwrap_or_else(|| other.to_owned());
    let (uri, data) = (or(&input.uri, "/"), or(&input.data, ""));
    let content_type = input.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let content_type = content_type.map(|(_, value)| value.as_str()).unwrap_or_default();
    let mut request = format!("{} {uri} {}\n", or(&input.method, "GET"), or(&input.version, "HTTP/1.1"));
    for (name, value) in &input.headers {
        request.push_str(&format!("{name}: {value}\n"));
    }
    request.push('\n');
    request.push_str(&data);
    // Choices: the core rule set with gates, our own rules with and without, the first half of each body.
    for choice in ["\0", "\x03", "\x44"] {
        corpus.add("transaction", format!("{choice}{request}").as_bytes());
    }
    if let Some((_, query)) = uri.split_once('?') {
        corpus.add("urlencoded", format!("\0{query}").as_bytes());
        payload(corpus, query);
    }
    if data.is_empty() {
        return;
    }
    payload(corpus, &data);
    if content_type.starts_with("multipart/") {
        corpus.add("multipart", format!("\0{content_type}\n{data}").as_bytes());
    } else if content_type.contains("json") {
        corpus.add("json", format!("\x02{data}").as_bytes());
    } else if content_type.contains("xml") {
        corpus.add("xml", format!("\x01{data}").as_bytes());
    } else {
        corpus.add("urlencoded", format!("\0{data}").as_bytes());
    }
}

/// What an attack looks like, for the targets that take one value.
fn payload(corpus: &mut Corpus, text: &str) {
    corpus.add("transformations", format!("\0{text}").as_bytes());
    let codes = [Transform::UrlDecodeUni, Transform::HtmlEntityDecode, Transform::JsDecode, Transform::CmdLine];
    let decoded = Transform::UrlDecodeUni.apply(text.as_bytes()).into_owned();
    corpus.add("transformations", &[&[4][..], &codes.map(Transform::code), text.as_bytes()].concat());
    for kind in [OperatorKind::DetectSqli, OperatorKind::DetectXss] {
        corpus.add("operators", &[&[kind.code(), 0, 0][..], &decoded].concat());
    }
    let mut encoder = flate2::write::ZlibEncoder::new(vec![1], flate2::Compression::best());
    if encoder.write_all(&decoded).is_ok() {
        corpus.add("decode", &encoder.finish().unwrap_or_default());
    }
    let mut encoder = flate2::write::GzEncoder::new(vec![0], flate2::Compression::best());
    if encoder.write_all(&decoded).is_ok() {
        corpus.add("decode", &encoder.finish().unwrap_or_default());
    }
}

/// What a folder holds, sorted; nothing if there is no such folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}
