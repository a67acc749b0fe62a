//! What a worker says of its tables, until it is looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use snapshot::{KeptTable, KeptTables};
use tokio::sync::mpsc;
use tonic::Status;

/// The most tables of a worker, and the longest name of one in bytes: as many as filters keep.
pub(super) const MAX_TABLES: usize = 64;
pub(super) const MAX_NAME: usize = 128;
/// The longest reason of a refusal, in bytes.
const MAX_REFUSED: usize = 1024;
/// The bytes of a state.
const STATE: usize = 32;

/// The last word of a worker, with what earlier ones have said and were not looked at.
#[derive(Debug, Default)]
pub(super) struct Word {
    pub(super) kept: KeptTables,
    /// The tables that it did not keep meanwhile: they begin anew.
    pub(super) anew: BTreeSet<String>,
}

impl Word {
    /// This word, and then that one.
    fn then(self, mut kept: KeptTables) -> Word {
        let Word { kept: earlier, mut anew } = self;
        let mut earlier: BTreeMap<String, KeptTable> =
            earlier.tables.into_iter().map(|table| (table.name.clone(), table)).collect();
        for table in &mut kept.tables {
            match earlier.remove(&table.name).filter(|before| before.kind == table.kind) {
                // What it refused is still to come.
                Some(before) if table.refused.is_empty() => table.refused = before.refused,
                Some(_) => {}
                None => drop(anew.insert(table.name.clone())),
            }
        }
        anew.retain(|name| kept.tables.iter().any(|table| table.name == *name));
        Word { kept, anew }
    }
}

/// Where the words of a worker wait: one of them, whatever it says.
pub(super) struct Words {
    pending: Arc<Mutex<Option<Word>>>,
    wake: mpsc::Sender<()>,
}

/// Who looks at them.
pub(super) struct Listener {
    pending: Arc<Mutex<Option<Word>>>,
    wake: mpsc::Receiver<()>,
}

/// Both ends.
pub(super) fn words() -> (Words, Listener) {
    let (wake, woken) = mpsc::channel(1);
    let pending = Arc::default();
    (Words { pending: Arc::clone(&pending), wake }, Listener { pending, wake: woken })
}

impl Words {
    /// The worker says what it has.
    pub(super) fn say(&self, kept: KeptTables) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        *pending = Some(match pending.take() {
            Some(earlier) => earlier.then(kept),
            None => Word { kept, anew: BTreeSet::new() },
        });
        // One that is full wakes the listener as well.
        let _woken = self.wake.try_send(());
    }
}

impl Listener {
    /// The next word; `None` once no more can come.
    pub(super) async fn next(&mut self) -> Option<Word> {
        loop {
            self.wake.recv().await?;
            if let Some(word) = self.pending.lock().unwrap_or_else(PoisonError::into_inner).take() {
                return Some(word);
            }
        }
    }
}

/// Refuses what no worker says: the control plane keeps the last word of each.
///
/// # Errors
///
/// `invalid_argument`, with what is wrong.
pub(crate) fn check(kept: &KeptTables) -> Result<(), Status> {
    let wrong = |what: &str| Err(Status::invalid_argument(format!("a worker that keeps {what}")));
    if kept.tables.len() > MAX_TABLES {
        return wrong("more tables than there are");
    }
    for table in &kept.tables {
        if table.name.len() > MAX_NAME {
            return wrong("a table with too long a name");
        }
        if !matches!(table.state.len(), 0 | STATE) {
            return wrong("a table whose state has another length than a state");
        }
        if table.refused.len() > MAX_REFUSED {
            return wrong("a table with too long a reason for a refusal");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str, kind: i32, state: u8, refused: &str) -> KeptTable {
        KeptTable { name: name.into(), kind, state: vec![state; STATE], refused: refused.into() }
    }

    fn word(tables: &[KeptTable]) -> KeptTables {
        KeptTables { tables: tables.to_vec() }
    }

    #[tokio::test]
    async fn the_last_word_counts_with_the_refusals_of_those_before() {
        let (words, mut listener) = words();
        words.say(word(&[table("a", 0, 1, "damaged"), table("b", 0, 1, "old"), table("gone", 0, 1, "")]));
        words.say(word(&[table("a", 0, 2, ""), table("b", 0, 2, "new")]));
        let Word { kept, anew } = listener.next().await.unwrap();
        assert_eq!(kept, word(&[table("a", 0, 2, "damaged"), table("b", 0, 2, "new")]));
        assert!(anew.is_empty());
        words.say(word(&[table("a", 0, 3, "")]));
        assert_eq!(listener.next().await.unwrap().kept, word(&[table("a", 0, 3, "")]), "each refusal once");
        drop(words);
        assert!(listener.next().await.is_none());
    }

    #[tokio::test]
    async fn a_table_that_was_not_kept_meanwhile_begins_anew() {
        let (words, mut listener) = words();
        for tables in [vec![table("a", 0, 1, "x"), table("b", 0, 1, "")], vec![], vec![table("a", 0, 2, "")]] {
            words.say(KeptTables { tables });
        }
        words.say(word(&[table("a", 0, 2, ""), table("b", 1, 2, "")]));
        let Word { kept, anew } = listener.next().await.unwrap();
        assert_eq!(kept, word(&[table("a", 0, 2, ""), table("b", 1, 2, "")]), "its refusal is of one that is gone");
        assert_eq!(anew, ["a", "b"].map(str::to_owned).into());
    }

    #[test]
    fn filters_keep_as_many_tables_with_as_long_names() {
        assert_eq!((MAX_TABLES, MAX_NAME), (exchange::MAX_TABLES, exchange::MAX_TABLE_NAME));
    }
}
