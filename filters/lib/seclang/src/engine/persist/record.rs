//! One record of a persistent collection: its variables, and the bytes it is stored as.

use crate::engine::limits::{RECORD_LENGTH, RECORD_NAME_LENGTH, RECORD_VARIABLES};
use crate::operator::integer;

/// The version of the encoding; a record of another version counts as absent.
const VERSION: u8 = 1;
/// The length of the head of a record: version, two times, counter, timeout.
const HEAD: usize = 1 + 8 + 8 + 4 + 4;
/// The length of a variable besides its name and its value: two lengths, two times.
const OVERHEAD: usize = 1 + 2 + 8 + 8;

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    /// When it was made, milliseconds since 1970.
    pub(super) created: u64,
    /// When it was last written, milliseconds since 1970.
    pub(super) updated: u64,
    /// How many transactions wrote to it.
    pub(super) counter: u32,
    /// How many seconds it lives after the last write.
    pub(super) timeout: u32,
    pub(super) variables: Vec<StoredVariable>,
}

/// A variable of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredVariable {
    pub(super) name: Vec<u8>,
    pub(super) value: Vec<u8>,
    /// When it ends, milliseconds since 1970; 0 if it lives as long as the record.
    expires: u64,
    /// Up to when `deprecatevar` was settled, milliseconds since 1970.
    settled: u64,
}

/// A write of a rule to a variable of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Operation {
    Set(Vec<u8>, Vec<u8>),
    Add(Vec<u8>, i64),
    Remove(Vec<u8>),
    /// Expires it after a number of seconds.
    Expire(Vec<u8>, u64),
    /// Decreases it by an amount in every period, in seconds.
    Deprecate(Vec<u8>, i64, u64),
}

impl Operation {
    pub(super) fn name(&self) -> &[u8] {
        match self {
            Self::Set(name, _) | Self::Add(name, _) | Self::Remove(name) => name,
            Self::Expire(name, _) | Self::Deprecate(name, ..) => name,
        }
    }
}

impl Record {
    pub(super) fn new(now: u64, timeout: u32) -> Self {
        Self { created: now, updated: now, counter: 0, timeout, variables: Vec::new() }
    }

    /// When the record ends, milliseconds since 1970.
    pub(super) fn expires_at(&self) -> u64 {
        self.updated.saturating_add(u64::from(self.timeout) * 1000)
    }

    /// How often it was written, per minute since it was made.
    pub(super) fn rate(&self, now: u64) -> u64 {
        (u64::from(self.counter) * 60).checked_div(now.saturating_sub(self.created) / 1000).unwrap_or(0)
    }

    /// Applies an operation; `false` if the record would exceed its limits.
    pub(super) fn apply(&mut self, operation: &Operation, now: u64) -> bool {
        match operation {
            Operation::Set(name, value) if name.eq_ignore_ascii_case(b"timeout") => {
                self.timeout = u32::try_from(integer(value)).unwrap_or(self.timeout);
                true
            }
            Operation::Set(name, value) => self.set(name, value.clone(), now),
            Operation::Add(name, by) => {
                let before = self.place(name).and_then(|at| self.variables.get(at));
                let before = before.map_or(0, |kept| integer(&kept.value));
                self.set(name, before.saturating_add(*by).to_string().into_bytes(), now)
            }
            Operation::Remove(name) => {
                self.variables.retain(|kept| !kept.name.eq_ignore_ascii_case(name));
                true
            }
            Operation::Expire(name, seconds) => {
                if let Some(kept) = self.variable_mut(name) {
                    kept.expires = now.saturating_add(seconds.saturating_mul(1000)).max(1);
                }
                self.variables.retain(|kept| kept.lives(now));
                true
            }
            Operation::Deprecate(name, amount, period) => {
                let period = period.saturating_mul(1000);
                if let Some(kept) = self.variable_mut(name)
                    && let Some(periods @ 1..) = now.saturating_sub(kept.settled).checked_div(period)
                {
                    // The rest of a period counts for the next time.
                    kept.settled = kept.settled.saturating_add(periods.saturating_mul(period));
                    let by = amount.saturating_mul(i64::try_from(periods).unwrap_or(i64::MAX));
                    let value = integer(&kept.value);
                    kept.value = value.saturating_sub(by).max(value.min(0)).to_string().into_bytes();
                }
                true
            }
        }
    }

    fn place(&self, name: &[u8]) -> Option<usize> {
        self.variables.iter().position(|kept| kept.name.eq_ignore_ascii_case(name))
    }

    fn variable_mut(&mut self, name: &[u8]) -> Option<&mut StoredVariable> {
        self.variables.iter_mut().find(|kept| kept.name.eq_ignore_ascii_case(name))
    }

    fn set(&mut self, name: &[u8], value: Vec<u8>, now: u64) -> bool {
        let known = self.place(name);
        let before = known.and_then(|at| self.variables.get(at)).map_or(0, StoredVariable::length);
        let after = OVERHEAD + name.len() + value.len();
        let fits = name.len() <= RECORD_NAME_LENGTH
            && self.length() - before + after <= RECORD_LENGTH
            && (known.is_some() || self.variables.len() < RECORD_VARIABLES);
        if !fits {
            return false;
        }
        match known.and_then(|at| self.variables.get_mut(at)) {
            // A new value does not change when the variable ends, as in ModSecurity.
            Some(kept) => kept.value = value,
            None => self.variables.push(StoredVariable { name: name.to_vec(), value, expires: 0, settled: now }),
        }
        true
    }

    /// The length of the result of [`Record::encode`].
    fn length(&self) -> usize {
        HEAD + self.variables.iter().map(StoredVariable::length).sum::<usize>()
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.length());
        bytes.push(VERSION);
        bytes.extend(self.created.to_le_bytes());
        bytes.extend(self.updated.to_le_bytes());
        bytes.extend(self.counter.to_le_bytes());
        bytes.extend(self.timeout.to_le_bytes());
        for kept in &self.variables {
            let (Ok(name), Ok(value)) = (u8::try_from(kept.name.len()), u16::try_from(kept.value.len())) else {
                continue;
            };
            bytes.push(name);
            bytes.extend(value.to_le_bytes());
            bytes.extend(kept.expires.to_le_bytes());
            bytes.extend(kept.settled.to_le_bytes());
            bytes.extend_from_slice(&kept.name);
            bytes.extend_from_slice(&kept.value);
        }
        bytes
    }

    /// Reads what [`Record::encode`] wrote, without the variables that have ended. `None` if it is no record, or over.
    pub(super) fn decode(bytes: &[u8], now: u64) -> Option<Self> {
        let (&[version], rest) = bytes.split_first_chunk::<1>()?;
        let (created, rest) = rest.split_first_chunk()?;
        let (updated, rest) = rest.split_first_chunk()?;
        let (counter, rest) = rest.split_first_chunk()?;
        let (timeout, mut rest) = rest.split_first_chunk()?;
        let mut record = Self {
            created: u64::from_le_bytes(*created),
            updated: u64::from_le_bytes(*updated),
            counter: u32::from_le_bytes(*counter),
            timeout: u32::from_le_bytes(*timeout),
            variables: Vec::new(),
        };
        while let Some((kept, after)) = StoredVariable::decode(rest) {
            if kept.lives(now) {
                record.variables.push(kept);
            }
            rest = after;
        }
        (version == VERSION && record.expires_at() > now).then_some(record)
    }
}

impl StoredVariable {
    fn lives(&self, now: u64) -> bool {
        self.expires == 0 || self.expires > now
    }

    fn length(&self) -> usize {
        OVERHEAD + self.name.len() + self.value.len()
    }

    fn decode(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (&[name], rest) = bytes.split_first_chunk::<1>()?;
        let (value, rest) = rest.split_first_chunk()?;
        let (expires, rest) = rest.split_first_chunk()?;
        let (settled, rest) = rest.split_first_chunk()?;
        let (name, rest) = rest.split_at_checked(usize::from(name))?;
        let (value, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*value)))?;
        let kept = Self {
            name: name.to_vec(),
            value: value.to_vec(),
            expires: u64::from_le_bytes(*expires),
            settled: u64::from_le_bytes(*settled),
        };
        Some((kept, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, value: &str) -> Operation {
        Operation::Set(name.into(), value.into())
    }

    fn value(record: &Record, name: &str) -> Option<String> {
        let kept = record.variables.iter().find(|kept| kept.name == name.as_bytes())?;
        Some(String::from_utf8(kept.value.clone()).unwrap())
    }

    #[test]
    fn a_record_survives_its_encoding() {
        let mut record = Record::new(5000, 60);
        assert!(record.apply(&set("a", "text"), 5000) && record.apply(&Operation::Add("N".into(), -3), 5000));
        assert!(record.apply(&Operation::Expire("a".into(), 10), 5000));
        assert_eq!(Record::decode(&record.encode(), 5000).unwrap(), record);
        let later = Record::decode(&record.encode(), 15_000).unwrap();
        assert_eq!((value(&later, "a"), value(&later, "N").as_deref()), (None, Some("-3")));
        assert_eq!(Record::decode(&record.encode(), 65_000), None, "the whole record has ended");
        assert_eq!(Record::decode(b"", 0), None);
        assert_eq!(Record::decode(&record.encode()[..20], 0), None);
        assert_eq!(Record::decode(&[&[9], &record.encode()[1..]].concat(), 0), None, "another version");
    }

    #[test]
    fn a_new_value_keeps_the_end_of_a_variable() {
        let mut record = Record::new(0, 600);
        for operation in [set("a", "1"), Operation::Expire("A".into(), 10), Operation::Add("a".into(), 1)] {
            assert!(record.apply(&operation, 0));
        }
        assert_eq!(value(&Record::decode(&record.encode(), 9_999).unwrap(), "a").as_deref(), Some("2"));
        assert_eq!(value(&Record::decode(&record.encode(), 10_000).unwrap(), "a"), None);
    }

    #[test]
    fn deprecation_takes_off_once_for_each_period_and_ends_at_zero() {
        let mut record = Record::new(0, 600);
        assert!(record.apply(&set("score", "100"), 0));
        let lower = Operation::Deprecate("score".into(), 30, 60);
        let mut at = |now| {
            record.apply(&lower, now);
            value(&record, "score").unwrap()
        };
        assert_eq!([at(59_000), at(60_000), at(90_000), at(120_000)], ["100", "70", "70", "40"]);
        assert_eq!(at(600_000), "0");
        assert!(record.apply(&Operation::Deprecate("score".into(), 1, 0), 700_000), "no period, no change");
    }

    #[test]
    fn limits_hold() {
        let mut record = Record::new(0, 600);
        for at in 0..RECORD_VARIABLES {
            assert!(record.apply(&set(&format!("v{at}"), "x"), 0));
        }
        assert!(!record.apply(&set("one-more", "x"), 0));
        assert!(record.apply(&set("v0", "y"), 0), "what is there may change");
        assert!(!record.apply(&set("v0", &"x".repeat(RECORD_LENGTH)), 0));
        assert_eq!(value(&record, "v0").as_deref(), Some("y"));
        assert!(!record.apply(&set(&"n".repeat(RECORD_NAME_LENGTH + 1), "x"), 0));
        assert!(record.encode().len() <= RECORD_LENGTH);
        assert_eq!(record.encode().len(), record.length());
    }

    #[test]
    fn the_timeout_is_a_variable_too() {
        let mut record = Record::new(0, 600);
        assert!(record.apply(&set("TIMEOUT", "5"), 0));
        assert_eq!((record.expires_at(), record.variables.len()), (5000, 0));
    }
}
