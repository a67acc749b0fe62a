//! The little of CommonMark that the descriptions have: paragraphs, lists, code.

use maud::{Markup, html};

/// Paragraphs and lists.
pub(super) fn rendered(text: &str) -> Markup {
    html! {
        @for block in text.split("\n\n").filter(|block| !block.trim().is_empty()) {
            @if let Some(rest) = block.strip_prefix("- ") {
                ul { @for item in rest.split("\n- ") { li { (inline(item)) } } }
            } @else {
                p { (inline(block)) }
            }
        }
    }
}

/// Text with code in backticks.
pub(super) fn inline(text: &str) -> Markup {
    html! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// A name as the end of a link.
pub(super) fn slug(name: &str) -> String {
    name.chars().map(|char| if char.is_ascii_alphanumeric() || char == '-' { char } else { '-' }).collect()
}
