//! Many real documents: each compiles or stands in the list with the reason, and the path of each operation leads to it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::compile::{Options, compile};
use crate::{Contract, Found};

/// `FILE: what is to be found there`, one in each line; `#` begins a remark.
const LISTED: &str = include_str!("documents.txt");

/// The folders of `PALISADE_CONTRACT_DOCUMENTS`, parted by colons: what differs from the list is shown.
#[test]
fn real_documents_compile_and_their_paths_lead_to_themselves() {
    let Some(folders) = std::env::var_os("PALISADE_CONTRACT_DOCUMENTS") else {
        println!("skipped: PALISADE_CONTRACT_DOCUMENTS names no folders of OpenAPI documents");
        return;
    };
    let mut files = Vec::new();
    for folder in std::env::split_paths(&folders) {
        collect(&folder, &mut files);
    }
    files.sort();
    assert!(!files.is_empty(), "{folders:?} hold no documents");
    let (mut found, mut operations, mut compiled) = (BTreeMap::new(), 0, 0);
    for (name, file) in &files {
        let outcome = examine(&std::fs::read_to_string(file).unwrap());
        match outcome {
            Ok((count, ambiguous)) => {
                operations += count;
                compiled += 1;
                for one in ambiguous {
                    found.insert(format!("{name}: {one}"), ());
                }
            }
            Err(error) => drop(found.insert(format!("{name}: {error}"), ())),
        }
    }
    println!("{} documents, {compiled} compile; {operations} operations", files.len());
    let listed: Vec<&str> = LISTED.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let unlisted: Vec<&String> = found.keys().filter(|one| !listed.contains(&one.as_str())).collect();
    let names = |line: &str| files.iter().any(|(name, _)| line.starts_with(&format!("{name}: ")));
    let gone: Vec<&&str> = listed.iter().filter(|line| names(line) && !found.contains_key(**line)).collect();
    assert!(unlisted.is_empty() && gone.is_empty(), "not in the list:\n{}\nonly in the list: {gone:#?}", {
        let all: Vec<&str> = unlisted.iter().map(|line| line.as_str()).collect();
        all.join("\n")
    });
}

fn collect(folder: &Path, files: &mut Vec<(String, PathBuf)>) {
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            collect(&entry, files);
        } else if entry.extension().is_some_and(|kind| kind == "json" || kind == "yaml") {
            let shown = entry.display().to_string();
            // A package's name is part of it.
            let name = shown.rsplit("node_modules/").next().unwrap_or(&shown).to_owned();
            files.push((name, entry));
        }
    }
}

/// The number of operations, and what is ambiguous; or why it does not compile.
fn examine(text: &str) -> Result<(usize, Vec<String>), String> {
    compile(text, "", Options { responses: true }).map_err(|error| error.to_string())?;
    let compiled = compile(text, "/", Options::default()).map_err(|error| error.to_string())?;
    let contract = Contract::open(&compiled.image)?;
    let mut ambiguous = Vec::new();
    for operation in &compiled.operations {
        let own = format!("{} {}", operation.method, operation.path);
        let found = match contract.find(operation.method.as_bytes(), operation.path.as_bytes(), false) {
            Found::Operation(matched) => contract.label(matched.operation),
            other => format!("{other:?}"),
        };
        if found != own {
            ambiguous.push(format!("{own} leads to {found}"));
        }
    }
    Ok((compiled.operations.len(), ambiguous))
}
