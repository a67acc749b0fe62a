//! E-mail addresses, counted: one is ordinary, hundreds in one answer are an export.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::{Detector, Finding, byte};
use crate::escapes::{escape_at, rest_of_escape};

/// The longest local part and domain that are read, in bytes (RFC 5321, section 4.5.3.1).
const LOCAL: usize = 64;
const DOMAIN: usize = 255;

/// The addresses of one text.
pub(super) struct Emails {
    threshold: usize,
    /// Hashes of distinct addresses, no more than the threshold needs.
    distinct: HashSet<u64>,
    found: Vec<Finding>,
}

impl Emails {
    pub(super) fn new(threshold: usize) -> Self {
        Self { threshold: threshold.max(1), distinct: HashSet::new(), found: Vec::new() }
    }

    /// Takes the address around an `@`, if one is there.
    pub(super) fn take(&mut self, text: &[u8], at: usize) {
        let Some((start, end)) = around(text, at) else { return };
        if self.found.last().is_some_and(|last| last.end > start) {
            return;
        }
        if self.distinct.len() < self.threshold {
            let mut hasher = DefaultHasher::new();
            text.get(start..end).unwrap_or_default().to_ascii_lowercase().hash(&mut hasher);
            self.distinct.insert(hasher.finish());
        }
        self.found.push(Finding { detector: Detector::EmailBulk, start, end });
    }

    /// All addresses if there are enough of them, otherwise none.
    pub(super) fn into_findings(self) -> Vec<Finding> {
        if self.distinct.len() >= self.threshold { self.found } else { Vec::new() }
    }
}

fn around(text: &[u8], at: usize) -> Option<(usize, usize)> {
    let before = text.get(at.saturating_sub(LOCAL)..at)?;
    let is_local = |byte: &u8| byte.is_ascii_alphanumeric() || b"._%+-".contains(byte);
    let local = before.iter().rev().take_while(|byte| is_local(byte)).count();
    let is_domain = |byte: &&u8| byte.is_ascii_alphanumeric() || b".-".contains(byte);
    let after = text.get(at + 1..)?;
    let domain = after.iter().take(DOMAIN).take_while(is_domain).count();
    // A sentence may end behind an address.
    let domain = after.get(..domain)?;
    let domain = domain.strip_suffix(b".").unwrap_or(domain);
    let dot = memchr::memrchr(b'.', domain)?;
    let top = domain.get(dot + 1..)?;
    let named = top.len() >= 2 && top.iter().all(u8::is_ascii_alphabetic) && dot > 0;
    let end = at + 1 + domain.len();
    // The letters of an escape in front (`\n`, `\u003c`, `%3C`) are none of the address.
    let start = at - local;
    let start = start + rest_of_escape(text, start);
    let escape = escape_at(text, start).filter(|escape| !escape.ascii().is_some_and(|code| is_local(&code)));
    let start = start + escape.map_or(0, |escape| escape.length);
    (start < at && named && byte(text, end) != b'@').then_some((start, end))
}
