//! Rule presets: what `@import_preset` imports.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::LazyLock;

use seclang::{DataFiles, ENGINE_CONF, Source};

static PACK: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/crs.pack"));

static CRS: LazyLock<Preset> = LazyLock::new(Preset::unpack);

/// The source of a preset that sets the engine up and guards it: what it refuses is what cannot be read.
pub const ENGINE_SOURCE: &str = "engine.conf";

/// The presets that exist, by name.
pub const NAMES: [&str; 1] = ["crs"];

/// The preset of that name; see [`NAMES`].
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Preset> {
    (name == "crs").then(|| &*CRS)
}

/// The data files of all presets, for rules of users as well.
#[must_use]
pub fn data_files() -> &'static dyn DataFiles {
    &*CRS
}

/// A set of rule files that came with this build.
pub struct Preset {
    version: String,
    files: BTreeMap<String, Vec<u8>>,
}

impl Preset {
    /// The release of the rule set, such as `4.28.0`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Its rules in loading order: the engine's configuration, the setup, the rule files by name.
    #[must_use]
    pub fn sources(&self) -> Vec<Source> {
        let source = |origin: &str, text: &[u8]| Source { origin: origin.to_owned(), text: text.to_vec() };
        let setup = self.files.get("crs-setup.conf").map(|text| source("crs-setup.conf", text));
        let rules = self.files.iter().filter_map(|(name, text)| {
            let file = name.strip_prefix("rules/").filter(|file| file.ends_with(".conf"))?;
            Some(source(file, text))
        });
        std::iter::once(source(ENGINE_SOURCE, ENGINE_CONF.as_bytes())).chain(setup).chain(rules).collect()
    }

    fn unpack() -> Self {
        let mut bytes = Vec::new();
        // The pack is made by this crate's own build: what cannot be read of it is a rule set without those files, and
        // the tests of this module would not have passed.
        let _ = flate2::read::GzDecoder::new(PACK).read_to_end(&mut bytes);
        let mut files = BTreeMap::new();
        let mut rest = bytes.as_slice();
        while let Some((name, content, behind)) = file(rest) {
            files.insert(String::from_utf8_lossy(name).into_owned(), content.to_vec());
            rest = behind;
        }
        let version = files.get("VERSION").map(|text| String::from_utf8_lossy(text).trim().to_owned());
        Self { version: version.unwrap_or_default(), files }
    }
}

fn file(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (name, rest) = bytes.split_first_chunk::<4>()?;
    let (content, rest) = rest.split_first_chunk::<4>()?;
    let length = |bytes: &[u8; 4]| usize::try_from(u32::from_le_bytes(*bytes)).ok();
    let (name, rest) = rest.split_at_checked(length(name)?)?;
    let (content, rest) = rest.split_at_checked(length(content)?)?;
    Some((name, content, rest))
}

impl DataFiles for Preset {
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        // Rules name their data files relative to themselves; a path that leads elsewhere names none of ours.
        let file = name.strip_prefix("./").unwrap_or(name);
        self.files.get(&format!("rules/{file}")).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_rule_set_is_in_the_binary() {
        let crs = by_name("crs").unwrap();
        assert!(crs.version().starts_with(['3', '4']), "{}", crs.version());
        let origins: Vec<String> = crs.sources().into_iter().map(|source| source.origin).collect();
        assert_eq!(origins[..2], ["engine.conf", "crs-setup.conf"]);
        assert!(origins.iter().any(|origin| origin.starts_with("REQUEST-949")), "{origins:?}");
        assert!(crs.read("unix-shell.data").is_some_and(|data| data.len() > 1000));
        assert_eq!(crs.read("../VERSION"), None);
        assert!(by_name("nothing").is_none());
    }
}
