//! The forms of TLS fingerprints.

/// The bytes of a JA4.
pub const JA4_BYTES: usize = 36;
/// The bytes of a JA3 as it is used: an MD5 in hexadecimal.
pub const JA3_BYTES: usize = 32;

/// The bytes of the three parts of a JA4 without the `_` between them: versions and counts, cipher suites, extensions.
pub const JA4_PARTS: [usize; 3] = [10, 12, 12];

/// Whether bytes are a JA4, such as `t13d1516h2_8daaf6152771_02713d6af862`: the protocol (`t`, `q`, `d`), the version, `d` or `i` (with
/// or without a server name), two digits each for the numbers of cipher suites and extensions, the first and the last character of
/// the protocol of ALPN, and twice twelve hexadecimal digits. Source: FoxIO, JA4 (TLS client fingerprinting).
#[must_use]
pub fn is_ja4(bytes: &[u8]) -> bool {
    let mut parts = bytes.split(|byte| *byte == b'_');
    let (Some(head), Some(ciphers), Some(extensions), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    is_ja4_part(0, head) && is_ja4_part(1, ciphers) && is_ja4_part(2, extensions)
}

/// Whether bytes are one of the three parts of a JA4, by its place (0 to 2).
#[must_use]
pub fn is_ja4_part(place: usize, part: &[u8]) -> bool {
    if place > 0 {
        return part.len() == 12 && part.iter().all(is_hexadecimal);
    }
    let [protocol, version, minor, name, counts @ .., first, last] = part else { return false };
    b"tqd".contains(protocol)
        && (version.is_ascii_digit() || b"sd".contains(version))
        && minor.is_ascii_digit()
        && b"di".contains(name)
        && counts.len() == 4
        && counts.iter().all(u8::is_ascii_digit)
        && first.is_ascii_alphanumeric()
        && last.is_ascii_alphanumeric()
}

/// Whether bytes are a JA3: 32 hexadecimal digits in lower case.
#[must_use]
pub fn is_ja3(bytes: &[u8]) -> bool {
    bytes.len() == JA3_BYTES && bytes.iter().all(is_hexadecimal)
}

fn is_hexadecimal(byte: &u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_has_its_fixed_form_and_nothing_else_is_one() {
        for ja4 in [
            "t13d1516h2_8daaf6152771_02713d6af862",
            "q13d0312h3_55b375c5d22e_06cda9e17597",
            "t12i100500_000000000000_ffffffffffff",
            "ts3i200000_0123456789ab_000000000000",
            "t13d1516h2_8daaf6152771_000000000000",
        ] {
            assert!(is_ja4(ja4.as_bytes()) && ja4.len() == JA4_BYTES, "{ja4}");
        }
        for wrong in [
            "",
            "-",
            "t13d1516h2_8daaf6152771",
            "t13d1516h2_8daaf6152771_02713d6af862_",
            "t13d1516h2_8daaf6152771_02713d6af86",
            "t13d1516h2_8daaf6152771_02713d6af8622",
            "T13d1516h2_8daaf6152771_02713d6af862",
            "t13x1516h2_8daaf6152771_02713d6af862",
            "t13d15a6h2_8daaf6152771_02713d6af862",
            "t13d1516h\n_8daaf6152771_02713d6af862",
            "t13d1516h2_8DAAF6152771_02713d6af862",
            "t13d1516h2 8daaf6152771 02713d6af862",
            "t13d1516h2_*_02713d6af862",
        ] {
            assert!(!is_ja4(wrong.as_bytes()), "{wrong:?}");
        }
        assert!(is_ja3(b"cd08e31494f9531f560d64c695473da9") && !is_ja3(b"CD08E31494F9531F560D64C695473DA9"));
        assert!(!is_ja3(b"cd08e31494f9531f560d64c695473da") && !is_ja3(b""));
    }
}
