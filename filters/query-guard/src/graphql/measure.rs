//! How large an operation is once its fragments are put in: each fragment is measured once, so that fragments that multiply cost nothing.

use std::collections::HashMap;

use super::document::{Document, MAX_NESTING, Selection};

/// Sizes of a selection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) depth: u64,
    pub(crate) fields: u64,
    pub(crate) aliases: u64,
    pub(crate) directives: u64,
}

/// Why a document cannot be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unmeasured {
    /// A fragment contains itself.
    Cycle,
    /// Fragments are nested too deeply.
    TooDeep,
    /// There is no fragment of a name.
    UnknownFragment,
}

/// The sizes of the fragments of a document.
pub(crate) struct Measure<'d, 'a> {
    document: &'d Document<'a>,
    by_name: HashMap<&'a str, usize>,
    known: Vec<State>,
}

#[derive(Clone, Copy)]
enum State {
    New,
    UnderWay,
    Measured(Size),
}

impl Size {
    fn add(&mut self, other: Self) {
        self.depth = self.depth.max(other.depth);
        self.fields = self.fields.saturating_add(other.fields);
        self.aliases = self.aliases.saturating_add(other.aliases);
        self.directives = self.directives.saturating_add(other.directives);
    }

    /// The larger one in each respect.
    fn max(self, other: Self) -> Self {
        Self {
            depth: self.depth.max(other.depth),
            fields: self.fields.max(other.fields),
            aliases: self.aliases.max(other.aliases),
            directives: self.directives.max(other.directives),
        }
    }
}

impl<'d, 'a> Measure<'d, 'a> {
    pub(crate) fn new(document: &'d Document<'a>) -> Self {
        let by_name = document.fragments.iter().enumerate().map(|(place, fragment)| (fragment.name, place)).collect();
        Self { document, by_name, known: vec![State::New; document.fragments.len()] }
    }

    /// The largest sizes of all operations and fragments: servers parse and validate fragments that no operation uses, too. With an error
    /// of the first definition that cannot be measured, beside the sizes of the others.
    pub(crate) fn largest(&mut self) -> (Size, Result<(), Unmeasured>) {
        let (mut largest, mut outcome) = (Size::default(), Ok(()));
        let mut take = |measured: Result<Size, Unmeasured>| match measured {
            Ok(size) => largest = largest.max(size),
            Err(error) => outcome = outcome.and(Err(error)),
        };
        // After an error, fragments stay under way: each later one that uses them would be called a cycle.
        for place in 0..self.document.fragments.len() {
            let measured = self.fragment(place, 0);
            take(measured);
            if measured.is_err() {
                break;
            }
        }
        (0..self.document.operations.len()).for_each(|place| take(self.operation(place)));
        (largest, outcome)
    }

    /// The size of an operation.
    fn operation(&mut self, place: usize) -> Result<Size, Unmeasured> {
        let Some(operation) = self.document.operations.get(place) else { return Ok(Size::default()) };
        let mut size = self.selection(&operation.selection, 0)?;
        let of_variables = operation.variables.iter().map(|variable| &variable.directives);
        for directives in of_variables.chain([&operation.directives]) {
            size.directives = size.directives.saturating_add(count(directives.len()));
        }
        Ok(size)
    }

    fn selection(&mut self, selection: &'d [Selection<'a>], nested: usize) -> Result<Size, Unmeasured> {
        // The stack of the VM is small: nesting through fragments counts as nesting does.
        if nested > 2 * MAX_NESTING {
            return Err(Unmeasured::TooDeep);
        }
        let mut total = Size::default();
        for part in selection {
            match part {
                Selection::Field(field) => {
                    let mut size = self.selection(&field.selection, nested + 1)?;
                    size.depth = size.depth.saturating_add(1);
                    size.fields = size.fields.saturating_add(1);
                    size.aliases = size.aliases.saturating_add(u64::from(field.alias.is_some()));
                    size.directives = size.directives.saturating_add(count(field.directives.len()));
                    total.add(size);
                }
                Selection::Inline { directives, selection, .. } => {
                    let mut size = self.selection(selection, nested + 1)?;
                    size.directives = size.directives.saturating_add(count(directives.len()));
                    total.add(size);
                }
                Selection::Spread { name, directives } => {
                    let place = self.by_name.get(name).copied().ok_or(Unmeasured::UnknownFragment)?;
                    let mut size = self.fragment(place, nested + 1)?;
                    size.directives = size.directives.saturating_add(count(directives.len()));
                    total.add(size);
                }
            }
        }
        Ok(total)
    }

    fn fragment(&mut self, place: usize, nested: usize) -> Result<Size, Unmeasured> {
        let (Some(state), Some(fragment)) = (self.known.get(place).copied(), self.document.fragments.get(place)) else {
            return Ok(Size::default());
        };
        match state {
            State::Measured(size) => return Ok(size),
            State::UnderWay => return Err(Unmeasured::Cycle),
            State::New => {}
        }
        self.set(place, State::UnderWay);
        let mut size = self.selection(&fragment.selection, nested)?;
        size.directives = size.directives.saturating_add(count(fragment.directives.len()));
        self.set(place, State::Measured(size));
        Ok(size)
    }

    fn set(&mut self, place: usize, state: State) {
        if let Some(known) = self.known.get_mut(place) {
            *known = state;
        }
    }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
