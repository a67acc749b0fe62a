//! Where a URL leads.

use std::net::IpAddr;

use axum::http::Uri;
use axum::http::uri::{Authority, PathAndQuery, Scheme};

use super::error::{OutboundError, OutboundFault};

/// A URL that may be called.
#[derive(Clone)]
pub(super) struct Target {
    tls: bool,
    /// The name in small letters, or an address; one of IPv6 without its brackets.
    host: String,
    port: u16,
    path: PathAndQuery,
}

impl Target {
    /// `http://` or `https://` with a host, without user and password. The fragment is left out.
    pub(super) fn parse(url: &str) -> Result<Target, OutboundError> {
        let url = url.split('#').next().unwrap_or_default();
        // The parser's own words are not repeated: they could hold parts of the URL one day.
        let uri: Uri = url.parse().map_err(|_| wrong("this is not a URL; https://HOST[:PORT]/PATH is expected"))?;
        Target::of(&uri)
    }

    pub(super) fn of(uri: &Uri) -> Result<Target, OutboundError> {
        let tls = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            Some(scheme) if *scheme == Scheme::HTTP => false,
            _ => return Err(wrong("the URL begins with neither https:// nor http://")),
        };
        let authority = uri.authority().filter(|authority| !authority.host().is_empty());
        let authority = authority.ok_or_else(|| wrong("the URL names no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("the URL holds a user or a password; put them into a header"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        let port = port_of(authority, tls)?;
        Ok(Target { tls, host, port, path: path_of(uri)? })
    }

    pub(super) fn tls(&self) -> bool {
        self.tls
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// The path and the query, which may be secret.
    pub(super) fn path(&self) -> &PathAndQuery {
        &self.path
    }

    /// Scheme, host and port: what may be shown, and what is compared where a secret is sent on.
    pub(super) fn origin(&self) -> String {
        format!("{}://{}:{}", self.scheme(), self.shown_host(), self.port)
    }

    pub(super) fn scheme(&self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }

    /// As the header `Host` has it.
    pub(super) fn authority(&self) -> String {
        let usual = if self.tls { 443 } else { 80 };
        if self.port == usual { self.shown_host() } else { format!("{}:{}", self.shown_host(), self.port) }
    }

    fn shown_host(&self) -> String {
        match self.host.parse() {
            Ok(IpAddr::V6(address)) => format!("[{address}]"),
            _ => self.host.clone(),
        }
    }
}

fn port_of(authority: &Authority, tls: bool) -> Result<u16, OutboundError> {
    let after = authority.as_str().rsplit_once(':').filter(|(_, after)| !after.contains(']'));
    match after {
        None | Some((_, "")) => Ok(if tls { 443 } else { 80 }),
        Some((_, port)) => port.parse().map_err(|_| wrong("the URL's port is not a number up to 65535")),
    }
}

fn path_of(uri: &Uri) -> Result<PathAndQuery, OutboundError> {
    let found = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    // `http://host?query` has a path all the same: a request cannot begin with the query.
    let whole = if found.starts_with('/') { found.to_owned() } else { format!("/{found}") };
    whole.parse().map_err(|_| wrong("this is not a URL; its path cannot be sent"))
}

fn wrong(what: &str) -> OutboundError {
    OutboundError::new(OutboundFault::Url, "", what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart() {
        for (url, origin, authority, path) in [
            ("https://Hooks.Example/a?b#c", "https://hooks.example:443", "hooks.example", "/a?b"),
            ("http://h:8080", "http://h:8080", "h:8080", "/"),
            ("http://h:443/", "http://h:443", "h:443", "/"),
            ("https://[2001:DB8::1]:444/x", "https://[2001:db8::1]:444", "[2001:db8::1]:444", "/x"),
            ("http://[::1]?q", "http://[::1]:80", "[::1]", "/?q"),
        ] {
            let target = Target::parse(url).unwrap();
            let shown = (target.origin(), target.authority(), target.path().as_str().to_owned());
            assert_eq!(shown, (origin.to_owned(), authority.to_owned(), path.to_owned()));
        }
    }

    #[test]
    fn a_url_that_cannot_be_used_is_told_without_what_is_in_it() {
        for (url, what) in [
            ("", "not a URL"),
            ("s3cret", "neither https://"),
            ("/s3cret", "neither https://"),
            ("file:///s3cret", "not a URL"),
            ("gopher://h/s3cret", "neither https://"),
            ("ftp://h/s3cret", "neither https://"),
            ("http:///s3cret", "not a URL"),
            ("https://s3cret@h/", "a user or a password"),
            ("https://a:s3cret@h/", "a user or a password"),
            ("https://h:99999/s3cret", "port"),
            ("https://h/s3cret\r\nx: y", "not a URL"),
            ("https://h /s3cret", "not a URL"),
        ] {
            let error = Target::parse(url).err().unwrap_or_else(|| panic!("{url} is taken"));
            assert!(error.to_string().contains(what), "{url}: {error}");
            assert!(!error.to_string().contains("s3cret"), "{error}");
            assert_eq!(error.fault(), OutboundFault::Url);
        }
    }
}
