//! A filter that replaces every body: no plugin of the suite does so yet in a way that a test could steer, and a wrong
//! content-length after it is request smuggling.
//!
//! A request body or a response body that begins with `cut:` loses that mark, one with `grow:` is doubled.
// The SDK's entry macro exports unmangled functions, which the gateway calls.
#![allow(unsafe_code, missing_docs)]

use exchange::{Body, BodyNeed, Build, Exchange, Host, Plugin, PluginDefinition, Slot, Verdict};

const LIMIT: usize = 1 << 16;

struct Rewrite;

fn build(_config: &[u8], _build: &mut Build<'_>) -> Result<Box<dyn Plugin>, String> {
    Ok(Box::new(Rewrite))
}

fn rewritten(body: Body<'_>) -> Verdict {
    match (body.bytes.strip_prefix(b"cut:"), body.bytes.strip_prefix(b"grow:")) {
        (Some(rest), _) => Verdict::ReplaceBody(rest.to_vec()),
        (_, Some(rest)) => Verdict::ReplaceBody([rest, rest].concat()),
        _ => Verdict::Pass,
    }
}

impl Plugin for Rewrite {
    fn request(&self, _exchange: &mut Exchange, has_body: bool, _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        if has_body { Verdict::NeedBody(BodyNeed { limit: LIMIT }) } else { Verdict::Pass }
    }

    fn request_body(&self, _exchange: &mut Exchange, body: Body<'_>, _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        rewritten(body)
    }

    fn response(&self, _exchange: &mut Exchange, has_body: bool, _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        if has_body { Verdict::NeedBody(BodyNeed { limit: LIMIT }) } else { Verdict::Pass }
    }

    fn response_body(&self, _exchange: &mut Exchange, body: Body<'_>, _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        rewritten(body)
    }
}

host::filter!("rewrite", &[PluginDefinition { name: "rewrite", build }]);
