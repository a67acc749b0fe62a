//! The request of a match, with secrets masked and within its limits.

use seclang::{MatchedRule, Transaction};

use super::mask::{MASK, Mask, cards};
use super::messages::{MAX_BODY, MAX_TEXT, SampledHeader, SampledRequest};
use super::target::{Input, Target};

/// The most bytes of the target of a request in a sample.
const MAX_URI: usize = 4 * 1024;
/// The most bytes of headers in a sample, and what each costs beside its name and its value.
const MAX_HEADERS: usize = 10 * 1024;
const HEADER_COST: usize = 8;

/// A request as the engine has it: headers with those that the gateway keeps apart, the body decompressed.
///
/// The engine keeps both to the end of the exchange anyway. So an exchange without a match pays nothing for its samples, and one with
/// matches copies its target here and all of the rest for each sample that is made: 30 KiB at most.
pub(super) struct Source<'t> {
    transaction: &'t Transaction,
    uri: Vec<u8>,
    body: &'t [u8],
    /// A part of the request is left out.
    cut: bool,
    /// The body is no longer as its coding says.
    decompressed: bool,
    /// Names of secrets beside the usual ones; `None` if all names are.
    sanitised: Option<Vec<Vec<u8>>>,
    /// Whether secrets are masked.
    masks: bool,
}

impl<'t> Source<'t> {
    /// `has_body` says whether the request announced one. A body in front of no rule yet is left out.
    pub(super) fn new(transaction: &'t Transaction, has_body: bool, decompressed: bool, masks: bool) -> Self {
        let uri = scalar(transaction, b"REQUEST_URI_RAW");
        let body = transaction.request_body_start(MAX_BODY.saturating_add(1));
        let over = body.len() > MAX_BODY || scalar(transaction, b"INBOUND_DATA_ERROR") == b"1";
        let cut = over || uri.len() > MAX_URI || (has_body && body.is_empty());
        let last = |name: &[u8]| name.rsplit(|byte| *byte == b'.').next().unwrap_or_default().to_vec();
        let sanitised = transaction.sanitised_names();
        let sanitised = sanitised.map(|names| names.flat_map(|name| [name.to_vec(), last(name)]).collect());
        Self { transaction, uri, body: body.get(..MAX_BODY).unwrap_or(body), cut, decompressed, sanitised, masks }
    }

    /// The target as it was sent, the query included.
    pub(super) fn uri(&self) -> &[u8] {
        &self.uri
    }

    /// About how many bytes a sample has.
    pub(super) fn size(&self) -> usize {
        self.uri.len().min(MAX_URI).saturating_add(self.body.len()).saturating_add(MAX_HEADERS / 4)
    }

    /// The request for a match, and what matched in it: `value`. `None` if rules sanitise more than can be masked. `last` is what was
    /// masked for the match before: rules often match at one input.
    pub(super) fn sample(
        &self,
        target: Target<'t>,
        value: &[u8],
        rule: &MatchedRule,
        last: &mut Option<Masked<'t>>,
    ) -> Option<Sample> {
        if !self.masks {
            return Some(Sample {
                request: self.request(&mut None, self.uri.clone(), self.body.to_vec()),
                value: capped(value.to_vec(), MAX_TEXT),
                msg: rule.msg.clone(),
            });
        }
        let sanitised = self.sanitised.as_ref()?;
        // Where all of a text matched, its numbers do not stay.
        let whole = matches!(target.input, Input::Uri | Input::Body | Input::Unnamed);
        let cards = if whole { Vec::new() } else { cards(value) };
        let masked = match last.take() {
            Some(masked) if masked.target == target && masked.cards == cards => masked,
            _ => self.masked(target, cards, sanitised),
        };
        let masked = last.insert(masked);
        let mut mask = Mask::new(target, &masked.cards, sanitised);
        let value = masked.shown.clone().unwrap_or_else(|| mask.value(value));
        let is_secret = |variable| Target::read(variable).is_some_and(|target| target.is_secret(sanitised));
        // What the rest of a chain has made of a secret is one as well.
        let any_secret = rule.inputs().any(|(variable, _)| is_secret(variable));
        let is_shown = rule.inputs().any(|(_, value)| shows(&rule.msg, value));
        let msg = if any_secret && is_shown { MASK.to_vec() } else { mask.message(&rule.msg) };
        Some(Sample { request: masked.request.clone(), value: capped(value, MAX_TEXT), msg })
    }

    fn masked(&self, target: Target<'t>, cards: Vec<Vec<u8>>, sanitised: &[Vec<u8>]) -> Masked<'t> {
        let mut mask = Mask::new(target, &cards, sanitised);
        let uri = self.uri.get(..MAX_URI).unwrap_or(&self.uri);
        let masked_uri = mask.uri(uri);
        let masked_body = mask.body(&self.content_type(), self.body);
        let mut request = self.request(&mut Some(&mut mask), masked_uri.clone(), masked_body.clone());
        request.masked = target.is_secret(sanitised);
        let shown = mask.shown([uri, &masked_uri], [self.body, &masked_body]);
        Masked { target, cards, request, shown }
    }

    /// The request with these, as they are masked, and its headers.
    fn request(&self, mask: &mut Option<&mut Mask<'_>>, uri: Vec<u8>, body: Vec<u8>) -> SampledRequest {
        let (headers, cut) = self.headers(mask);
        SampledRequest {
            method: text(&scalar(self.transaction, b"REQUEST_METHOD")),
            protocol: text(&scalar(self.transaction, b"REQUEST_PROTOCOL")),
            headers,
            // A mask may be longer than what it stands for.
            cut: cut || self.cut || uri.len() > MAX_URI || body.len() > MAX_BODY,
            uri: capped(uri, MAX_URI),
            body: capped(body, MAX_BODY),
            masked: false,
        }
    }

    /// The type of the body.
    fn content_type(&self) -> Vec<u8> {
        let headers = self.transaction.added_request_headers();
        let named = headers.filter(|(name, _)| name.eq_ignore_ascii_case(b"content-type"));
        named.last().map(|(_, value)| value.to_vec()).unwrap_or_default()
    }

    /// The headers, and whether some are left out.
    fn headers(&self, mask: &mut Option<&mut Mask<'_>>) -> (Vec<SampledHeader>, bool) {
        let (mut headers, mut left) = (Vec::new(), MAX_HEADERS);
        let mut cut = false;
        for (name, value) in self.transaction.added_request_headers() {
            let name = name.to_ascii_lowercase();
            // The body of the sample is not coded.
            if self.decompressed && name == b"content-encoding" {
                continue;
            }
            cut |= value.len() > MAX_HEADERS;
            let value = value.get(..MAX_HEADERS).unwrap_or(value);
            let value = mask.as_mut().map_or_else(|| value.to_vec(), |mask| mask.header(&name, value));
            let size = name.len().saturating_add(value.len()).saturating_add(HEADER_COST);
            if size > left {
                cut = true;
                continue;
            }
            left = left.saturating_sub(size);
            headers.push(SampledHeader { name, value });
        }
        (headers, cut)
    }
}

/// A request with secrets masked for the matches at one input.
pub(super) struct Masked<'t> {
    target: Target<'t>,
    /// The numbers of cards in what matched, which are not masked.
    cards: Vec<Vec<u8>>,
    request: SampledRequest,
    /// What is shown of the input in place of what a rule has seen.
    shown: Option<Vec<u8>>,
}

/// A request, and what matched in it.
pub(super) struct Sample {
    pub(super) request: SampledRequest,
    pub(super) value: Vec<u8>,
    /// The message of the rule.
    pub(super) msg: Vec<u8>,
}

/// Text of at most [`MAX_TEXT`] bytes; what is no text is replaced.
pub(super) fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes.get(..MAX_TEXT).unwrap_or(bytes));
    text.get(..text.floor_char_boundary(MAX_TEXT)).unwrap_or_default().to_owned()
}

fn shows(msg: &[u8], value: &[u8]) -> bool {
    !value.is_empty() && msg.windows(value.len()).any(|part| part == value)
}

fn capped(mut bytes: Vec<u8>, most: usize) -> Vec<u8> {
    bytes.truncate(most);
    bytes
}

fn scalar(transaction: &Transaction, name: &[u8]) -> Vec<u8> {
    transaction.variable(name, b"").unwrap_or_default()
}
