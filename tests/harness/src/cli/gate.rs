//! What a pipeline goes by: that something was read, and all of it.

/// Its arguments.
#[derive(Debug, clap::Args)]
pub(super) struct Gate {
    /// Entries that cannot be read do not make the exit code 1
    #[arg(long)]
    allow_unreadable: bool,
}

impl Gate {
    /// Whether a pipeline may go on after this many requests, with entries of sources that cannot be read. Says why it may not.
    ///
    /// # Errors
    ///
    /// There was no request, so that nothing is known.
    pub(super) fn passes(&self, requests: u64, done: &str, unreadable: &[(&str, u64)]) -> Result<bool, String> {
        let bad: u64 = unreadable.iter().map(|(_, count)| count).sum();
        if requests == 0 {
            let rest = match bad {
                0 => "there are none".to_owned(),
                _ => format!("{} could not be read", told(unreadable)),
            };
            return Err(format!("no request was {done}: {rest}"));
        }
        let passes = bad == 0 || self.allow_unreadable;
        if !passes {
            eprintln!(
                "palisade-replay: {} could not be read, which makes the exit code 1; --allow-unreadable lets them pass",
                told(unreadable)
            );
        }
        Ok(passes)
    }
}

/// `2 entries of a.json, 1 entry of b.json`.
fn told(unreadable: &[(&str, u64)]) -> String {
    let some = unreadable.iter().filter(|(_, count)| *count > 0);
    let each = some.map(|(name, count)| format!("{count} {} of {name}", if *count == 1 { "entry" } else { "entries" }));
    each.collect::<Vec<_>>().join(", ")
}
