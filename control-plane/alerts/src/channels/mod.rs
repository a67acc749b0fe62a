//! A message in the words of each channel.

mod event;
mod number;
mod pagerduty;
mod slack;
mod teams;
mod webhook;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use serde_json::Value;

use super::message::Message;
use entities::{AlertChannel, ChannelKind};

/// Where PagerDuty takes events.
const PAGERDUTY: &str = "https://events.pagerduty.com/v2/enqueue";

/// What a channel is given.
pub(super) enum Rendered {
    /// A POST of JSON.
    Post { url: String, headers: HeaderMap, body: Bytes },
    /// One event more.
    Event(Value),
}

/// Writes a message for a channel.
///
/// # Errors
///
/// What the channel lacks, in a sentence without any secret.
pub(super) fn render(channel: &AlertChannel, message: &Message) -> Result<Rendered, String> {
    let body = match channel.kind {
        ChannelKind::Slack => slack::body(message),
        ChannelKind::Teams => teams::body(message),
        ChannelKind::Pagerduty => pagerduty::body(message, key(channel)?),
        ChannelKind::Webhook => webhook::body(message),
        ChannelKind::Event => return Ok(Rendered::Event(event::event(message))),
    };
    Ok(Rendered::Post { url: url(channel)?, headers: headers(channel)?, body: Bytes::from(body.to_string()) })
}

fn key(channel: &AlertChannel) -> Result<&str, String> {
    let key = channel.routing_key.reveal();
    if key.is_empty() { Err("the channel has no `routing_key`".to_owned()) } else { Ok(key) }
}

fn url(channel: &AlertChannel) -> Result<String, String> {
    match (channel.url.reveal(), channel.kind) {
        ("", ChannelKind::Pagerduty) => Ok(PAGERDUTY.to_owned()),
        ("", _) => Err("the channel has no `url`".to_owned()),
        (url, _) => Ok(url.to_owned()),
    }
}

fn headers(channel: &AlertChannel) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in &channel.headers {
        let shown = name.escape_debug();
        let name =
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("`{shown}` is not a name of a header"))?;
        let value = HeaderValue::from_str(value.reveal());
        let mut value = value.map_err(|_| format!("the value of the header `{shown}` cannot be sent"))?;
        value.set_sensitive(true);
        headers.append(name, value);
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(headers)
}

#[cfg(test)]
mod tests;
