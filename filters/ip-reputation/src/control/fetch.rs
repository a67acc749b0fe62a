//! How the list of a feed is fetched.

use std::str::FromStr as _;
use std::time::Duration;

use axum::http::Method;
use feeds::Format;
use lists::{ListFetch, ListSource};

use super::{FeedFormat, FetchMethod, ThreatFeed};

/// The fetch of a feed.
///
/// # Errors
/// A header that cannot be sent, or a format that cannot be read; for people.
pub(super) fn plan(feed: &ThreatFeed) -> Result<ListFetch, String> {
    let headers = feed.headers.iter().map(|(name, value)| (name.clone(), value.reveal().to_owned())).collect();
    let source = ListSource {
        method: match feed.method {
            FetchMethod::Get => Method::GET,
            FetchMethod::Post => Method::POST,
        },
        url: feed.url.clone(),
        headers,
        timeout: Duration::from_millis(feed.timeout_millis),
        follow_redirects: feed.follow_redirects,
        format: format(feed)?,
        max_answer_bytes: lists::MAX_ANSWER,
        max_entries: usize::try_from(feed.max_entries).unwrap_or(usize::MAX),
        private: feed.allow_private,
        refused: "it is not used unless it is refreshed with `force`",
    };
    // Kept in the store: it stays the same over releases.
    ListFetch::new(source, &format!("{:?} {:?} {:?}", feed.method, feed.format, feed.options))
}

fn format(feed: &ThreatFeed) -> Result<Format, String> {
    let options = &feed.options;
    Ok(match feed.format {
        FeedFormat::CidrLines => Format::CidrLines,
        FeedFormat::Csv => Format::Csv {
            column: usize::try_from(options.column.unwrap_or(0)).unwrap_or(usize::MAX),
            separator: match options.separator {
                None => b',',
                Some(separator) => {
                    let byte = u8::try_from(separator).ok().filter(u8::is_ascii);
                    byte.ok_or_else(|| "the separator is not one byte".to_owned())?
                }
            },
            skip_header: options.skip_header.unwrap_or(false),
        },
        FeedFormat::JsonArray => Format::JsonArray(options.field.clone()),
        FeedFormat::JsonPath => {
            let path = options.path.as_deref().unwrap_or_default();
            Format::JsonPath(feeds::Path::from_str(path).map_err(|error| error.to_string())?)
        }
        FeedFormat::Misp => Format::Misp,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_the_answer_changes_the_source() {
        let source = |feed: &ThreatFeed| plan(feed).unwrap().source;
        let feed = ThreatFeed { url: "https://a/".into(), ..ThreatFeed::default() };
        assert_eq!(source(&feed), source(&ThreatFeed { weight: 1.0, tag: "x".into(), ..feed.clone() }));
        for other in [
            ThreatFeed { url: "https://b/".into(), ..feed.clone() },
            ThreatFeed { method: FetchMethod::Post, ..feed.clone() },
            ThreatFeed { format: FeedFormat::Misp, ..feed.clone() },
            ThreatFeed { max_entries: 7, ..feed.clone() },
            ThreatFeed { allow_private: true, ..feed.clone() },
            ThreatFeed { headers: [("Key".to_owned(), "x".into())].into(), ..feed.clone() },
        ] {
            assert_ne!(source(&feed), source(&other), "{other:?}");
        }
    }
}
