//! The severities of syslog, as `severity` writes them.

/// How grave a match is: 0 (emergency) to 7 (debug).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Severity(u8);

const NAMES: [&str; 8] = ["EMERGENCY", "ALERT", "CRITICAL", "ERROR", "WARNING", "NOTICE", "INFO", "DEBUG"];

impl Severity {
    /// The severity of a name (any case) or of a number from 0 to 7.
    pub fn parse(text: &str) -> Option<Self> {
        let by_name = NAMES.iter().position(|name| name.eq_ignore_ascii_case(text));
        let level = by_name.or_else(|| text.parse().ok().filter(|level| *level < NAMES.len()))?;
        u8::try_from(level).ok().map(Self)
    }

    /// The severity of a number, 0 to 7.
    pub fn from_level(level: u8) -> Option<Self> {
        (usize::from(level) < NAMES.len()).then_some(Self(level))
    }

    /// 0 to 7; less is graver.
    pub fn level(self) -> u8 {
        self.0
    }

    /// The name, in capitals.
    pub fn name(self) -> &'static str {
        NAMES.get(usize::from(self.0)).copied().unwrap_or("DEBUG")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_names_and_numbers() {
        assert_eq!(Severity::parse("critical").map(Severity::level), Some(2));
        assert_eq!(Severity::parse("2").map(Severity::name), Some("CRITICAL"));
        assert_eq!(Severity::parse("8"), None);
        assert_eq!(Severity::parse("urgent"), None);
    }
}
