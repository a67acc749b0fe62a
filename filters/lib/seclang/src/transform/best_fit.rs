//! Best-fit mapping of Unicode to ASCII, as Windows does it for code page 20127 (US-ASCII).
//!
//! Servers that convert `%uHHHH` to a narrow character set map look-alikes to ASCII: `%u2039` may become `<`. Rules must
//! see what such a server would see.

/// Runs of consecutive code points: the first, and the ASCII byte of each; NUL where there is no mapping.
const RUNS: &[(u16, &[u8])] = &[
    (0x00a0, b" !c\0$Y|\0\0Ca<\0-R\0\0\x0023\0\0\0.,1o>\0\0\0\0AAAAAAACEEEEIIIIDNOOOOO\0OUUUUY\0\0aaaaaaaceeeeiiii"),
    (0x00f1, b"nooooo\0ouuuuy\0yAaAaAaCcCcCcCcDdDdEeEeEeEeEeGgGgGgGgHhHhIiIiIiIiIi\0\0JjKk\0LlLlLl\0\0L"),
    (0x0142, b"lNnNnNn\0\0\0OoOoOoOoRrRrRrSsSsSsSsTtTtTtUuUuUuUuUuUuWwYyYZ\0ZzZz\0b\0\0\0\0\0\0\0\0D\0\0\0\0\0\0\0F"),
    (0x0192, b"f\0\0\0\0I\0\0l\0\0\0\0OOo\0\0\0\0\0\0\0\0\0t\0\0TUu\0\0\0\0\0z"),
    (0x01cd, b"AaIiOoUuUuUuUuUu\0Aa\0\0\0\0GgGgKkOoOo\0\0j"),
    (0x0261, b"g"),
    (0x02b9, b"'\"\0'\0\0\0\0\0\0\0^\0^\0'\0\0`\0_"),
    (0x02dc, b"~"),
    (0x0300, b"`\0^~\0\0\0\0\0\0\0\0\0\0\""),
    (0x0331, b"__"),
    (0x2000, b"       \0\0\0\0\0\0\0\0\0--\0--\0\0\0'',\0\"\"\"\0\0\0.\0\0\0.\0\0\0\0\0\0\0\0\0\0\0'\0\0`\0\0\0<>"),
    (0x2122, b"T"),
];

/// The byte a code unit is mapped to.
///
/// Fullwidth forms (U+FF01 to U+FF5E) map to the ASCII character they are a form of, other known code points to their
/// best fit; any other code point is cut to its low byte.
pub(super) fn best_fit(code: u16) -> u8 {
    if let Some(byte) = fullwidth(code) {
        return byte;
    }
    let [_, low] = code.to_be_bytes();
    let after = RUNS.partition_point(|&(first, _)| first <= code);
    let run = after.checked_sub(1).and_then(|index| RUNS.get(index));
    match run.and_then(|&(first, bytes)| bytes.get(usize::from(code - first))) {
        Some(&byte) if byte != 0 => byte,
        _ => low,
    }
}

/// The ASCII byte of a fullwidth form.
pub(super) fn fullwidth(code: u16) -> Option<u8> {
    let [high, low] = code.to_be_bytes();
    (high == 0xff && (0x01..=0x5e).contains(&low)).then(|| low + 0x20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_sorted_and_apart() {
        for pair in RUNS.windows(2) {
            assert!(usize::from(pair[0].0) + pair[0].1.len() <= usize::from(pair[1].0));
        }
    }

    #[test]
    fn maps_look_alikes() {
        let cases: &[(u16, u8)] = &[
            (0x0041, b'A'),
            (0x00a0, b' '),
            (0x00ab, b'<'),
            (0x0100, b'A'),
            (0x017f, 0x7f),
            (0x2018, b'\''),
            (0x2019, b'\''),
            (0x201c, b'"'),
            (0x2039, b'<'),
            (0x203a, b'>'),
            (0x2122, b'T'),
            (0x3000, 0x00),
            (0xff01, b'!'),
            (0xff1c, b'<'),
            (0xff1f, b'?'),
            (0xff5e, b'~'),
            (0xff5f, 0x5f),
            (0xff00, 0x00),
        ];
        for &(code, byte) in cases {
            assert_eq!(best_fit(code), byte, "U+{code:04X}");
        }
    }
}
