//! What is checked where rules are written.

use super::{DataFiles, OperatorArgument, OperatorError, OperatorKind, address, encoding, macros, phrases, rx};

/// The longest name of a zone, in bytes: in a question there is an address in front of it.
const MAX_ZONE: usize = 180;

/// Checks the argument of an operator and resolves the files it names.
///
/// The error's offset is into `argument`. Macros (`%{...}`) are left to the evaluation, and what they expand to is not
/// checked.
pub fn check(kind: OperatorKind, argument: &[u8], files: &dyn DataFiles) -> Result<OperatorArgument, OperatorError> {
    use OperatorKind as Kind;
    if let Some((message, help)) = refused(kind) {
        return Err(OperatorError { message: message.into(), help: Some(help.into()), offset: None });
    }
    let derived = match kind {
        Kind::Rx | Kind::RxGlobal if macros::present(argument) => Vec::new(),
        Kind::Rx | Kind::RxGlobal => rx::check(argument)?,
        Kind::VerifyCc | Kind::VerifyCpf | Kind::VerifySsn | Kind::VerifySvnr => {
            required(kind, argument)?;
            rx::check(argument)?
        }
        Kind::Pm => {
            required(kind, argument)?;
            let phrases = phrases::split(argument);
            phrases::check(&phrases)?;
            phrases
        }
        Kind::PmFromFile => {
            let phrases = phrases::lines(argument, files)?;
            phrases::check(&phrases)?;
            phrases
        }
        Kind::IpMatch => {
            required(kind, argument)?;
            let mut pieces = Vec::new();
            for (offset, piece) in address::split(argument) {
                address::check(piece, Some(offset))?;
                pieces.push(piece.to_vec());
            }
            pieces
        }
        Kind::IpMatchFromFile => {
            let mut pieces = Vec::new();
            for line in phrases::lines(argument, files)? {
                // A comment may follow the network.
                let line = line.split(|&byte| byte == b'#').next().unwrap_or_default();
                for (_, piece) in address::split(line) {
                    address::check(piece, None)?;
                    pieces.push(piece.to_vec());
                }
            }
            pieces
        }
        Kind::ValidateByteRange => {
            encoding::byte_ranges(argument)?;
            Vec::new()
        }
        Kind::Rbl => {
            required(kind, argument)?;
            let zone = zone(argument)?;
            return Ok(OperatorArgument { text: zone, phrases: Vec::new() });
        }
        _ => Vec::new(),
    };
    Ok(OperatorArgument { text: argument.to_vec(), phrases: derived })
}

/// Checks a pattern that selects names of a collection: `/.../` after the colon of a target or of a macro.
///
/// Names are compared without regard to case, and so are patterns for them.
pub fn check_key(pattern: &[u8]) -> Result<OperatorArgument, OperatorError> {
    let folded = [b"(?i)", pattern].concat();
    let phrases = rx::check(&folded)?;
    Ok(OperatorArgument { text: folded, phrases })
}

fn required(kind: OperatorKind, argument: &[u8]) -> Result<(), OperatorError> {
    if !argument.trim_ascii().is_empty() {
        return Ok(());
    }
    Err(OperatorError { message: format!("@{} needs an argument", kind.name()), help: None, offset: Some(0) })
}

/// The name of a zone of a DNS block list, in lower case without a dot at its end.
fn zone(argument: &[u8]) -> Result<Vec<u8>, OperatorError> {
    let zone = argument.trim_ascii();
    let zone = zone.strip_suffix(b".").unwrap_or(zone);
    let is_label = |label: &[u8]| {
        (1..=63).contains(&label.len()) && label.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(byte))
    };
    if zone.len() <= MAX_ZONE && zone.split(|byte| *byte == b'.').all(is_label) {
        return Ok(zone.to_ascii_lowercase());
    }
    Err(OperatorError {
        message: format!("{} is not the name of a zone", String::from_utf8_lossy(zone).escape_debug()),
        help: Some("Write the name of one zone, for example zen.spamhaus.org.".into()),
        offset: Some(0),
    })
}

/// Why an operator cannot be used at all, and what to use instead.
fn refused(kind: OperatorKind) -> Option<(&'static str, &'static str)> {
    use OperatorKind as Kind;
    Some(match kind {
        Kind::Rsub => (
            "@rsub is not supported: rules inspect bodies, they do not rewrite them",
            "Deny the response instead, or change it in the application.",
        ),
        Kind::InspectFile => (
            "@inspectFile is not supported: a filter cannot run a program",
            "Scan uploads in the application; rules see them as FILES and FILES_TMP_CONTENT.",
        ),
        Kind::FuzzyHash => (
            "@fuzzyHash is not supported: there is no ssdeep in the filter",
            "Compare t:sha1,t:hexEncode with a list by @pmFromFile to find known files.",
        ),
        Kind::ValidateSchema => (
            "@validateSchema is not supported: XML is checked for being well-formed only",
            "Validate documents against their schema in the application.",
        ),
        Kind::ValidateDtd => (
            "@validateDTD is not supported: XML is checked for being well-formed only",
            "Validate documents against their DTD in the application.",
        ),
        Kind::GsbLookup => (
            "@gsbLookup is not supported: the database it reads is no longer published",
            "Use @pmFromFile with a list of addresses of your own.",
        ),
        Kind::ValidateHash => {
            ("@validateHash is not supported: links are not signed", "Remove the rule and the SecHash directives.")
        }
        _ => return None,
    })
}
