//! The checked form: what the text means, ready to store and to send.
//!
//! A [`Program`] holds no regular expression and no automaton, only what they are built from. Its encoding is a protocol
//! buffer whose fields never change their number; [`FORMAT`] counts the changes an older reader would misunderstand.

mod coverage;
mod lookups;
mod settings;
pub(crate) mod wire;

use prost::Message;

pub use coverage::Coverage;
pub use lookups::RuleLookups;
pub use settings::{EngineMode, LimitAction, Settings, XmlArguments};

/// The version of the encoding. A reader refuses a program of another version.
pub const FORMAT: u32 = 1;

/// The message of a [`Warning`] on an update that changes no rule. Rules that precede the text may be what it selects.
pub const NOTHING_SELECTED: &str = "no rule is selected by this update";

/// Rules that were checked and compiled: immutable, and the same for the same text.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    pub(crate) wire: wire::Program,
}

/// Something in the text that has no effect here, for the person who wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The origin of the source.
    pub origin: String,
    /// The line in the source, from 1.
    pub line: u32,
    /// What has no effect, and why.
    pub message: String,
}

impl Program {
    /// The bytes to store.
    pub fn encode(&self) -> Vec<u8> {
        self.wire.encode_to_vec()
    }

    /// Reads what [`Program::encode`] wrote.
    ///
    /// # Errors
    /// If the bytes are not a program, or one of another [`FORMAT`].
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let wire = wire::Program::decode(bytes).map_err(|error| format!("not a compiled rule set: {error}"))?;
        if wire.format != FORMAT {
            return Err(format!(
                "the rule set was compiled in format {}, this engine reads format {FORMAT}: compile it again",
                wire.format
            ));
        }
        Ok(Self { wire })
    }

    /// How many rules there are; a chain is one rule.
    pub fn rule_count(&self) -> usize {
        self.wire.rules.len()
    }

    /// The ids of all rules, in order of evaluation within a phase. Rules without an id have 0.
    pub fn rule_ids(&self) -> impl Iterator<Item = u64> + '_ {
        self.wire.rules.iter().map(|rule| rule.id)
    }

    /// What the directives set.
    pub fn settings(&self) -> Settings {
        self.wire.settings.as_ref().map(Settings::from_wire).unwrap_or_default()
    }

    /// What has no effect here.
    pub fn warnings(&self) -> impl Iterator<Item = Warning> + '_ {
        self.wire.warnings.iter().map(|warning| Warning {
            origin: warning.origin.clone(),
            line: warning.line,
            message: warning.message.clone(),
        })
    }
}
