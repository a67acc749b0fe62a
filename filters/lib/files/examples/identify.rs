//! What files are by their content, as the upload guard sees it: `identify FILE...` prints a word for each.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a tool for tests")]

fn main() {
    for path in std::env::args().skip(1) {
        println!("{path}\t{}", files::identify(&std::fs::read(&path).unwrap()));
    }
}
