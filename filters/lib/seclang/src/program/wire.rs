//! The messages of the encoding. Numbers of enumerations are the codes of their types; strings that occur in many
//! rules (tags, versions, origins) are indexes into one table.

/// A rule set.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Program {
    #[prost(uint32, tag = "1")]
    pub(crate) format: u32,
    #[prost(message, optional, tag = "2")]
    pub(crate) settings: Option<Settings>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) operators: Vec<Operator>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) rules: Vec<Rule>,
    #[prost(bytes = "vec", repeated, tag = "5")]
    pub(crate) strings: Vec<Vec<u8>>,
    #[prost(message, repeated, tag = "6")]
    pub(crate) warnings: Vec<Warning>,
}

/// See [`super::Settings`].
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Settings {
    #[prost(uint32, tag = "1")]
    pub(crate) mode: u32,
    #[prost(bool, tag = "2")]
    pub(crate) request_body_access: bool,
    #[prost(bool, tag = "3")]
    pub(crate) response_body_access: bool,
    #[prost(uint64, tag = "4")]
    pub(crate) request_body_limit: u64,
    #[prost(bool, tag = "5")]
    pub(crate) request_body_reject: bool,
    #[prost(uint64, tag = "6")]
    pub(crate) response_body_limit: u64,
    #[prost(bool, tag = "7")]
    pub(crate) response_body_reject: bool,
    #[prost(bytes = "vec", repeated, tag = "8")]
    pub(crate) response_mime_types: Vec<Vec<u8>>,
    #[prost(uint32, tag = "9")]
    pub(crate) argument_separator: u32,
    #[prost(uint32, tag = "10")]
    pub(crate) arguments_limit: u32,
    #[prost(uint32, tag = "11")]
    pub(crate) json_depth_limit: u32,
    #[prost(string, tag = "12")]
    pub(crate) component_signature: String,
    #[prost(uint32, tag = "13")]
    pub(crate) upload_file_limit: u32,
    #[prost(bytes = "vec", tag = "14")]
    pub(crate) web_app_id: Vec<u8>,
    /// 0 for the default: programs from before this field have none.
    #[prost(uint32, tag = "15")]
    pub(crate) collection_timeout: u32,
    /// 0 for no limit.
    #[prost(uint64, tag = "16")]
    pub(crate) request_body_no_files_limit: u64,
    /// Code of [`super::XmlArguments`].
    #[prost(uint32, tag = "17")]
    pub(crate) xml_arguments: u32,
    /// Prefixes of `xmlns`, each followed by its namespace.
    #[prost(bytes = "vec", repeated, tag = "18")]
    pub(crate) namespaces: Vec<Vec<u8>>,
}

/// An operator with its checked argument.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub(crate) struct Operator {
    #[prost(uint32, tag = "1")]
    pub(crate) kind: u32,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) text: Vec<u8>,
    #[prost(bytes = "vec", repeated, tag = "3")]
    pub(crate) phrases: Vec<Vec<u8>>,
    /// Of patterns only; a program without it runs as well, but slower.
    #[prost(message, optional, tag = "4")]
    pub(crate) prefilter: Option<Prefilter>,
}

/// What a value must hold for a pattern to match it at all.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub(crate) struct Prefilter {
    #[prost(uint32, tag = "1")]
    pub(crate) min_length: u32,
    /// In lower case.
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub(crate) literals: Vec<Vec<u8>>,
    /// Sets of bytes, four words each.
    #[prost(fixed64, repeated, tag = "3")]
    pub(crate) sets: Vec<u64>,
}

impl Prefilter {
    pub(crate) fn of(prefilter: crate::operator::Prefilter) -> Self {
        let sets = prefilter.sets.iter().flat_map(|set| set.words()).collect();
        Self { min_length: prefilter.min_length, literals: prefilter.literals, sets }
    }

    pub(crate) fn read(&self) -> crate::operator::Prefilter {
        let sets = self.sets.as_chunks::<4>().0.iter().map(|words| crate::operator::ByteSet::from_words(*words));
        crate::operator::Prefilter {
            min_length: self.min_length,
            literals: self.literals.clone(),
            sets: sets.collect(),
        }
    }
}

/// A rule with its chain.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Rule {
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    /// 1 to 5.
    #[prost(uint32, tag = "2")]
    pub(crate) phase: u32,
    #[prost(message, repeated, tag = "3")]
    pub(crate) links: Vec<Link>,
    /// [`DISRUPTION`].
    #[prost(uint32, tag = "4")]
    pub(crate) disruption: u32,
    #[prost(uint32, tag = "5")]
    pub(crate) status: u32,
    #[prost(bytes = "vec", tag = "6")]
    pub(crate) redirect: Vec<u8>,
    #[prost(bytes = "vec", tag = "7")]
    pub(crate) msg: Vec<u8>,
    #[prost(bytes = "vec", tag = "8")]
    pub(crate) logdata: Vec<u8>,
    /// One more than the level; 0 for none.
    #[prost(uint32, tag = "9")]
    pub(crate) severity: u32,
    #[prost(uint32, repeated, tag = "10")]
    pub(crate) tags: Vec<u32>,
    /// Index of a string plus 1; 0 for none.
    #[prost(uint32, tag = "11")]
    pub(crate) version: u32,
    /// Index of a string plus 1; 0 for none.
    #[prost(uint32, tag = "12")]
    pub(crate) revision: u32,
    #[prost(uint32, tag = "13")]
    pub(crate) maturity: u32,
    #[prost(uint32, tag = "14")]
    pub(crate) accuracy: u32,
    #[prost(bool, tag = "15")]
    pub(crate) log: bool,
    #[prost(bool, tag = "16")]
    pub(crate) audit_log: bool,
    /// How many rules of the phase to skip after a match.
    #[prost(uint32, tag = "17")]
    pub(crate) skip: u32,
    /// The index of the rule to go on with after a match, plus 1; 0 for the next.
    #[prost(uint32, tag = "18")]
    pub(crate) skip_to: u32,
    /// Index of a string.
    #[prost(uint32, tag = "19")]
    pub(crate) origin: u32,
    #[prost(uint32, tag = "20")]
    pub(crate) line: u32,
}

/// What a full match does to the transaction: `Rule.disruption`.
pub(crate) const DISRUPTION: [Disruption; 7] = [
    Disruption::Pass,
    Disruption::Deny,
    Disruption::Drop,
    Disruption::Redirect,
    Disruption::Allow,
    Disruption::AllowPhase,
    Disruption::AllowRequest,
];

/// What a full match does to the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disruption {
    Pass,
    Deny,
    Drop,
    Redirect,
    /// Skip every phase but logging.
    Allow,
    /// Skip the rest of the phase.
    AllowPhase,
    /// Skip the rest of the request's phases.
    AllowRequest,
}

impl Disruption {
    pub(crate) fn code(self) -> u32 {
        self as u32
    }

    pub(crate) fn from_code(code: u32) -> Option<Self> {
        DISRUPTION.get(usize::try_from(code).ok()?).copied()
    }

    /// Whether it ends the transaction.
    pub(crate) fn blocks(self) -> bool {
        matches!(self, Self::Deny | Self::Drop | Self::Redirect)
    }
}

/// One test of a chain.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Link {
    #[prost(message, repeated, tag = "1")]
    pub(crate) targets: Vec<Target>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) exclusions: Vec<Target>,
    /// Index of an operator plus 1; 0 where the link always matches (`SecAction`).
    #[prost(uint32, tag = "3")]
    pub(crate) operator: u32,
    #[prost(bool, tag = "4")]
    pub(crate) negated: bool,
    /// Codes of transformations.
    #[prost(bytes = "vec", tag = "5")]
    pub(crate) transforms: Vec<u8>,
    #[prost(bool, tag = "6")]
    pub(crate) multi_match: bool,
    #[prost(bool, tag = "7")]
    pub(crate) capture: bool,
    #[prost(message, repeated, tag = "8")]
    pub(crate) sets: Vec<SetVariable>,
    #[prost(message, repeated, tag = "9")]
    pub(crate) controls: Vec<Control>,
}

/// A target or an exclusion.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub(crate) struct Target {
    #[prost(uint32, tag = "1")]
    pub(crate) variable: u32,
    /// [`KEY_ALL`], [`KEY_NAME`] or [`KEY_PATTERN`].
    #[prost(uint32, tag = "2")]
    pub(crate) selection: u32,
    /// The name, or the pattern as it was checked.
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) key: Vec<u8>,
    #[prost(bool, tag = "4")]
    pub(crate) count: bool,
    /// What the operator `@rx` made of the pattern; empty otherwise.
    #[prost(bytes = "vec", repeated, tag = "5")]
    pub(crate) phrases: Vec<Vec<u8>>,
}

pub(crate) const KEY_ALL: u32 = 0;
pub(crate) const KEY_NAME: u32 = 1;
pub(crate) const KEY_PATTERN: u32 = 2;

/// `setvar`, `setenv`, `setsid`, `setuid`, `setrsc`, `initcol`, `expirevar`, `deprecatevar` and `sanitise*`.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub(crate) struct SetVariable {
    #[prost(uint32, tag = "1")]
    pub(crate) variable: u32,
    /// A template.
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) key: Vec<u8>,
    /// One of the constants `SET_*`.
    #[prost(uint32, tag = "3")]
    pub(crate) operation: u32,
    /// A template.
    #[prost(bytes = "vec", tag = "4")]
    pub(crate) value: Vec<u8>,
}

pub(crate) const SET_TO: u32 = 0;
pub(crate) const SET_ADD: u32 = 1;
pub(crate) const SET_SUBTRACT: u32 = 2;
/// The variable is removed.
pub(crate) const SET_NOTHING: u32 = 3;
/// The collection `variable` is attached to the record whose key is `value`.
pub(crate) const SET_ATTACH: u32 = 4;
/// The variable ends after `value` seconds.
pub(crate) const SET_EXPIRE: u32 = 5;
/// The variable shrinks: `value` is an amount, a slash and seconds.
pub(crate) const SET_DEPRECATE: u32 = 6;
/// The value of this name is masked in reports; of `MATCHED_VAR`, what matched last.
pub(crate) const SET_SANITISE: u32 = 7;

/// `ctl`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Control {
    #[prost(oneof = "ControlKind", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14")]
    pub(crate) kind: Option<ControlKind>,
}

/// What a `ctl` changes for the rest of the transaction.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum ControlKind {
    /// Code of an engine mode.
    #[prost(uint32, tag = "1")]
    RuleEngine(u32),
    #[prost(bool, tag = "2")]
    RequestBodyAccess(bool),
    #[prost(bool, tag = "3")]
    ResponseBodyAccess(bool),
    /// In capitals.
    #[prost(bytes, tag = "4")]
    RequestBodyProcessor(Vec<u8>),
    #[prost(bool, tag = "5")]
    ForceRequestBodyVariable(bool),
    #[prost(message, tag = "6")]
    RemoveById(IdRange),
    #[prost(bytes, tag = "7")]
    RemoveByTag(Vec<u8>),
    #[prost(bytes, tag = "8")]
    RemoveByMsg(Vec<u8>),
    #[prost(message, tag = "9")]
    RemoveTargetById(RemoveTarget),
    #[prost(message, tag = "10")]
    RemoveTargetByTag(RemoveTarget),
    #[prost(message, tag = "11")]
    RemoveTargetByMsg(RemoveTarget),
    /// In bytes.
    #[prost(uint64, tag = "12")]
    RequestBodyLimit(u64),
    /// In bytes.
    #[prost(uint64, tag = "13")]
    ResponseBodyLimit(u64),
    /// Code of [`super::XmlArguments`].
    #[prost(uint32, tag = "14")]
    XmlArguments(u32),
}

/// Ids from the first to the last.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct IdRange {
    #[prost(uint64, tag = "1")]
    pub(crate) first: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) last: u64,
}

/// A target and the rules it is removed from.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct RemoveTarget {
    #[prost(message, optional, tag = "1")]
    pub(crate) ids: Option<IdRange>,
    /// A tag or a message.
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) text: Vec<u8>,
    #[prost(message, optional, tag = "3")]
    pub(crate) target: Option<Target>,
}

/// See [`super::Warning`].
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Warning {
    #[prost(string, tag = "1")]
    pub(crate) origin: String,
    #[prost(uint32, tag = "2")]
    pub(crate) line: u32,
    #[prost(string, tag = "3")]
    pub(crate) message: String,
}
