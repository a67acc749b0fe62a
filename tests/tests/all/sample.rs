//! What `make test` leaves out, as `tests/nextest.toml` has it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use palisade_tests::parts;

#[test]
fn what_is_left_out_are_tests_that_exist() {
    let settings = fs::read_to_string(parts::root().join("tests/nextest.toml")).unwrap();
    let mut functions = BTreeSet::new();
    for folder in ["control-plane", "filters", "tests"] {
        collect(&parts::root().join(folder), &mut functions);
    }
    let named: Vec<&str> = settings.split("test(=").skip(1).map(|rest| rest.split(')').next().unwrap()).collect();
    assert!(named.len() > 20);
    for name in named {
        let function = name.rsplit("::").next().unwrap();
        assert!(functions.contains(function), "tests/nextest.toml leaves out {name}, and there is no such test");
    }
}

/// The names of the functions in the `.rs` files of a folder.
fn collect(folder: &Path, functions: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            collect(&path, functions);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let names = text.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
            functions.extend(names.map(str::to_owned));
        }
    }
}
