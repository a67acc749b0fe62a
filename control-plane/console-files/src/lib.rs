//! The built files of the web console, each with its media type, its `ETag` and its compressed forms.
//!
//! The sources are in `console/`; `make console` builds `dist` from them, so that `cargo build` needs no Node.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rust_embed::{EmbeddedFile, RustEmbed};

/// The name of the page that every path of the console shows.
pub const PAGE: &str = "index.html";

/// Bytes of the SHA-256 that are in an `ETag`.
const TAG_BYTES: usize = 16;

#[derive(RustEmbed)]
#[folder = "dist"]
struct Dist;

/// How a representation is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// Brotli, `br` in headers (RFC 7932).
    Brotli,
    /// Gzip (RFC 1952).
    Gzip,
    /// Not at all.
    Identity,
}

/// The bytes of a file in one coding.
#[derive(Clone, Debug)]
pub struct Representation {
    /// The coding.
    pub coding: Coding,
    /// The bytes as they are sent.
    pub bytes: Cow<'static, [u8]>,
    /// A strong `ETag` (RFC 9110, 8.8.3), in quotes: another one for each coding.
    pub etag: String,
}

/// A file of the console.
#[derive(Clone, Debug)]
pub struct File {
    /// The value of `content-type`.
    pub media_type: &'static str,
    /// Whether its name has a hash of its content, so that it never changes.
    pub is_immutable: bool,
    /// Brotli, gzip and the plain bytes, in this order.
    pub representations: Vec<Representation>,
}

/// All files, by their names below `/console/`.
#[must_use]
pub fn files() -> BTreeMap<String, File> {
    let names = Dist::iter().filter(|name| !name.ends_with(".br") && !name.ends_with(".gz"));
    names.map(|name| (name.to_string(), file(&name))).collect()
}

fn file(name: &str) -> File {
    let codings = [(Coding::Brotli, ".br"), (Coding::Gzip, ".gz"), (Coding::Identity, "")];
    let found = codings.into_iter().filter_map(|(coding, end)| Some((coding, Dist::get(&format!("{name}{end}"))?)));
    let representations =
        found.map(|(coding, file)| Representation { coding, etag: etag(&file), bytes: file.data }).collect();
    File { media_type: media_type(name), is_immutable: is_hashed(name), representations }
}

fn etag(file: &EmbeddedFile) -> String {
    let hash = file.metadata.sha256_hash();
    let hex: String = hash.iter().take(TAG_BYTES).map(|byte| format!("{byte:02x}")).collect();
    format!("\"{hex}\"")
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("png") => "image/png",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

/// Names of the bundler end with a hash of eight capital letters and digits: `main-K3ZQ2A7B.js`.
fn is_hashed(name: &str) -> bool {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    stem.rsplit_once('-').is_some_and(|(_, hash)| {
        hash.len() == 8 && hash.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of the first page, compressed, at most.
    const FIRST_PAGE: usize = 150 * 1024;

    #[test]
    fn every_file_has_all_forms_and_a_media_type() {
        let files = files();
        assert!(files.contains_key(PAGE) && files.len() > 10, "{:?}", files.keys());
        for (name, file) in &files {
            let codings: Vec<Coding> = file.representations.iter().map(|form| form.coding).collect();
            assert_eq!(codings, [Coding::Brotli, Coding::Gzip, Coding::Identity], "{name}");
            assert_ne!(file.media_type, "application/octet-stream", "{name}");
            assert_eq!(file.is_immutable, name.contains('-'), "{name}");
            let tags: std::collections::BTreeSet<&str> =
                file.representations.iter().map(|form| form.etag.as_str()).collect();
            assert_eq!(tags.len(), 3, "{name}");
        }
    }

    #[test]
    fn the_first_page_is_small_and_has_no_inline_code() {
        let files = files();
        let page = files[PAGE].representations.last().unwrap();
        let page = String::from_utf8(page.bytes.to_vec()).unwrap();
        assert!(!page.contains("<style") && !page.contains("style=") && !page.contains("onload="), "{page}");
        assert_eq!(page.matches("<script").count(), page.matches("src=\"/console/").count(), "{page}");
        let named: usize = files
            .iter()
            .filter(|(name, _)| page.contains(name.as_str()))
            .map(|(_, file)| file.representations[0].bytes.len())
            .sum();
        assert!(named > 1000 && named < FIRST_PAGE, "{named}");
    }

    #[test]
    fn a_hash_in_a_name_is_recognized() {
        assert!(is_hashed("main-K3ZQ2A7B.js"));
        assert!(!is_hashed("index.html") && !is_hashed("main-short.js") && !is_hashed("licenses.txt"));
    }
}
