//! Where a shared store is, as one URL.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;

/// The prefix of keys where the URL gives none.
pub const DEFAULT_PREFIX: &str = "palisade";
/// How long a connection may take to be made, and an answer to come, where the URL gives no other time.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(2);

/// Where a shared store is. Its `Debug` and `Display` show no password.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisOptions {
    /// What the hosts are.
    pub kind: Kind,
    /// Host names or addresses, with ports; the first that answers is taken.
    pub hosts: Vec<(String, u16)>,
    /// Whether connections are made with TLS.
    pub tls: bool,
    /// A file of certificates (PEM) that a server's certificate is checked against, in place of those of the system.
    pub ca_file: Option<PathBuf>,
    /// The user of an access control list.
    pub user: Option<String>,
    /// The password.
    pub password: Option<String>,
    /// The number of the database; 0 in a cluster.
    pub database: i64,
    /// What all keys begin with, in braces: a cluster keeps them on one node.
    pub prefix: String,
    /// How long a connection may take to be made, and how long an answer may take to come.
    pub timeout: Duration,
}

/// What the hosts of a URL are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One server.
    Single,
    /// Sentinels, which know the server of this name.
    Sentinel(String),
    /// Nodes of a cluster, of which one has the keys.
    Cluster,
}

/// Why a URL is none of a shared store. Shows no password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlError(String);

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}; write redis://[user:password@]host[:6379][/database], rediss:// for TLS, redis+sentinel://host[:26379],.../name \
             or redis+cluster://host[:6379],..., with ?prefix=, ca_file=, password_file= or timeout_millis= as needed",
            self.0
        )
    }
}

impl std::error::Error for UrlError {}

impl RedisOptions {
    /// Whether a text is meant as a URL of a shared store.
    #[must_use]
    pub fn is_url(text: &str) -> bool {
        text.split_once("://").is_some_and(|(scheme, _)| scheme.starts_with("redis") || scheme.starts_with("valkey"))
    }

    /// Reads a URL, and the file of its `password_file`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(url: &str) -> Result<RedisOptions, UrlError> {
        let (scheme, rest) = url.split_once("://").ok_or_else(|| UrlError("there is no `://`".to_owned()))?;
        let (base, what) = scheme.split_once('+').unwrap_or((scheme, ""));
        let tls = match base {
            "redis" | "valkey" => false,
            "rediss" | "valkeys" => true,
            _ => return Err(UrlError(format!("`{base}` is no scheme of a store"))),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        // A password may have an @ in it, a host has none.
        let (login, place) = rest.rsplit_once('@').map_or((None, rest), |(login, place)| (Some(login), place));
        let (hosts, path) = place.split_once('/').unwrap_or((place, ""));
        let (kind, database, port) = match what {
            "" => (Kind::Single, path, 6379),
            "cluster" => (Kind::Cluster, path, 6379),
            "sentinel" => {
                let (name, database) = path.split_once('/').unwrap_or((path, ""));
                if name.is_empty() {
                    return Err(UrlError("the name that sentinels have for the server is missing".to_owned()));
                }
                (Kind::Sentinel(decoded(name)?), database, 26379)
            }
            other => return Err(UrlError(format!("`+{other}` is no kind of a server"))),
        };
        let (user, password) = match login {
            Some(login) => {
                let (user, password) = login.split_once(':').unwrap_or((login, ""));
                (filled(decoded(user)?), filled(decoded(password)?))
            }
            None => (None, None),
        };
        let database = if database.is_empty() { Ok(0) } else { database.parse() };
        let mut options = RedisOptions {
            hosts: hosts.split(',').map(|host| host_and_port(host, port)).collect::<Result<_, _>>()?,
            kind,
            tls,
            ca_file: None,
            user,
            password,
            database: database.map_err(|_| UrlError("the database is no number".to_owned()))?,
            prefix: DEFAULT_PREFIX.to_owned(),
            timeout: DEFAULT_TIMEOUT,
        };
        for (name, value) in query.split('&').filter(|part| !part.is_empty()).filter_map(|part| part.split_once('=')) {
            options.set(name, decoded(value)?)?;
        }
        if options.kind == Kind::Cluster && options.database != 0 {
            return Err(UrlError("a cluster has database 0 alone".to_owned()));
        }
        if options.single() && options.hosts.len() != 1 {
            return Err(UrlError("one server has one host".to_owned()));
        }
        Ok(options)
    }

    fn single(&self) -> bool {
        self.kind == Kind::Single
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), UrlError> {
        match name {
            "prefix" => {
                if value.is_empty() || value.contains(['{', '}']) || value.len() > 64 {
                    return Err(UrlError("a prefix has 1 to 64 bytes and no braces".to_owned()));
                }
                self.prefix = value;
            }
            "ca_file" => self.ca_file = Some(value.into()),
            "password_file" => {
                let read = std::fs::read_to_string(&value);
                let text = read.map_err(|error| UrlError(format!("password_file {value}: {error}")))?;
                self.password = filled(text.trim_end_matches(['\r', '\n']).to_owned());
            }
            "timeout_millis" => {
                let millis = value.parse().ok().filter(|millis| (50..=60_000).contains(millis));
                let millis =
                    millis.ok_or_else(|| UrlError("timeout_millis is a number from 50 to 60000".to_owned()))?;
                self.timeout = Duration::from_millis(millis);
            }
            _ => return Err(UrlError(format!("there is no option `{name}`"))),
        }
        Ok(())
    }
}

fn host_and_port(text: &str, port: u16) -> Result<(String, u16), UrlError> {
    let wrong = || UrlError(format!("`{text}` is no host"));
    let (host, port) = match text.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((host, "")) => (host, Ok(port)),
        Some((host, rest)) => (host, rest.strip_prefix(':').unwrap_or_default().parse()),
        None => text.rsplit_once(':').map_or((text, Ok(port)), |(host, port)| (host, port.parse())),
    };
    if host.is_empty() {
        return Err(wrong());
    }
    Ok((host.to_owned(), port.map_err(|_| wrong())?))
}

fn decoded(text: &str) -> Result<String, UrlError> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(std::borrow::Cow::into_owned).map_err(|_| UrlError("a part of it is no UTF-8".to_owned()))
}

fn filled(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

impl fmt::Display for RedisOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<_> = self.hosts.iter().map(|(host, port)| format!("{host}:{port}")).collect();
        let (what, name) = match &self.kind {
            Kind::Single => ("", String::new()),
            Kind::Sentinel(name) => ("+sentinel", format!("/{name}")),
            Kind::Cluster => ("+cluster", String::new()),
        };
        let base = if self.tls { "rediss" } else { "redis" };
        write!(f, "{base}{what}://{}{name}/{} (prefix {})", hosts.join(","), self.database, self.prefix)
    }
}

impl fmt::Debug for RedisOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisOptions({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_say_where_the_store_is() {
        let options = RedisOptions::parse("redis://localhost").unwrap();
        assert_eq!(options.hosts, [("localhost".to_owned(), 6379)]);
        assert_eq!((options.tls, options.database, options.prefix.as_str()), (false, 0, "palisade"));
        assert_eq!(options.timeout, Duration::from_secs(2));
        let options = RedisOptions::parse("rediss://me:p%40s@x@[::1]:7000/3?prefix=shop&timeout_millis=500").unwrap();
        assert_eq!(options.hosts, [("::1".to_owned(), 7000)]);
        assert_eq!((options.user.as_deref(), options.password.as_deref()), (Some("me"), Some("p@s@x")));
        assert_eq!((options.tls, options.database, options.prefix.as_str()), (true, 3, "shop"));
        assert_eq!(options.timeout, Duration::from_millis(500));
        assert_eq!(options.to_string(), "rediss://::1:7000/3 (prefix shop)");
        let options = RedisOptions::parse("redis+sentinel://:s3cret@a,b:1/main/2").unwrap();
        assert_eq!(options.kind, Kind::Sentinel("main".to_owned()));
        assert_eq!(options.hosts, [("a".to_owned(), 26379), ("b".to_owned(), 1)]);
        assert_eq!((options.user.clone(), options.password.as_deref(), options.database), (None, Some("s3cret"), 2));
        assert!(!format!("{options:?} {options}").contains("s3cret"));
        assert_eq!(RedisOptions::parse("redis+cluster://a,b").unwrap().kind, Kind::Cluster);
    }

    #[test]
    fn a_password_comes_from_a_file() {
        let path = std::env::temp_dir().join(format!("palisade-password-{}", std::process::id()));
        std::fs::write(&path, "from a file\n").unwrap();
        let options = RedisOptions::parse(&format!("redis://user@h?password_file={}", path.display())).unwrap();
        std::fs::remove_file(path).unwrap();
        assert_eq!((options.user.as_deref(), options.password.as_deref()), (Some("user"), Some("from a file")));
    }

    #[test]
    fn what_is_no_url_says_why_without_the_password() {
        let wrong = [
            "localhost",
            "http://h",
            "redis+x://h",
            "redis://",
            "redis://a,b",
            "redis://h:port",
            "redis://h/db",
            "redis+sentinel://h",
            "redis+cluster://h/1",
            "redis://h?colour=red",
            "redis://h?prefix={x}",
            "redis://h?timeout_millis=1",
            "redis://u:s3cret@h?password_file=/nonexistent",
            "redis://u:%ff@h",
        ];
        for url in wrong {
            let error = RedisOptions::parse(url).unwrap_err().to_string();
            assert!(error.contains("rediss://") && !error.contains("s3cret"), "{url}: {error}");
        }
    }
}
