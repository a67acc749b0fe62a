//! Tables of networks as iptoasn.com publishes them: lines of the first address, the last one, the number, the country and the owner, with
//! tabs between them.

use std::net::IpAddr;

use super::networks::{CountryCode, Network, Networks, NetworksReader, Read};

/// Reads a table.
///
/// # Errors
/// It has more than `max_entries` ranges, or is no such table; for people.
pub(super) fn read(table: &[u8], max_entries: usize) -> Result<Read<Networks>, String> {
    let mut reader = NetworksReader::new(max_entries);
    for line in table.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        match entry(line) {
            Some(Entry { number: 0, .. }) => {}
            Some(Entry { first, last, number, country, owner }) => {
                reader.add(first, last, Network::new(number, country, &owner))?;
            }
            None => reader.reject(),
        }
    }
    reader.finish()
}

struct Entry {
    first: IpAddr,
    last: IpAddr,
    /// 0 for addresses that no network announces.
    number: u32,
    country: Option<CountryCode>,
    owner: String,
}

fn entry(line: &[u8]) -> Option<Entry> {
    let mut fields = line.split(|byte| *byte == b'\t');
    let mut field = || fields.next().map(<[u8]>::trim_ascii);
    let text = |bytes: &[u8]| std::str::from_utf8(bytes).ok().map(str::to_owned);
    let (first, last) = (text(field()?)?.parse().ok()?, text(field()?)?.parse().ok()?);
    let number = text(field()?)?.parse().ok()?;
    // The last two may be missing: `None` and `Not routed` stand there for addresses without a network.
    let country = field().and_then(text).and_then(|text| CountryCode::read(&text));
    let owner = field().map(String::from_utf8_lossy).unwrap_or_default().into_owned();
    Some(Entry { first, last, number, country, owner })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "1.0.0.0\t1.0.0.255\t13335\tUS\tCLOUDFLARENET\r\n\
        1.0.1.0\t1.0.3.255\t0\tNone\tNot routed\n\
        1.0.4.0\t1.0.5.255\t38803\tAU\tWPL-AS-AP Wirefreebroadband Pty Ltd\n\
        2001:db8::\t2001:db8:ffff:ffff:ffff:ffff:ffff:ffff\t64496\tzz\tExample\n";

    #[test]
    fn a_table_is_read() {
        let read = read(TABLE.as_bytes(), 10).unwrap();
        assert_eq!((read.entries, read.rejected, read.content.all().len()), (3, 0, 3));
        let found = |address: &str| {
            let (network, ..) = read.content.find(address.parse().unwrap())?;
            Some((network.number, network.country.map(|country| country.to_string()), network.owner.to_string()))
        };
        assert_eq!(found("1.0.0.7"), Some((13335, Some("US".into()), "CLOUDFLARENET".into())));
        assert_eq!(found("1.0.2.0"), None, "no network announces it");
        assert_eq!(found("2001:db8::7"), Some((64496, Some("ZZ".into()), "Example".into())));
    }

    #[test]
    fn entries_that_cannot_be_read_are_counted_and_must_be_few() {
        let odd = format!("{TABLE}here\tthere\t1\tUS\tX\n\n# a comment\n1.0.4.0\t1.0.4.255\t1\tUS\tNarrower\n");
        assert_eq!(read(odd.as_bytes(), 10).map(|read| (read.entries, read.rejected)), Ok((4, 1)));
        assert!(read(b"<html><body>404</body></html>", 10).unwrap_err().contains("no range of a network"));
        let mostly = "x\n".repeat(4) + TABLE;
        assert!(read(mostly.as_bytes(), 10).unwrap_err().contains("4 entries cannot be read and 3 can"));
        assert!(read(TABLE.as_bytes(), 2).unwrap_err().contains("more than 2 ranges"));
        assert!(read(b"1.0.0.0\t1.0.0.255\t4294967296\tUS\tX", 10).is_err(), "no number of a network");
        assert!(read(&[0xff, b'\t', 0xfe], 10).is_err());
    }
}
