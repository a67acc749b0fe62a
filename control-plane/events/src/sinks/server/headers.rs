//! Headers from a file: where a bearer token belongs, which a command line would show to every user of the machine.

use std::io::Read as _;
use std::path::Path;

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

/// The longest file, in bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// What the request itself decides.
const OWN: [HeaderName; 6] = [
    header::CONNECTION,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::HOST,
    header::TRANSFER_ENCODING,
];

/// The headers in `file`, none where there is no file. Errors name the line and never what is in it.
pub(super) fn read(file: Option<&Path>) -> Result<HeaderMap, String> {
    let Some(file) = file else { return Ok(HeaderMap::new()) };
    let shown = file.display();
    let mut text = String::new();
    let open = std::fs::File::open(file).map_err(|error| format!("cannot read {shown}: {error}"))?;
    open.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(|error| format!("cannot read {shown}: {error}"))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(format!("{shown} is longer than {MAX_BYTES} bytes"));
    }
    parse(&text).map_err(|(line, what)| format!("{shown}, line {line}: {what}"))
}

/// `Name: value` on each line; empty lines and those that begin with `#` are left out.
fn parse(text: &str) -> Result<HeaderMap, (usize, &'static str)> {
    let mut headers = HeaderMap::new();
    for (index, line) in text.lines().enumerate() {
        let (number, line) = (index + 1, line.trim());
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = line.split_once(':').ok_or((number, "`Name: value` is expected"))?;
        let name: HeaderName = name.trim().parse().map_err(|_| (number, "this is not a name of a header"))?;
        if OWN.contains(&name) {
            return Err((number, "this header is set by the request itself"));
        }
        let mut value: HeaderValue =
            value.trim().parse().map_err(|_| (number, "the value has characters that a header cannot have"))?;
        value.set_sensitive(true);
        headers.append(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_line_by_line() {
        let headers = parse("# token of the collector\nAuthorization: Bearer a:b \r\n\nx-tenant: shop\n").unwrap();
        assert_eq!(
            (headers.len(), &headers["authorization"], &headers["x-tenant"]),
            (2, &"Bearer a:b".parse().unwrap(), &"shop".parse().unwrap())
        );
        assert!(headers["authorization"].is_sensitive());
    }

    #[test]
    fn errors_name_the_line_and_not_what_is_in_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (text, what) in [
            ("x: 1\nBearer s3cret", "line 2: `Name: value`"),
            ("s3cret token: 1", "line 1: this is not a name"),
            ("\nhost: s3cret", "line 2: this header is set"),
            ("x: s3cret\u{1}", "line 1: the value has characters"),
        ] {
            std::fs::write(file.path(), text).unwrap();
            let error = read(Some(file.path())).unwrap_err();
            assert!(error.contains(what) && !error.contains("s3cret"), "{error}");
        }
        std::fs::write(file.path(), "x".repeat(70_000)).unwrap();
        assert!(read(Some(file.path())).unwrap_err().contains("longer than 65536 bytes"));
        assert!(read(Some(Path::new("/no/such/file"))).unwrap_err().contains("/no/such/file"));
    }
}
