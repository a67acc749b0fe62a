//! The plugins of the filter, which tests link in as well.

use exchange::{Action, Body, BodyNeed, Build, Decision, Exchange, Host, Plugin, PluginDefinition, Slot, Verdict};

/// Both plugins.
pub(crate) const PLUGINS: &[PluginDefinition] =
    &[PluginDefinition::new("rewrite", build), PluginDefinition::new("wait", build_wait)];

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

/// How long a step holds a request, in milliseconds.
const HOLD_MILLIS: u32 = 50;

/// Where the step behind the other holds the request, and what it wants of the body.
struct Wait(Vec<u8>);

fn build_wait(config: &[u8], _build: &mut Build<'_>) -> Result<Box<dyn Plugin>, String> {
    Ok(Box::new(Wait(config.to_vec())))
}

impl Wait {
    fn hold(&self, at: &[u8]) -> Verdict {
        if !self.0.ends_with(at) {
            return Verdict::Pass;
        }
        let decision = Decision::new(Action::Tarpit, 0.0, "").enforced().held(HOLD_MILLIS);
        Verdict::Enforce { decision, hold_millis: HOLD_MILLIS, reply: None }
    }
}

impl Plugin for Wait {
    fn request(&self, _exchange: &mut Exchange, has_body: bool, _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        let need = BodyNeed { limit: 2 * LIMIT };
        match self.0.as_slice() {
            words if has_body && words.starts_with(b"need") => Verdict::NeedBody(need),
            words if has_body && words.starts_with(b"read") => Verdict::ReadBody(need),
            _ => self.hold(b"hold at headers"),
        }
    }

    fn request_body(&self, _exchange: &mut Exchange, _body: Body<'_>, _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        self.hold(b"hold at body")
    }
}
