//! Schemas as the validator wants them: what a record says is read once, and most values need a look at two or three fields.

use std::cell::{OnceCell, RefCell};

use crate::choice::Choice;
use crate::compiled::Contract;
use crate::format::Format;
use crate::json::{Document, Kind};
use crate::number::Number;
use crate::pattern::{KnownMatcher, Matcher};
use crate::record::{SchemaRecord, types};

/// The most required names whose presence is noted while members are looked at; others are searched for.
const MAX_NOTED: usize = 64;

/// What a schema has keywords for.
pub(crate) mod has {
    /// Nothing is valid.
    pub(crate) const NEVER: u32 = 1;
    /// Null is valid, whatever else is asked for.
    pub(crate) const NULLABLE: u32 = 2;
    /// `enum`, `const`.
    pub(crate) const VALUES: u32 = 4;
    /// Keywords for texts.
    pub(crate) const TEXT: u32 = 8;
    /// Keywords for numbers.
    pub(crate) const NUMBER: u32 = 16;
    /// Keywords for objects.
    pub(crate) const OBJECT: u32 = 32;
    /// Keywords for arrays.
    pub(crate) const ARRAY: u32 = 64;
    /// Schemas for the same value.
    pub(crate) const IN_PLACE: u32 = 128;
    /// `unevaluatedProperties`, `unevaluatedItems`.
    pub(crate) const UNEVALUATED: u32 = 256;
    /// Objects are looked at member by member.
    pub(crate) const MEMBERS: u32 = 512;
    /// Other schemas are part of it.
    pub(crate) const COMPOUND: u32 = OBJECT | ARRAY | IN_PLACE | UNEVALUATED;
}

/// A schema, with what its record holds as text.
pub(crate) struct Schema {
    /// Bits of [`has`].
    pub(crate) flags: u32,
    /// The types that a value may have.
    types: u32,
    pub(crate) names: Names,
    /// Of the names, those that must be there in a request and in a response.
    pub(crate) due: [u64; 2],
    /// Names that must be there and are not among the noted ones.
    pub(crate) unnoted: [Box<[u32]>; 2],
    pub(crate) format: Option<Format>,
    pub(crate) values: Option<Box<Values>>,
    pub(crate) minimum: Option<Number>,
    pub(crate) maximum: Option<Number>,
    pub(crate) above: Option<Number>,
    pub(crate) below: Option<Number>,
    pub(crate) multiple_of: Option<Number>,
    /// Its pattern, as long as the contract keeps it.
    pattern: RefCell<KnownMatcher>,
    /// What tells the alternatives of `anyOf` and of `oneOf` apart.
    choices: [OnceCell<Option<Box<Choice>>>; 2],
    pub(crate) record: SchemaRecord,
}

/// The values of `enum`.
pub(crate) struct Values {
    pub(crate) all: Document<'static>,
    /// The texts among them, in order.
    pub(crate) texts: Box<[Box<[u8]>]>,
}

impl Schema {
    /// Takes a record.
    pub(crate) fn of(mut record: SchemaRecord, contract: &Contract) -> Self {
        let number = |text: &Option<Vec<u8>>| text.as_deref().and_then(Number::read);
        let (names, due, unnoted) = Names::of(&record, contract);
        let values =
            record.values.take().and_then(|text| Document::read(text).ok()).map(|all| Box::new(Values::of(all)));
        let mut schema = Self {
            flags: 0,
            types: record.types,
            names,
            due,
            unnoted,
            format: Format::numbered(record.format),
            values,
            minimum: number(&record.minimum),
            maximum: number(&record.maximum),
            above: number(&record.above),
            below: number(&record.below),
            multiple_of: number(&record.multiple_of),
            pattern: RefCell::default(),
            choices: [OnceCell::new(), OnceCell::new()],
            record,
        };
        schema.flags = schema.flags();
        // What they hold is in the names now.
        schema.record.properties = Vec::new();
        schema.record.required = Vec::new();
        schema
    }

    fn flags(&self) -> u32 {
        let record = &self.record;
        let members = !self.names.is_empty()
            || !record.pattern_properties.is_empty()
            || record.additional_properties.is_some()
            || record.property_names.is_some();
        let objects = members
            || self.unnoted.iter().any(|names| !names.is_empty())
            || !record.dependent_required.is_empty()
            || !record.dependent_schemas.is_empty()
            || record.min_properties.is_some()
            || record.max_properties.is_some();
        let arrays = !record.prefix_items.is_empty()
            || record.items.is_some()
            || record.contains.is_some()
            || record.unique_items
            || record.min_items.is_some()
            || record.max_items.is_some();
        let texts = record.min_length.is_some()
            || record.max_length.is_some()
            || record.pattern.is_some()
            || self.format.is_some();
        let numbers = self.minimum.is_some()
            || self.maximum.is_some()
            || self.above.is_some()
            || self.below.is_some()
            || self.multiple_of.is_some()
            || self.format.is_some();
        let in_place = record.reference.is_some()
            || record.dynamic_reference.is_some()
            || !record.all_of.is_empty()
            || !record.any_of.is_empty()
            || !record.one_of.is_empty()
            || record.not.is_some()
            || record.condition.is_some();
        let unevaluated = record.unevaluated_properties.is_some() || record.unevaluated_items.is_some();
        let all = [
            (record.never, has::NEVER),
            (record.nullable, has::NULLABLE),
            (self.values.is_some(), has::VALUES),
            (texts, has::TEXT),
            (numbers, has::NUMBER),
            (objects, has::OBJECT),
            (members, has::MEMBERS),
            (arrays, has::ARRAY),
            (in_place, has::IN_PLACE),
            (unevaluated, has::UNEVALUATED),
        ];
        all.iter().filter(|(is, _)| *is).fold(0, |flags, (_, flag)| flags | flag)
    }

    /// Whether it has something of [`has`].
    #[inline]
    pub(crate) fn has(&self, flags: u32) -> bool {
        self.flags & flags != 0
    }

    /// Whether a value of a kind has one of the types.
    #[inline]
    pub(crate) fn takes_type(&self, value: crate::json::Value<'_>) -> bool {
        let allowed = self.types;
        if allowed == 0 {
            return true;
        }
        match value.kind() {
            Kind::Null => allowed & types::NULL != 0,
            Kind::True | Kind::False => allowed & types::BOOLEAN != 0,
            Kind::Object => allowed & types::OBJECT != 0,
            Kind::Array => allowed & types::ARRAY != 0,
            Kind::String => allowed & types::STRING != 0,
            Kind::Number => {
                allowed & types::NUMBER != 0
                    || (allowed & types::INTEGER != 0
                        && (value.is_plain()
                            || (allowed & types::STRICT_INTEGER == 0
                                && value.number().is_some_and(Number::is_integer))))
            }
        }
    }

    /// The alternatives of `anyOf` that a value may match: those that a property does not rule out.
    pub(crate) fn any_of<'s>(&'s self, value: crate::json::Value<'_>, contract: &Contract) -> &'s [u32] {
        let [any_of, _] = &self.choices;
        left(&self.record.any_of, any_of, value, contract)
    }

    /// The same of `oneOf`.
    pub(crate) fn one_of<'s>(&'s self, value: crate::json::Value<'_>, contract: &Contract) -> &'s [u32] {
        let [_, one_of] = &self.choices;
        left(&self.record.one_of, one_of, value, contract)
    }

    /// The names that must be there in requests and in responses.
    pub(crate) fn names_due(&self) -> impl Iterator<Item = u32> {
        let [request, response] = self.due;
        self.names.of_bits(request & response)
    }

    /// Its compiled pattern, as of [`Contract::pattern`].
    pub(crate) fn pattern(&self, contract: &Contract) -> (Option<Matcher>, usize) {
        let Some(entry) = self.record.pattern else { return (None, 0) };
        let known = self.pattern.borrow().matcher();
        if known.is_some() {
            return (known, 0);
        }
        let (made, compiled) = contract.pattern(entry);
        if let Some(made) = &made {
            self.pattern.replace(made.known());
        }
        (made, compiled)
    }
}

fn left<'s>(
    branches: &'s [u32],
    choice: &'s OnceCell<Option<Box<Choice>>>,
    value: crate::json::Value<'_>,
    contract: &Contract,
) -> &'s [u32] {
    if value.kind() != Kind::Object {
        return branches;
    }
    let choice = choice.get_or_init(|| Choice::of(branches, contract).map(Box::new));
    choice.as_ref().map_or(branches, |choice| choice.left(value, contract))
}

impl Values {
    fn of(all: Document<'static>) -> Self {
        let elements = all.root().elements().filter(|value| value.kind() == Kind::String);
        let mut texts: Vec<Box<[u8]>> = elements.map(|value| value.string().into()).collect();
        texts.sort_unstable();
        Self { all, texts: texts.into() }
    }
}

/// The names that a schema knows: those of its properties, and those that must be there.
#[derive(Default)]
pub(crate) struct Names {
    known: Box<[Name]>,
    /// Places in `known`, plus one, by the hash of the name; 0 is free. Empty where names are searched for in their order.
    slots: Box<[u32]>,
    /// Places in `known` of names with a property, in the order of [`names::compare`]. Made for the first member in another case.
    folded: OnceCell<Box<[usize]>>,
}

/// A name.
#[derive(Clone, Copy)]
pub(crate) struct Name {
    key: Key,
    /// Its text.
    text: u32,
    /// Where its text is in the image.
    start: u32,
    end: u32,
    /// The schema of the property; `u32::MAX` without one.
    schema: u32,
    /// The bit of a name that must be there.
    pub(crate) bit: u64,
}

impl Name {
    /// The schema of the property.
    #[inline]
    pub(crate) fn schema(&self) -> Option<u32> {
        (self.schema != u32::MAX).then_some(self.schema)
    }
}

impl Names {
    /// So many slots in turn are looked at for a name; where that is not enough, names are searched for in their order.
    const MAX_PROBES: usize = 16;

    /// The names of a record, and which of them must be there: in a request, in a response. What has no bit is returned apart.
    fn of(record: &SchemaRecord, contract: &Contract) -> (Self, [u64; 2], [Box<[u32]>; 2]) {
        let mut known: Vec<Name> = Vec::with_capacity(record.properties.len());
        let name = |text: u32, schema: u32| {
            let (start, end) = contract.text_place(text);
            Name { key: Key::of(contract.text(text)), text, start, end, schema, bit: 0 }
        };
        known.extend(record.properties.iter().map(|property| name(property.name, property.schema)));
        known.sort_by(|one, two| contract.text(one.text).cmp(contract.text(two.text)));
        let (mut bits, mut due) = (0, [0, 0]);
        let mut unnoted = [Vec::new(), Vec::new()];
        let sides: [(&[u32], &[usize]); 3] =
            [(&record.required, &[0, 1]), (&record.required_write, &[0]), (&record.required_read, &[1])];
        for (required, sides) in sides {
            for text in required {
                let place = match known.binary_search_by(|own| contract.text(own.text).cmp(contract.text(*text))) {
                    Ok(place) => place,
                    Err(place) => {
                        known.insert(place, name(*text, u32::MAX));
                        place
                    }
                };
                let Some(own) = known.get_mut(place) else { continue };
                if own.bit == 0 && bits < MAX_NOTED {
                    own.bit = 1 << bits;
                    bits += 1;
                }
                for side in sides.iter().copied() {
                    if let (Some(due), Some(unnoted)) = (due.get_mut(side), unnoted.get_mut(side)) {
                        *due |= own.bit;
                        if own.bit == 0 {
                            unnoted.push(*text);
                        }
                    }
                }
            }
        }
        let known: Box<[Name]> = known.into();
        let slots = Self::slots(&known).unwrap_or_default();
        (Self { known, slots, folded: OnceCell::new() }, due, unnoted.map(Vec::into_boxed_slice))
    }

    fn slots(known: &[Name]) -> Option<Box<[u32]>> {
        if known.is_empty() {
            return None;
        }
        let size = (known.len() * 2).next_power_of_two();
        let mut slots = vec![0; size];
        for (place, name) in (1..).zip(known) {
            let first = name.key.hash();
            let free = (0..Self::MAX_PROBES)
                .map(|step| first.wrapping_add(step) & (size - 1))
                .find(|slot| slots.get(*slot) == Some(&0))?;
            *slots.get_mut(free)? = place;
        }
        Some(slots.into())
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Finds a name.
    #[inline]
    pub(crate) fn find(&self, text: &[u8], contract: &Contract) -> Option<&Name> {
        let Some(mask) = self.slots.len().checked_sub(1) else {
            let found = self.known.binary_search_by(|own| contract.slice(own.start, own.end).cmp(text));
            return found.ok().and_then(|place| self.known.get(place));
        };
        let key = Key::of(text);
        let mut at = key.hash();
        for _ in 0..Self::MAX_PROBES {
            let place = usize::try_from(*self.slots.get(at & mask)?).ok()?.checked_sub(1)?;
            let name = self.known.get(place)?;
            if name.key == key && (text.len() <= WHOLE || contract.slice(name.start, name.end) == text) {
                return Some(name);
            }
            at = at.wrapping_add(1);
        }
        None
    }

    /// The schemas of the properties that backends may take a name for which ignore its case.
    pub(crate) fn in_other_case<'n>(
        &'n self,
        text: &'n [u8],
        contract: &'n Contract,
    ) -> impl Iterator<Item = u32> + use<'n> {
        let own = move |place: usize| -> &'n [u8] {
            self.known.get(place).map_or(&[], |name| contract.slice(name.start, name.end))
        };
        let folded = self.folded.get_or_init(|| {
            let names = self.known.iter().enumerate().filter(|(_, name)| name.schema().is_some());
            let mut places: Vec<usize> = names.map(|(place, _)| place).collect();
            places.sort_by(|one, two| names::compare(own(*one), own(*two)));
            places.into()
        });
        let first = folded.partition_point(|place| names::compare(own(*place), text).is_lt());
        let same = folded.get(first..).unwrap_or_default().iter();
        let same = same.take_while(move |place| names::equal(own(**place), text));
        same.filter_map(move |place| self.known.get(*place)?.schema())
    }

    /// The first of the names that must be there whose bits are given.
    pub(crate) fn of_bits(&self, bits: u64) -> impl Iterator<Item = u32> {
        self.known.iter().filter(move |name| name.bit & bits != 0).map(|name| name.text)
    }
}

/// So many bytes a key says all of.
const WHOLE: usize = 16;

/// The length of a text, its first and its last eight bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    first: u64,
    last: u64,
    length: usize,
}

impl Key {
    #[inline]
    fn of(text: &[u8]) -> Self {
        let (first, last) = match (text.first_chunk::<8>(), text.last_chunk::<8>()) {
            (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
            _ => match (text.first_chunk::<4>(), text.last_chunk::<4>()) {
                (Some(first), Some(last)) => (u32::from_le_bytes(*first).into(), u32::from_le_bytes(*last).into()),
                _ => (text.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)), 0),
            },
        };
        Self { first, last, length: text.len() }
    }

    /// A number for it.
    #[inline]
    fn hash(self) -> usize {
        let length = u64::try_from(self.length).unwrap_or(0);
        let mixed = (self.first ^ self.last.rotate_left(29) ^ length).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        usize::try_from(mixed >> 40).unwrap_or(0)
    }
}
