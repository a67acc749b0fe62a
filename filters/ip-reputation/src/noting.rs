//! The signals of the feeds that have a caller's address.
//!
//! A step of the global chain and one of the route's see the same request: a source that one of them has counted is not counted again.

use exchange::{Exchange, Host, Score, Signal};

use crate::{Hit, OTHERS, SOURCE};

/// The feeds that have signals of their own in an exchange, at most: the signals of an exchange are bounded, and other detectors need
/// theirs.
const MAX_SIGNALLED: usize = 8;

/// The longest detail of the signal of all other feeds, in bytes: it is kept whole, so that what it names can be read from it.
const MAX_DETAIL: usize = 480;

/// What stands between the number of the other feeds and their ids.
const HAVE_IT: &str = " more sources have the address: ";

/// Adds the signals of all hits, the strongest first: one each, as far as there is room, and one of all others.
pub(crate) fn note_all(hits: &[Hit<'_>], kind: &'static str, exchange: &mut Exchange, host: &dyn Host) {
    let (known, fresh): (Vec<&Hit<'_>>, Vec<&Hit<'_>>) = hits.iter().partition(|hit| is_counted(hit, &exchange.score));
    // Refusals are reported by the kind of the signals: of a step that reports there is one, also where it adds no points.
    let of_other_kind: Vec<&Hit<'_>> =
        known.into_iter().take(MAX_SIGNALLED).filter(|hit| !has_kind(hit, kind, &exchange.score)).collect();
    for hit in of_other_kind {
        add(0.0, hit.feed.tag.clone(), detail(hit), kind, exchange, host);
    }
    let (own, others) = fresh.split_at_checked(MAX_SIGNALLED).unwrap_or((&fresh, &[]));
    for hit in own {
        note(hit, kind, exchange, host);
    }
    if others.is_empty() {
        return;
    }
    // As if each were a signal: signals count as whole numbers.
    let weight = others.iter().map(|hit| hit.feed.weight.round()).sum::<f64>().min(exchange::MAX_SCORE);
    add(weight, OTHERS.to_owned(), list(others), kind, exchange, host);
}

/// Whether a signal of an earlier step has counted the source of a hit.
fn is_counted(hit: &Hit<'_>, score: &Score) -> bool {
    let own = detail(hit);
    let mut signals = score.signals().iter().filter(|signal| signal.source == SOURCE);
    signals.any(|signal| match signal.tag == OTHERS {
        true => is_listed(&hit.feed.id, &signal.detail),
        // A very long detail is cut.
        false => signal.tag == hit.feed.tag && own.starts_with(&signal.detail),
    })
}

/// Whether a hit has a signal of this kind, alone or among others.
fn has_kind(hit: &Hit<'_>, kind: &str, score: &Score) -> bool {
    let mut signals = score.signals().iter().filter(|signal| signal.source == SOURCE && signal.kind == kind);
    signals.any(|signal| signal.tag == OTHERS || signal.tag == hit.feed.tag)
}

/// The detail of the signal of other feeds: their number, and as many of their ids as fit.
fn list(others: &[&Hit<'_>]) -> String {
    let mut text = format!("{}{HAVE_IT}", others.len());
    for (number, hit) in others.iter().enumerate() {
        let (separator, id) = (if number == 0 { "" } else { ", " }, &hit.feed.id);
        if text.len() + separator.len() + id.len() > MAX_DETAIL {
            break;
        }
        text.push_str(separator);
        text.push_str(id);
    }
    text
}

/// Whether such a detail is about a feed. Where it does not name all of its feeds, it may be about any: a feed that is not counted adds
/// less than one that is counted twice would.
fn is_listed(id: &str, detail: &str) -> bool {
    let Some((number, ids)) = detail.split_once(HAVE_IT) else { return false };
    let named = ids.split(", ").filter(|id| !id.is_empty()).count();
    number.parse() != Ok(named) || ids.split(", ").any(|named| named == id)
}

/// Adds the signals of a hit. Events name a feed by its own tag and as `reputation:<id>`, so the second signal weighs nothing.
fn note(hit: &Hit<'_>, kind: &'static str, exchange: &mut Exchange, host: &dyn Host) {
    let feed = hit.feed;
    let named = format!("reputation:{}", feed.id);
    add(feed.weight, feed.tag.clone(), detail(hit), kind, exchange, host);
    if !feed.class && feed.tag != named {
        add(0.0, named, detail(hit), kind, exchange, host);
    }
}

/// What the signal of a hit says.
fn detail(hit: &Hit<'_>) -> String {
    let Hit { feed, on, .. } = hit;
    match (feed.class, feed.bouncer) {
        _ if feed.zone => format!("the address is on the DNS blocklist `{}`", feed.name),
        (true, _) => format!("the address is of a network of the class `{}`", feed.name),
        (false, true) => format!("the decision service of `{}` has a decision on the {on}", feed.name),
        (false, false) => format!("the address is on the threat feed `{}`", feed.name),
    }
}

fn add(weight: f64, tag: String, detail: String, kind: &'static str, exchange: &mut Exchange, host: &dyn Host) {
    let (source, kind, tag) = (SOURCE.into(), kind.into(), tag.into());
    exchange.score.add(Signal { source, kind, weight, confidence: 1.0, tag, detail, at: host.now() });
}
