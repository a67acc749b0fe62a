//! A plugin that reports each request, as often as its query says (`?1000`), under the kind `probe`, and what its timer does under
//! `probe-timer`. Its configuration says where the timer runs: `all` workers, or `one`.

use exchange::{Build, Exchange, Host, Plugin, PluginDefinition, Slot, Timer, Verdict, Workers};

pub(crate) const PLUGIN: PluginDefinition = PluginDefinition::new("probe-report", build);

struct Reporter {
    on: Workers,
}

fn build(config: &[u8], _build: &mut Build<'_>) -> Result<Box<dyn Plugin>, String> {
    let on = if config == b"one" { Workers::One { lease: "svc.probe" } } else { Workers::All };
    Ok(Box::new(Reporter { on }))
}

impl Plugin for Reporter {
    fn request(&self, exchange: &mut Exchange, _has_body: bool, _slot: &mut Slot, host: &dyn Host) -> Verdict {
        let count = String::from_utf8_lossy(exchange.request.query()).parse().unwrap_or(1_u32);
        (0..count).for_each(|number| host.send_report("probe", number.to_string().into_bytes()));
        Verdict::Pass
    }

    fn timer(&self) -> Option<Timer> {
        Some(Timer { millis: 500, on: self.on })
    }

    fn on_timer(&self, host: &dyn Host) {
        let word = if self.on == Workers::All { "all" } else { "one" };
        host.send_report("probe-timer", word.into());
    }
}
