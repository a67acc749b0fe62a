//! The names of the operators.

/// An operator of SecLang.
///
/// The code of each ([`OperatorKind::code`]) is part of the compiled rule set's format: it never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum OperatorKind {
    /// `@rx`: regular expression, captures groups.
    Rx = 0,
    /// `@rxGlobal`: every match of a regular expression; captures hold the last.
    RxGlobal = 1,
    /// `@pm`: any of the phrases, in any ASCII case.
    Pm = 2,
    /// `@pmFromFile`: `@pm` with the phrases of data files (also `pmf`).
    PmFromFile = 3,
    /// `@detectSQLi`: SQL injection by libinjection; captures the fingerprint.
    DetectSqli = 4,
    /// `@detectXSS`: cross-site scripting by libinjection.
    DetectXss = 5,
    /// `@ipMatch`: an address in any of the networks.
    IpMatch = 6,
    /// `@ipMatchFromFile`: `@ipMatch` with the networks of data files (also `ipMatchF`).
    IpMatchFromFile = 7,
    /// `@within`: the value occurs in the argument.
    Within = 8,
    /// `@contains`: the argument occurs in the value.
    Contains = 9,
    /// `@containsWord`: the argument occurs in the value as a whole word.
    ContainsWord = 10,
    /// `@beginsWith`: the value begins with the argument.
    BeginsWith = 11,
    /// `@endsWith`: the value ends with the argument.
    EndsWith = 12,
    /// `@streq`: the value is the argument.
    StrEq = 13,
    /// `@strmatch`: the argument occurs in the value.
    StrMatch = 14,
    /// `@eq`: equal numbers.
    Eq = 15,
    /// `@ge`: the value's number is at least the argument's.
    Ge = 16,
    /// `@gt`: the value's number is greater.
    Gt = 17,
    /// `@le`: the value's number is at most the argument's.
    Le = 18,
    /// `@lt`: the value's number is less.
    Lt = 19,
    /// `@validateByteRange`: a byte outside of the ranges.
    ValidateByteRange = 20,
    /// `@validateUrlEncoding`: invalid percent-encoding.
    ValidateUrlEncoding = 21,
    /// `@validateUtf8Encoding`: invalid UTF-8.
    ValidateUtf8Encoding = 22,
    /// `@verifyCC`: a payment card number with a valid Luhn checksum.
    VerifyCc = 23,
    /// `@verifySSN`: a plausible US social security number.
    VerifySsn = 24,
    /// `@verifyCPF`: a Brazilian CPF with valid check digits.
    VerifyCpf = 25,
    /// `@verifySVNR`: an Austrian social security number with a valid check digit.
    VerifySvnr = 26,
    /// `@unconditionalMatch`: always.
    UnconditionalMatch = 27,
    /// `@noMatch`: never.
    NoMatch = 28,
    /// `@geoLookup`: the location of an address is known; it becomes `GEO`.
    GeoLookup = 29,
    /// `@rbl`: a DNS block list has the address.
    Rbl = 30,
    /// `@rsub`: substitution in a body; refused.
    Rsub = 31,
    /// `@inspectFile`: external program; refused.
    InspectFile = 32,
    /// `@fuzzyHash`: ssdeep; refused.
    FuzzyHash = 33,
    /// `@validateSchema`: XML schema; refused.
    ValidateSchema = 34,
    /// `@validateDTD`: XML DTD; refused.
    ValidateDtd = 35,
    /// `@gsbLookup`: Safe Browsing database; refused.
    GsbLookup = 36,
    /// `@validateHash`: signed links; refused.
    ValidateHash = 37,
}

/// Every operator with the name rules write; a second spelling follows the first.
const NAMES: &[(&str, OperatorKind)] = &[
    ("rx", OperatorKind::Rx),
    ("rxGlobal", OperatorKind::RxGlobal),
    ("pm", OperatorKind::Pm),
    ("pmFromFile", OperatorKind::PmFromFile),
    ("pmf", OperatorKind::PmFromFile),
    ("detectSQLi", OperatorKind::DetectSqli),
    ("detectXSS", OperatorKind::DetectXss),
    ("ipMatch", OperatorKind::IpMatch),
    ("ipMatchFromFile", OperatorKind::IpMatchFromFile),
    ("ipMatchF", OperatorKind::IpMatchFromFile),
    ("within", OperatorKind::Within),
    ("contains", OperatorKind::Contains),
    ("containsWord", OperatorKind::ContainsWord),
    ("beginsWith", OperatorKind::BeginsWith),
    ("endsWith", OperatorKind::EndsWith),
    ("streq", OperatorKind::StrEq),
    ("strmatch", OperatorKind::StrMatch),
    ("eq", OperatorKind::Eq),
    ("ge", OperatorKind::Ge),
    ("gt", OperatorKind::Gt),
    ("le", OperatorKind::Le),
    ("lt", OperatorKind::Lt),
    ("validateByteRange", OperatorKind::ValidateByteRange),
    ("validateUrlEncoding", OperatorKind::ValidateUrlEncoding),
    ("validateUtf8Encoding", OperatorKind::ValidateUtf8Encoding),
    ("verifyCC", OperatorKind::VerifyCc),
    ("verifySSN", OperatorKind::VerifySsn),
    ("verifyCPF", OperatorKind::VerifyCpf),
    ("verifySVNR", OperatorKind::VerifySvnr),
    ("unconditionalMatch", OperatorKind::UnconditionalMatch),
    ("noMatch", OperatorKind::NoMatch),
    ("geoLookup", OperatorKind::GeoLookup),
    ("rbl", OperatorKind::Rbl),
    ("rsub", OperatorKind::Rsub),
    ("inspectFile", OperatorKind::InspectFile),
    ("fuzzyHash", OperatorKind::FuzzyHash),
    ("validateSchema", OperatorKind::ValidateSchema),
    ("validateDTD", OperatorKind::ValidateDtd),
    ("gsbLookup", OperatorKind::GsbLookup),
    ("validateHash", OperatorKind::ValidateHash),
];

impl OperatorKind {
    /// The operator a rule names (without `@` and `!`), in any case of letters.
    pub fn from_name(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|&(_, kind)| kind)
    }

    /// The name rules write, in the usual spelling.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|&&(_, kind)| kind == self).map_or("noMatch", |&(name, _)| name)
    }

    /// Every name a rule may write, for "did you mean".
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|&(name, _)| name)
    }

    /// Whether macros in the argument are expanded.
    pub(super) fn expands_macros(self) -> bool {
        matches!(
            self,
            Self::Rx
                | Self::RxGlobal
                | Self::Within
                | Self::Contains
                | Self::ContainsWord
                | Self::BeginsWith
                | Self::EndsWith
                | Self::StrEq
                | Self::StrMatch
                | Self::Eq
                | Self::Ge
                | Self::Gt
                | Self::Le
                | Self::Lt
        )
    }

    /// The number that stands for this operator in a compiled rule set.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The operator of a compiled rule set's number; `None` for a number of a later version.
    pub fn from_code(code: u8) -> Option<Self> {
        NAMES.iter().find(|(_, kind)| kind.code() == code).map(|&(_, kind)| kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_codes_are_read_back() {
        for &(name, kind) in NAMES {
            assert_eq!(OperatorKind::from_name(&name.to_uppercase()), Some(kind));
            assert_eq!(OperatorKind::from_name(kind.name()), Some(kind));
            assert_eq!(OperatorKind::from_code(kind.code()), Some(kind));
        }
        assert_eq!(OperatorKind::from_name("pmf"), Some(OperatorKind::PmFromFile));
        assert_eq!(OperatorKind::PmFromFile.name(), "pmFromFile");
        assert_eq!(OperatorKind::from_name("unknown"), None);
        assert_eq!(OperatorKind::from_code(255), None);
    }
}
