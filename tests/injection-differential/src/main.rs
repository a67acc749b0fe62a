//! Compares `@detectSQLi` and `@detectXSS` with libinjection, reading by reading, on values that are made and on given ones.
//!
//! ```text
//! injection-differential --library FILE [--sql N] [--html N] [--seed N] [PAYLOADS...]
//! injection-differential --library FILE --texts PATHS...
//! ```
//!
//! `FILE` is a shared library that exports libinjection: libmodsecurity does. `PAYLOADS` are files or folders: of JSON, an
//! array of strings that are query strings; of CSV, the first column; of anything else, a value in each line. With
//! `--texts`, the paths are honest texts: how many of them are found is printed, and nothing is compared.

mod html;
mod library;
mod payloads;
mod random;
mod sql;
mod tally;
mod texts;

use std::path::PathBuf;
use std::process::ExitCode;

use library::Libinjection;

fn main() -> ExitCode {
    let (mut library, mut sql, mut html, mut seed) = (None, 1_000_000, 1_000_000, 1);
    let (mut given, mut are_texts) = (Vec::new(), false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let number = |arguments: &mut dyn Iterator<Item = String>| {
            arguments
                .next()
                .and_then(|number| number.parse().ok())
                .unwrap_or_else(|| panic!("{argument} takes a number"))
        };
        match argument.as_str() {
            "--library" => library = arguments.next().map(PathBuf::from),
            "--sql" => sql = number(&mut arguments),
            "--html" => html = number(&mut arguments),
            "--seed" => seed = number(&mut arguments),
            "--texts" => are_texts = true,
            path => given.push(PathBuf::from(path)),
        }
    }
    let path = library.expect("--library FILE is needed");
    let library = Libinjection::load(&path).expect("the library exports libinjection");
    println!("{}: libinjection {}", path.display(), library.version());
    if are_texts {
        texts::measure(&library, &given);
        return ExitCode::SUCCESS;
    }
    let given: Vec<Vec<u8>> = given.iter().flat_map(|path| payloads::read(path)).collect();
    let sql = sql::compare(&library, sql, seed as u64, &given);
    sql.print();
    let html = html::compare(&library, html, seed as u64, &given);
    html.print();
    if sql.is_clean() && html.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
