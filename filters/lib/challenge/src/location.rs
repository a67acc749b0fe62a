//! The way back to the URL that was asked for.

/// A reference to this path and query on the host that was asked, whoever reads it; `None` where it is no path.
///
/// A browser takes `//host` for another host, and a backslash for a slash. `/.` in front keeps such a path what it is, as
/// `/.//host` means the path `//host`; what may not stand in a URL is percent-encoded, so that nothing that browsers drop
/// (tabs, ends of lines) can bring two slashes together.
pub(crate) fn of_same_url(path: &[u8]) -> Option<Vec<u8>> {
    let rest = path.strip_prefix(b"/")?;
    let mut reference = Vec::with_capacity(path.len() + 2);
    reference.extend_from_slice(if rest.first() == Some(&b'/') { b"/./" } else { b"/" });
    for byte in rest {
        match byte {
            b'!' | b'#'..=b';' | b'=' | b'?'..=b'[' | b']' | b'_' | b'a'..=b'z' | b'|' | b'~' | b'^' | b'{' | b'}' => {
                reference.push(*byte);
            }
            other => reference.extend_from_slice(format!("%{other:02X}").as_bytes()),
        }
    }
    Some(reference)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_never_leads_to_another_host() {
        let of = |path: &str| of_same_url(path.as_bytes()).map(|to| String::from_utf8(to).unwrap());
        for same in ["/", "/a/b?c=d&e=%20+;f#g", "/?next=//evil.test/", "/a//b", "/.//evil.test", "/~x/$,()*'!@:[]"] {
            assert_eq!(of(same).as_deref(), Some(same));
        }
        for (path, to) in [
            ("//evil.test/a?b", "/.//evil.test/a?b"),
            ("///evil.test", "/.///evil.test"),
            ("/\\evil.test", "/%5Cevil.test"),
            ("/\\/evil.test", "/%5C/evil.test"),
            ("/\t/evil.test", "/%09/evil.test"),
            ("/\r\nset-cookie: a=b", "/%0D%0Aset-cookie:%20a=b"),
            ("/é<\">", "/%C3%A9%3C%22%3E"),
        ] {
            assert_eq!(of(path).as_deref(), Some(to), "{path}");
        }
        for none in ["", "*", "https://evil.test/", "evil.test", "\\evil.test"] {
            assert_eq!(of(none), None, "{none}");
        }
        assert_eq!(of_same_url(b"/\xff/").unwrap(), b"/%FF/");
    }
}
