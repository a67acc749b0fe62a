//! Countries, as `GEO` names them.

/// A line for each country of ISO 3166-1 (and Kosovo, of which databases write XK): its two letters, its three letters, its continent
/// in two letters, its usual English name.
const COUNTRIES: &str = include_str!("../../assets/countries.txt");

/// What is known of a country by its two letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Country {
    /// Three letters (ISO 3166-1 alpha-3).
    pub code3: &'static str,
    /// Two letters: AF, AN, AS, EU, NA, OC or SA.
    pub continent: &'static str,
    /// The usual English name.
    pub name: &'static str,
}

impl Country {
    /// The country of two letters in upper case; `None` if they are not a country's.
    pub fn of(code: [u8; 2]) -> Option<Self> {
        let line = COUNTRIES.lines().find(|line| line.as_bytes().starts_with(&code))?;
        let mut words = line.splitn(4, ' ').skip(1);
        Some(Self { code3: words.next()?, continent: words.next()?, name: words.next()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_country() {
        let mut codes: Vec<[u8; 2]> = Vec::new();
        for line in COUNTRIES.lines() {
            let code = *line.as_bytes().first_chunk().unwrap();
            let country = Country::of(code).unwrap();
            assert!(
                code.iter().all(u8::is_ascii_uppercase) && country.code3.bytes().all(|byte| byte.is_ascii_uppercase())
            );
            assert_eq!((country.code3.len(), line.split(' ').next().map(str::len)), (3, Some(2)), "{line}");
            assert!(["AF", "AN", "AS", "EU", "NA", "OC", "SA"].contains(&country.continent), "{line}");
            assert!(!country.name.is_empty() && country.name.trim() == country.name, "{line}");
            codes.push(code);
        }
        assert_eq!(codes.len(), 250);
        assert!(codes.is_sorted_by(|one, other| one < other), "each once");
        assert_eq!(Country::of(*b"BR"), Some(Country { code3: "BRA", continent: "SA", name: "Brazil" }));
        assert_eq!((Country::of(*b"EU"), Country::of(*b"\nA")), (None, None));
    }
}
