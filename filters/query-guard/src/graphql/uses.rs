//! The variables that the definitions of a document use, and whether their operations declare them. An operation looks at each different
//! use once, however many fragments have it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::document::Value;
use super::schema::TypeRef;
use super::validate::quoted;

/// A use of a variable: its name, and the type of its place with whether that has a default; `None` at a place of any type.
type Use<'s, 'a> = (&'a str, Option<(&'s TypeRef, bool)>);

/// A variable of an operation.
pub(crate) struct Declared {
    pub(crate) of: TypeRef,
    /// It has a default that is not null.
    pub(crate) has_default: bool,
}

/// What a definition needs of its operation.
#[derive(Default)]
pub(crate) struct Needs<'s, 'a> {
    variables: BTreeSet<Use<'s, 'a>>,
    fragments: BTreeSet<usize>,
}

/// The needs of all fragments, with a number for each different use.
pub(crate) struct Uses<'s, 'a> {
    all: Vec<Use<'s, 'a>>,
    fragments: Vec<Numbered>,
}

/// The uses and the fragments of a fragment, by their numbers.
struct Numbered {
    variables: Vec<usize>,
    fragments: BTreeSet<usize>,
}

impl<'s, 'a> Needs<'s, 'a> {
    /// Notes a variable at a place of a type.
    pub(crate) fn typed(&mut self, name: &'a str, of: &'s TypeRef, defaulted: bool) {
        self.variables.insert((name, Some((of, defaulted))));
    }

    /// Notes the variables of a value at a place of any type.
    pub(crate) fn loose(&mut self, value: &Value<'a>) {
        match value {
            Value::Variable(name) => {
                self.variables.insert((*name, None));
            }
            Value::List(elements) => elements.iter().for_each(|element| self.loose(element)),
            Value::Object(members) => members.iter().for_each(|(_, value)| self.loose(value)),
            _ => {}
        }
    }

    /// Notes a fragment by its place in the document.
    pub(crate) fn fragment(&mut self, place: usize) {
        self.fragments.insert(place);
    }
}

impl<'s, 'a> Uses<'s, 'a> {
    /// Those of all fragments, in the order of the document.
    pub(crate) fn new(fragments: Vec<Needs<'s, 'a>>) -> Self {
        let (mut all, mut numbers) = (Vec::new(), BTreeMap::new());
        let mut number = |one: Use<'s, 'a>| {
            *numbers.entry(one).or_insert_with(|| {
                let number = all.len();
                all.push(one);
                number
            })
        };
        let mut numbered = |Needs { variables, fragments }: Needs<'s, 'a>| Numbered {
            variables: variables.into_iter().map(&mut number).collect(),
            fragments,
        };
        let fragments = fragments.into_iter().map(&mut numbered).collect();
        Self { all, fragments }
    }

    /// Whether an operation declares what it and its fragments use, with fitting types: how many uses were compared.
    ///
    /// # Errors
    /// What does not fit.
    pub(crate) fn fit(&self, declared: &HashMap<&str, Declared>, needs: &Needs<'s, 'a>) -> Result<usize, String> {
        let mut uses: Vec<Use<'s, 'a>> = needs.variables.iter().copied().collect();
        let (mut is_met, mut is_noted) = (vec![false; self.fragments.len()], vec![false; self.all.len()]);
        let is_first =
            |list: &mut [bool], place: usize| list.get_mut(place).is_some_and(|known| !std::mem::replace(known, true));
        let mut waiting: Vec<usize> = needs.fragments.iter().copied().collect();
        while let Some(place) = waiting.pop() {
            let Some(fragment) = self.fragments.get(place).filter(|_| is_first(&mut is_met, place)) else { continue };
            waiting.extend(&fragment.fragments);
            let new = fragment.variables.iter().filter(|number| is_first(&mut is_noted, **number));
            uses.extend(new.filter_map(|number| self.all.get(*number)));
        }
        uses.iter().try_for_each(|one| fits(declared, *one))?;
        Ok(uses.len())
    }
}

fn fits(declared: &HashMap<&str, Declared>, (name, place): Use<'_, '_>) -> Result<(), String> {
    let variable = declared.get(name).ok_or_else(|| format!("the variable {} is not declared", quoted(name)))?;
    match place {
        Some((of, defaulted)) if !of.takes(&variable.of, defaulted || variable.has_default) => {
            Err(format!("the variable {} has another type than its place", quoted(name)))
        }
        _ => Ok(()),
    }
}
