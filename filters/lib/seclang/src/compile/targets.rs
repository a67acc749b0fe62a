//! Checks targets: the variable exists, the key makes sense for it.

use super::actions::Complaint;
use super::{Compiler, Place};
use crate::body::xml::Path;
use crate::operator;
use crate::program::wire;
use crate::syntax::{self, Argument, Key, Target};
use crate::vocabulary::{IMPOSSIBLE, Shape, Variable, nearest};

/// The fields of GEO that other engines have.
const ABSENT: [&str; 7] = ["REGION", "CITY", "POSTAL_CODE", "LATITUDE", "LONGITUDE", "DMA_CODE", "AREA_CODE"];

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
        let empty = match variable {
            Variable::FilesTmpNames => Some("uploads are not written to files"),
            _ => None,
        };
        if let (Variable::Geo, Some(Key::Name(name))) = (variable, &target.key)
            && ABSENT.iter().any(|field| field.as_bytes().eq_ignore_ascii_case(name))
        {
            let field = String::from_utf8_lossy(name);
            self.warn(place, format!("{}:{field} is always empty: gateways know countries alone", variable.name()));
        }
        if let Some(reason) = empty {
            self.warn(place, format!("{} is always empty: {reason}", variable.name()));
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
                if variable == Variable::Xml && !self.path(place, target, name, id) {
                    return None;
                }
                if let Some(pattern) = json_name(variable, name) {
                    // What is generated is in order.
                    let argument = operator::check_key(&pattern).ok()?;
                    checked.selection = wire::KEY_PATTERN;
                    checked.key = argument.text;
                    checked.phrases = argument.phrases;
                    return Some(checked);
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

    /// Whether an XPath expression is one that is supported.
    fn path(&mut self, place: Place, target: &Target, name: &[u8], id: Option<u64>) -> bool {
        let prefixes = &self.prefixes;
        let namespaces = &self.settings.namespaces;
        let declared = |prefix: &[u8]| {
            let mut known = namespaces.iter().filter(|(known, _)| prefixes.iter().any(|prefix| prefix == known));
            known.find(|(known, _)| known == prefix).map(|(_, url)| url.clone())
        };
        let Err(error) = Path::parse(name, declared) else { return true };
        let help = match error.message.contains("prefix") {
            true => "declare it in the actions of this rule: xmlns:prefix='http://example.org/namespace'",
            false => "write XML:/* for all text, XML://@* for all attributes, or paths as XML:/a/b, XML://b, XML:/a/@c",
        };
        // The expression follows the name and a colon.
        let place = Place { offset: place.offset + target.name.len() + 1 + error.offset, ..place };
        let message = format!("this XPath expression is not supported: {}", error.message);
        self.error(place, message, Some(help.to_owned()), id);
        false
    }

    /// Notes a prefix. One prefix stands for one namespace in all rules, as expressions are compared by their text.
    pub(super) fn declare_namespace(&mut self, prefix: &[u8], namespace: &[u8]) -> Result<(), Complaint> {
        let namespaces = &mut self.settings.namespaces;
        match namespaces.iter().find(|(known, _)| known == prefix) {
            Some((_, known)) if known != namespace => {
                let shown = String::from_utf8_lossy(prefix);
                let message =
                    format!("another rule declares '{shown}' for the namespace '{}'", String::from_utf8_lossy(known));
                Err((message, Some("choose another prefix".to_owned())))
            }
            Some(_) => Ok(()),
            None => {
                namespaces.push((prefix.to_vec(), namespace.to_vec()));
                Ok(())
            }
        }
    }
}

/// The pattern for the name of a JSON argument that writes positions as plain numbers: `json.a.0.b` stands for
/// `json.a.array_0.b` as well, and for the member `0` of an object.
fn json_name(variable: Variable, name: &[u8]) -> Option<Vec<u8>> {
    let of_arguments =
        matches!(variable, Variable::Args | Variable::ArgsNames | Variable::ArgsPost | Variable::ArgsPostNames);
    let rest = name.get(..5).filter(|head| head.eq_ignore_ascii_case(b"json.")).and_then(|_| name.get(5..))?;
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(rest).ok().filter(|_| of_arguments)?;
    if !text.split('.').any(|part| is_number(part.as_bytes())) {
        return None;
    }
    let parts = text.split('.').map(|part| match is_number(part.as_bytes()) {
        true => format!("(?:array_)?{part}"),
        false => escaped(part),
    });
    let parts: Vec<String> = parts.collect();
    Some(format!("\\Ajson\\.{}\\z", parts.join("\\.")).into_bytes())
}

/// Text as a pattern that matches it.
fn escaped(text: &str) -> String {
    let mut pattern = String::new();
    for character in text.chars() {
        if character.is_ascii() && !character.is_ascii_alphanumeric() {
            pattern.push_str(&format!("\\x{:02x}", u32::from(character)));
        } else {
            pattern.push(character);
        }
    }
    pattern
}
