//! Checks targets: the variable exists, the key makes sense for it.

use super::{Compiler, Place};
use crate::operator;
use crate::program::wire;
use crate::syntax::{self, Argument, Key, Target};
use crate::vocabulary::{IMPOSSIBLE, Shape, Variable, nearest};

impl Compiler<'_> {
    /// The targets of an argument, each with whether it is an exclusion. `None` if any of them is wrong.
    pub(super) fn targets(
        &mut self,
        source: usize,
        argument: &Argument,
        separators: &[u8],
        id: Option<u64>,
    ) -> Option<Vec<(wire::Target, bool)>> {
        let parsed = match syntax::targets(&argument.text, separators) {
            Ok(parsed) => parsed,
            Err(error) => {
                self.syntax_error(source, argument, error, id);
                return None;
            }
        };
        let mut checked = Vec::with_capacity(parsed.len());
        let mut sound = true;
        for target in &parsed {
            let offset = argument.source_offset(target.offset);
            match self.target(Place { source, offset }, target, id) {
                Some(found) => checked.push((found, target.exclude)),
                None => sound = false,
            }
        }
        sound.then_some(checked)
    }

    /// One target. `None`, and a diagnostic, if it is wrong.
    pub(super) fn target(&mut self, place: Place, target: &Target, id: Option<u64>) -> Option<wire::Target> {
        let Some(variable) = Variable::from_name(&target.name) else {
            let reason = IMPOSSIBLE.iter().find(|(known, _)| known.eq_ignore_ascii_case(&target.name));
            let (message, help) = match reason {
                Some((known, reason)) => (format!("{known} is not available"), Some((*reason).to_owned())),
                None => (
                    format!("unknown variable '{}'", target.name),
                    nearest(&target.name, Variable::names().chain(IMPOSSIBLE.iter().map(|(known, _)| *known)))
                        .map(|name| format!("did you mean '{name}'?")),
                ),
            };
            self.error(place, message, help, id);
            return None;
        };
        if target.key.is_some() && variable.shape() == Shape::Scalar {
            let help = Some(format!("write {} alone", variable.name()));
            self.error(place, format!("{} has one value: no key selects from it", variable.name()), help, id);
            return None;
        }
        let mut checked = wire::Target {
            variable: u32::from(variable.code()),
            selection: wire::KEY_ALL,
            key: Vec::new(),
            count: target.count,
            phrases: Vec::new(),
        };
        match &target.key {
            None => {}
            Some(Key::Name(name)) => {
                if variable == Variable::Xml && !matches!(name.as_slice(), b"/*" | b"//@*") {
                    let help =
                        Some("write XML:/* for the text of the document or XML://@* for its attributes".to_owned());
                    self.error(place, "this XPath expression is not supported", help, id);
                    return None;
                }
                checked.selection = wire::KEY_NAME;
                checked.key.clone_from(name);
            }
            Some(Key::Pattern(pattern)) => match operator::check_key(pattern) {
                Ok(argument) => {
                    checked.selection = wire::KEY_PATTERN;
                    checked.key = argument.text;
                    checked.phrases = argument.phrases;
                }
                Err(error) => {
                    self.error(place, format!("in the pattern of the key: {}", error.message), error.help, id);
                    return None;
                }
            },
        }
        Some(checked)
    }
}
