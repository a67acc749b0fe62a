//! Making a base of ranges that overlap.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::address::{Address, Span};
use super::layout::{LabelWidth, Row, Rows, encode};
use super::{MAX_LABEL, MAX_LABELS};
use crate::{BaseError, MAX_BASE, MAX_ROWS, OpError};

/// A range and who claims it.
#[derive(Debug, Clone, Copy)]
struct Claim<A> {
    first: A,
    last: A,
    by: u32,
}

/// Claims of both families.
#[derive(Debug, Clone, Default)]
struct Claims {
    v4: Vec<Claim<u32>>,
    v6: Vec<Claim<u128>>,
}

impl Claims {
    fn add(&mut self, first: IpAddr, last: IpAddr, by: u32) -> Result<(), OpError> {
        match Span::new(first, last)? {
            Span::V4(first, last) => self.v4.push(Claim { first, last, by }),
            Span::V6(first, last) => self.v6.push(Claim { first, last, by }),
        }
        Ok(())
    }

    /// The base in which each address has the label of those that claim it, without its names.
    fn flatten(
        self,
        width: LabelWidth,
        mut label: impl FnMut(&BTreeMap<u32, usize>) -> Option<u32>,
    ) -> Result<(Rows<u32>, Rows<u128>), BaseError> {
        let v4 = flatten(self.v4, width, &mut label).ok_or(BaseError::TooLarge)?;
        let v6 = flatten(self.v6, width, &mut label).ok_or(BaseError::TooLarge)?;
        if v4.count() + v6.count() > MAX_ROWS { Err(BaseError::TooLarge) } else { Ok((v4, v6)) }
    }
}

/// Sweeps over the ends of all claims; `label` sees who claims the addresses between two of them, and how often. `None` if it has
/// no label for them, or there are too many rows.
fn flatten<A: Address>(
    mut by_first: Vec<Claim<A>>,
    width: LabelWidth,
    label: &mut impl FnMut(&BTreeMap<u32, usize>) -> Option<u32>,
) -> Option<Rows<A>> {
    by_first.sort_unstable_by_key(|claim| claim.first);
    let mut by_last = by_first.clone();
    by_last.sort_unstable_by_key(|claim| claim.last);
    let mut starting = by_first.iter().peekable();
    let mut ending = by_last.iter().peekable();
    let mut active: BTreeMap<u32, usize> = BTreeMap::new();
    let mut rows = Rows::new(width, by_first.len());
    let mut next = starting.peek().map(|claim| claim.first);
    while let Some(first) = next {
        while let Some(claim) = starting.next_if(|claim| claim.first <= first) {
            *active.entry(claim.by).or_default() += 1;
        }
        let before_start = starting.peek().and_then(|claim| claim.first.before());
        if active.is_empty() {
            next = starting.peek().map(|claim| claim.first);
            continue;
        }
        // Some claim is active, so one ends: here, or behind the start of the next.
        let Some(last) = ending.peek().map(|claim| claim.last).into_iter().chain(before_start).min() else { break };
        rows.push(Row { first, last, label: label(&active)? });
        if rows.count() > MAX_ROWS {
            return None;
        }
        while let Some(claim) = ending.next_if(|claim| claim.last <= last) {
            if let Some(count) = active.get_mut(&claim.by) {
                *count -= 1;
                if *count == 0 {
                    active.remove(&claim.by);
                }
            }
        }
        next = last.next();
    }
    Some(rows)
}

/// Makes a base of labelled ranges: countries, autonomous systems. Where ranges overlap, the one that was added last counts.
#[derive(Debug, Clone)]
pub struct RangesBuilder {
    width: LabelWidth,
    claims: Claims,
    /// The label of each claim.
    labels: Vec<u32>,
    names: Names,
}

/// The names of labels, each at the place that its label says.
#[derive(Debug, Clone, Default)]
struct Names(Vec<Vec<u8>>);

impl Names {
    fn set(&mut self, label: u32, name: &[u8]) -> Result<(), OpError> {
        let place = usize::try_from(label).ok().filter(|_| label < MAX_LABELS && name.len() <= MAX_LABEL);
        let place = place.ok_or(OpError::Label)?;
        if self.0.len() <= place {
            self.0.resize(place + 1, Vec::new());
        }
        if let Some(slot) = self.0.get_mut(place) {
            *slot = name.to_vec();
        }
        Ok(())
    }

    /// The base of these rows.
    fn base(&self, (v4, v6): (Rows<u32>, Rows<u128>)) -> Result<Vec<u8>, BaseError> {
        let base = encode(v4, v6, self.0.iter().map(Vec::as_slice));
        if base.len() > MAX_BASE { Err(BaseError::TooLarge) } else { Ok(base) }
    }
}

impl RangesBuilder {
    /// A base whose labels have this width.
    #[must_use]
    pub fn new(width: LabelWidth) -> Self {
        Self { width, claims: Claims::default(), labels: Vec::new(), names: Names::default() }
    }

    /// Gives every address from `first` to `last` this label.
    ///
    /// # Errors
    ///
    /// [`OpError::Range`] unless both are of one family and in order, [`OpError::Label`] for a label that is too large.
    pub fn set(&mut self, first: IpAddr, last: IpAddr, label: u32) -> Result<(), OpError> {
        if label > self.width.largest() {
            return Err(OpError::Label);
        }
        let place = u32::try_from(self.labels.len()).map_err(|_| OpError::Range)?;
        self.claims.add(first, last, place)?;
        self.labels.push(label);
        Ok(())
    }

    /// Names a label: at most [`MAX_LABEL`] bytes, for a label below [`MAX_LABELS`].
    ///
    /// # Errors
    ///
    /// [`OpError::Label`] beyond these limits.
    pub fn name(&mut self, label: u32, name: &[u8]) -> Result<(), OpError> {
        self.names.set(label, name)
    }

    /// The base.
    ///
    /// # Errors
    ///
    /// [`BaseError::TooLarge`] beyond [`MAX_ROWS`] or [`MAX_BASE`].
    pub fn build(self) -> Result<Vec<u8>, BaseError> {
        let rows = self.claims.flatten(self.width, |active| {
            let (place, _) = active.last_key_value()?;
            self.labels.get(*place as usize).copied()
        })?;
        self.names.base(rows)
    }
}

/// Makes a base of the ranges of several sources, such as feeds. Where ranges overlap, the label names all sources: its name is
/// their names in order, with commas between them.
#[derive(Debug, Clone, Default)]
pub struct SourceBuilder {
    claims: Claims,
    sets: SourceSets,
}

/// Which label each set of sources has in a base, see [`SourceBuilder::build_after`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceLabels(BTreeMap<Vec<u8>, u32>);

#[derive(Debug, Clone, Default)]
struct SourceSets {
    sources: Vec<String>,
    /// The label of each set of sources, and the names of labels.
    labels: BTreeMap<Vec<u32>, u32>,
    names: Names,
}

impl SourceSets {
    fn label(&mut self, active: &BTreeMap<u32, usize>) -> Option<u32> {
        let set: Vec<u32> = active.keys().copied().collect();
        if let Some(label) = self.labels.get(&set) {
            return Some(*label);
        }
        let label = u32::try_from(self.labels.len()).ok()?;
        let mut names: Vec<&str> =
            set.iter().filter_map(|at| self.sources.get(*at as usize)).map(String::as_str).collect();
        names.sort_unstable();
        self.names.set(label, names.join(",").as_bytes()).ok()?;
        self.labels.insert(set, label);
        Some(label)
    }

    /// The final number of each label: that of its set before, or one that no set had.
    fn numbers(&self, before: &SourceLabels) -> Vec<u32> {
        let taken: BTreeSet<u32> = before.0.values().copied().collect();
        let mut free = (0..MAX_LABELS).filter(|number| !taken.contains(number));
        let names = self.names.0.iter();
        let kept: Option<Vec<u32>> = names.map(|name| before.0.get(name).copied().or_else(|| free.next())).collect();
        kept.unwrap_or_else(|| (0..MAX_LABELS).take(self.names.0.len()).collect())
    }
}

impl SourceBuilder {
    /// The number of a source, whose name has no comma.
    ///
    /// # Errors
    ///
    /// [`OpError::Label`] for a name with a comma, or beyond [`MAX_LABEL`] bytes.
    pub fn source(&mut self, name: &str) -> Result<u32, OpError> {
        let known = self.sets.sources.iter().position(|source| source == name);
        let place = known.unwrap_or(self.sets.sources.len());
        let number = u32::try_from(place).map_err(|_| OpError::Label)?;
        if known.is_none() {
            if name.contains(',') || name.len() > MAX_LABEL {
                return Err(OpError::Label);
            }
            self.sets.sources.push(name.to_owned());
        }
        Ok(number)
    }

    /// Adds the range of a source, by the number that [`SourceBuilder::source`] gave.
    ///
    /// # Errors
    ///
    /// [`OpError::Range`] unless both addresses are of one family and in order.
    pub fn add(&mut self, source: u32, first: IpAddr, last: IpAddr) -> Result<(), OpError> {
        self.claims.add(first, last, source)
    }

    /// The base, with labels of two bytes.
    ///
    /// # Errors
    ///
    /// [`BaseError::TooLarge`] beyond [`MAX_ROWS`] or [`MAX_BASE`], for more than [`MAX_LABELS`] different sets of sources, or for
    /// one whose names take more than [`MAX_LABEL`] bytes.
    pub fn build(self) -> Result<Vec<u8>, BaseError> {
        self.build_after(&SourceLabels::default()).map(|(base, _)| base)
    }

    /// The base that follows one with the labels `before`, and its own labels: a set of sources that both have keeps its label, and no
    /// label of the one before has another meaning, so that a small change of the ranges is a small delta that leads to it safely. Where
    /// there are too few labels for that, they begin anew, and only the base leads there.
    ///
    /// # Errors
    ///
    /// As of [`SourceBuilder::build`].
    pub fn build_after(mut self, before: &SourceLabels) -> Result<(Vec<u8>, SourceLabels), BaseError> {
        let (mut v4, mut v6) = self.claims.flatten(LabelWidth::Two, |active| self.sets.label(active))?;
        let numbers = self.sets.numbers(before);
        v4.relabel(&numbers);
        v6.relabel(&numbers);
        let (mut names, mut labels) = (Names::default(), BTreeMap::new());
        for (name, number) in self.sets.names.0.into_iter().zip(numbers) {
            names.set(number, &name).map_err(|_| BaseError::TooLarge)?;
            labels.insert(name, number);
        }
        Ok((names.base((v4, v6))?, SourceLabels(labels)))
    }
}
