//! An incoming webhook of Slack: text for notifications, blocks for the message.

use serde_json::{Value, json};

use super::super::message::Message;

/// The longest text of a header block, in characters; those of the other blocks are far longer than what is put there.
const MAX_HEADER: usize = 150;
/// The longest text of a field.
const MAX_FIELD: usize = 2000;
/// The longest text of a section.
const MAX_SECTION: usize = 3000;

pub(super) fn body(message: &Message) -> Value {
    let headline = message.headline();
    let fields = message.facts().into_iter().map(|(name, value)| text(&format!("{name}: {value}"), MAX_FIELD));
    let mut blocks = vec![
        json!({ "type": "header", "text": text(&headline, MAX_HEADER) }),
        json!({ "type": "section", "fields": fields.collect::<Vec<_>>() }),
    ];
    if !message.detail.is_empty() {
        blocks.push(json!({ "type": "section", "text": text(&message.detail, MAX_SECTION) }));
    }
    let rule = format!("Palisade, alert rule {}", message.rule());
    blocks.push(json!({ "type": "context", "elements": [text(&rule, MAX_FIELD)] }));
    json!({
        "text": escaped(&headline, MAX_SECTION),
        "mrkdwn": false,
        "unfurl_links": false,
        "unfurl_media": false,
        "blocks": blocks,
    })
}

/// Plain text: neither its marks nor its links are read.
fn text(text: &str, most: usize) -> Value {
    json!({ "type": "plain_text", "text": escaped(text, most), "emoji": false })
}

/// With the three characters escaped that mentions and links begin with. It is cut afterwards, and no escape in two: a text
/// that is too long is refused as a whole.
fn escaped(text: &str, most: usize) -> String {
    let mut whole = String::new();
    let mut length = 0;
    for letter in text.chars() {
        let piece = match letter {
            '&' => "&amp;".to_owned(),
            '<' => "&lt;".to_owned(),
            '>' => "&gt;".to_owned(),
            letter => letter.to_string(),
        };
        length += piece.chars().count();
        if length >= most {
            whole.push('…');
            break;
        }
        whole.push_str(&piece);
    }
    whole
}
