//! A workflow's webhook of Teams: a message with one adaptive card.

use serde_json::{Value, json};

use super::super::message::Message;

pub(super) fn body(message: &Message) -> Value {
    let mut items = vec![runs(vec![json!({
        "type": "TextRun", "text": message.headline(), "weight": "Bolder", "size": "Large", "color": color(message),
    })])];
    items.extend(message.facts().into_iter().map(|(name, value)| {
        runs(vec![
            json!({ "type": "TextRun", "text": format!("{name}: "), "weight": "Bolder" }),
            json!({ "type": "TextRun", "text": value }),
        ])
    }));
    if !message.detail.is_empty() {
        items.push(runs(vec![json!({ "type": "TextRun", "text": message.detail })]));
    }
    let rule = format!("Palisade, alert rule {}", message.rule());
    items.push(runs(vec![json!({ "type": "TextRun", "text": rule, "isSubtle": true, "size": "Small" })]));
    json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "contentUrl": null,
            "content": {
                "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                "type": "AdaptiveCard",
                "version": "1.4",
                "msteams": { "width": "Full" },
                "body": items,
            },
        }],
    })
}

/// Runs of text: unlike a text block and a set of facts they know no markdown.
fn runs(inlines: Vec<Value>) -> Value {
    json!({ "type": "RichTextBlock", "inlines": inlines })
}

fn color(message: &Message) -> &'static str {
    match message.severity {
        4.. => "Attention",
        3 => "Warning",
        _ => "Default",
    }
}
