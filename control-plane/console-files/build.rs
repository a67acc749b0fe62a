//! Compiles the crate again when a file comes to `dist` or goes: the names are read by a macro.

fn main() {
    println!("cargo::rerun-if-changed=dist");
}
