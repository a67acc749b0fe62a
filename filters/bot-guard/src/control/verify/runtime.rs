//! What the console shows of the verification.

use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use super::super::directories::DirectoryShown;
use super::super::fingerprints::Pairs;
use super::super::ranges::ListShown;

/// The verification at work in a control plane.
#[derive(Debug, Default)]
pub(in super::super) struct Verification {
    state: Mutex<Option<VerificationState>>,
    lists: Mutex<Vec<ListShown>>,
    directories: Mutex<Vec<DirectoryShown>>,
    /// The pairs of TLS fingerprint and software.
    pub(in super::super) fingerprints: Pairs,
}

/// How the verification is going.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(in super::super) struct VerificationState {
    /// The resolvers that are asked.
    pub(in super::super) resolvers: Vec<String>,
    /// Why they fail; `None` while they work.
    pub(in super::super) error: Option<String>,
    /// Verdicts by what was found.
    pub(in super::super) verified: usize,
    pub(in super::super) impersonators: usize,
    pub(in super::super) unverifiable: usize,
    /// Crawlers that wait for their verification.
    pub(in super::super) waiting: usize,
    /// Crawlers that were not taken in, because too many waited.
    pub(in super::super) dropped: u64,
}

impl Verification {
    /// How it was going a moment ago; `None` where nothing is verified.
    pub(in super::super) fn state(&self) -> Option<VerificationState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The lists of published addresses as they were a moment ago, by URL.
    pub(in super::super) fn lists(&self) -> Vec<ListShown> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(in super::super) fn show_lists(&self, lists: Vec<ListShown>) {
        *self.lists.lock().unwrap_or_else(PoisonError::into_inner) = lists;
    }

    /// The key directories as they were a moment ago, by identifier.
    pub(in super::super) fn directories(&self) -> Vec<DirectoryShown> {
        self.directories.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(in super::super) fn show_directories(&self, directories: Vec<DirectoryShown>) {
        *self.directories.lock().unwrap_or_else(PoisonError::into_inner) = directories;
    }

    pub(super) fn show(&self, state: VerificationState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
    }
}
