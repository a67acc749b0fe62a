//! What plugins make of the large parts of a snapshot, and keep from one snapshot to the next.

use std::any::Any;
use std::collections::HashMap;
use std::rc::Rc;

use snapshot::{PartHash, content_hash};

use crate::{Chain, KeysTable, RangesTable, Tables};

/// Where a part that was left out on the way is not at hand either.
const LEFT_OUT: &str =
    "the snapshot leaves out a part that this gateway does not have; the control plane sends all of it again";

/// What was made of the parts of one snapshot, by hash. It lives as long as its chain.
#[derive(Default)]
pub(crate) struct Parts {
    made: HashMap<PartHash, Box<dyn Any>>,
    pub(crate) loaded: Loaded,
}

/// Finds the data of a part by its hash, which a snapshot names and does not bring; `None` where it is not there either.
pub type FindPart<'a> = dyn Fn(&PartHash) -> Option<Vec<u8>> + 'a;

/// Where the parts of a chain came from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Parts that were decoded.
    pub decoded: u32,
    /// Parts that an earlier chain had decoded already.
    pub reused: u32,
}

/// What is at hand while plugins are made: the parts of the snapshot, and what an earlier step, or a chain that still
/// lives, made of the same part.
pub struct Build<'a> {
    parts: HashMap<&'a [u8], &'a [u8]>,
    /// Finds a part that the snapshot names and does not bring.
    find: &'a FindPart<'a>,
    earlier: &'a [Rc<Chain>],
    tables: Rc<Tables>,
    made: Parts,
}

impl<'a> Build<'a> {
    /// From the parts of a snapshot, for a worker without tables.
    #[must_use]
    pub fn new(parts: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Self {
        Self::after(parts, &|_| None, &[], Rc::default())
    }

    /// The same for a worker that has these tables, as tests of plugins need it.
    #[must_use]
    pub fn with_tables(mut self, tables: Rc<Tables>) -> Self {
        self.tables = tables;
        self
    }

    /// From the parts of a snapshot and where to find those that it leaves out, the chains whose parts may be used again, and the
    /// worker's tables.
    pub(crate) fn after(
        parts: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        find: &'a FindPart<'a>,
        earlier: &'a [Rc<Chain>],
        tables: Rc<Tables>,
    ) -> Self {
        Self { parts: parts.collect(), find, earlier, tables, made: Parts::default() }
    }

    /// The table of address ranges with this name, which the control plane keeps up to date from now on.
    ///
    /// # Errors
    ///
    /// As of [`Tables::ranges`].
    pub fn ranges(&self, name: &str) -> Result<RangesTable, String> {
        self.tables.ranges(name)
    }

    /// The table of keys with this name, which the control plane keeps up to date from now on.
    ///
    /// # Errors
    ///
    /// As of [`Tables::ranges`].
    pub fn keys(&self, name: &str) -> Result<KeysTable, String> {
        self.tables.keys(name)
    }

    /// What `make` makes of the part with that hash: made once, however many steps share it and however many snapshots
    /// have it one after the other. So `make` must depend on nothing but the bytes that it is given; what differs from step
    /// to step belongs into the plugin.
    ///
    /// # Errors
    ///
    /// Where the snapshot does not name the part, it is nowhere, or does not have the hash; or what `make` says.
    pub fn shared<T: Clone + Any>(
        &mut self,
        hash: &[u8],
        make: impl FnOnce(&[u8]) -> Result<T, String>,
    ) -> Result<T, String> {
        let key: PartHash = hash.try_into().map_err(|_| "a step names a part by something that is no SHA-256")?;
        if let Some(made) = self.made.get(&key) {
            return Ok(made);
        }
        let data = self.parts.get(hash).ok_or("the snapshot lacks a part that one of its steps names")?;
        let loaded = &mut self.made.loaded;
        let made = match self.earlier.iter().find_map(|chain| chain.parts.get(&key)) {
            Some(made) => {
                loaded.reused = loaded.reused.saturating_add(1);
                made
            }
            None => {
                let found = if data.is_empty() { (self.find)(&key) } else { None };
                let data = found.as_deref().unwrap_or(data);
                if content_hash(data) != key {
                    let lacks = data.is_empty();
                    return Err(
                        if lacks { LEFT_OUT } else { "a part of the snapshot does not have its hash" }.to_owned()
                    );
                }
                loaded.decoded = loaded.decoded.saturating_add(1);
                make(data)?
            }
        };
        self.made.made.insert(key, Box::new(made.clone()));
        Ok(made)
    }

    /// What was made.
    pub(crate) fn finish(self) -> Parts {
        self.made
    }
}

impl Parts {
    fn get<T: Clone + Any>(&self, key: &PartHash) -> Option<T> {
        self.made.get(key)?.downcast_ref::<T>().cloned()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use snapshot::{Part, Snapshot, Step};

    use super::*;
    use crate::{Plugin, PluginDefinition};

    thread_local! {
        static MADE: Cell<u32> = const { Cell::new(0) };
    }

    struct Sized(#[allow(dead_code, reason = "held, so that it lives")] Rc<usize>);

    impl Plugin for Sized {}

    const REGISTRY: &[PluginDefinition] = &[PluginDefinition::new("sized", |config, build| {
        let made = build.shared(config, |bytes| {
            MADE.set(MADE.get() + 1);
            Ok(Rc::new(bytes.len()))
        })?;
        Ok(Box::new(Sized(made)))
    })];

    fn snapshot(texts: &[&str]) -> Snapshot {
        let part = |text: &&str| Part { hash: content_hash(text.as_bytes()).to_vec(), data: text.as_bytes().to_vec() };
        let parts: Vec<Part> = texts.iter().map(part).collect();
        let step = |part: &Part| Step { plugin: "sized".into(), config: part.hash.clone(), ..Step::default() };
        // Each part is named by two steps.
        let global = parts.iter().chain(&parts).map(step).collect();
        Snapshot { global, parts, ..Snapshot::default() }
    }

    fn load(texts: &[&str], earlier: &[Rc<Chain>]) -> Rc<Chain> {
        Rc::new(Chain::load_after(&snapshot(texts), REGISTRY, &|_| None, earlier, &Rc::default()).unwrap())
    }

    #[test]
    fn a_part_that_an_earlier_chain_has_is_not_made_again() {
        let first = load(&["a", "b"], &[]);
        assert_eq!((first.loaded(), MADE.get()), (Loaded { decoded: 2, reused: 0 }, 2));
        let second = load(&["b", "changed"], &[first]);
        assert_eq!((second.loaded(), MADE.get()), (Loaded { decoded: 1, reused: 1 }, 3));
        // Of the first chain nothing is left but what the second has of it.
        let third = load(&["a", "b"], &[second]);
        assert_eq!((third.loaded(), MADE.get()), (Loaded { decoded: 1, reused: 1 }, 4));
    }

    #[test]
    fn a_part_of_another_content_than_its_hash_is_refused() {
        let mut wrong = snapshot(&["a"]);
        wrong.parts[0].data = b"b".to_vec();
        let error = Chain::load(&wrong, REGISTRY).err().unwrap().to_string();
        assert!(error.contains("does not have its hash"), "{error}");
    }

    #[test]
    fn a_part_that_was_left_out_is_found_where_it_is_kept_or_refused() {
        let mut slim = snapshot(&["a", "b"]);
        slim.parts[0].data.clear();
        let error = Chain::load(&slim, REGISTRY).err().unwrap().to_string();
        assert!(error.contains("leaves out a part"), "{error}");
        let kept = |kept: &'static [u8]| move |hash: &PartHash| (*hash == content_hash(b"a")).then(|| kept.to_vec());
        let found = Chain::load_after(&slim, REGISTRY, &kept(b"a"), &[], &Rc::default()).unwrap();
        assert_eq!(found.loaded(), Loaded { decoded: 2, reused: 0 });
        let damaged = Chain::load_after(&slim, REGISTRY, &kept(b"x"), &[], &Rc::default());
        assert!(damaged.err().unwrap().to_string().contains("does not have its hash"));
        // What a chain that lives has made of it needs no bytes.
        let reused = Chain::load_after(&slim, REGISTRY, &|_| None, &[Rc::new(found)], &Rc::default()).unwrap();
        assert_eq!(reused.loaded(), Loaded { decoded: 0, reused: 2 });
    }
}
