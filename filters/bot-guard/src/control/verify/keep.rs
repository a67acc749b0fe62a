//! Verdicts that outlive a restart: those on verified crawlers. How many others there are is up to those who lie.

use prost::Message;

use crate::{CrawlerVerdict, Finding};

/// The document in the store.
pub(super) const DOCUMENT: &str = "bot-guard.verdicts";

#[derive(Clone, PartialEq, Message)]
struct KeptVerdicts {
    #[prost(message, repeated, tag = "1")]
    verdicts: Vec<KeptVerdict>,
}

#[derive(Clone, PartialEq, Message)]
struct KeptVerdict {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    verdict: Vec<u8>,
}

/// The document of these verdicts.
pub(super) fn document<'a>(verified: impl Iterator<Item = (&'a Vec<u8>, CrawlerVerdict)>) -> Vec<u8> {
    let verdicts =
        verified.map(|(key, verdict)| KeptVerdict { key: key.clone(), verdict: verdict.to_bytes() }).collect();
    KeptVerdicts { verdicts }.encode_to_vec()
}

/// The verdicts of a document that hold now, for no longer than `longest` milliseconds: the clock may have been set back. Of one that cannot be
/// read, none.
pub(super) fn restored(document: &[u8], now: u64, longest: u64) -> Vec<(Vec<u8>, CrawlerVerdict)> {
    let kept = KeptVerdicts::decode(document).unwrap_or_default();
    let verdicts = kept.verdicts.into_iter().filter_map(|KeptVerdict { key, verdict }| {
        let verdict = CrawlerVerdict::read(&verdict).filter(|verdict| verdict.finding == Finding::Verified)?;
        let until = verdict.until.min(now.saturating_add(longest));
        (until > now).then_some((key, CrawlerVerdict { until, renew: verdict.renew.min(until), ..verdict }))
    });
    verdicts.collect()
}
