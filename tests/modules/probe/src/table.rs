//! A plugin that looks up the address in the query of a request (`?192.0.2.1`) in the table of ranges that its configuration
//! names, and answers with what it found: 200 where the address has no label, 403 with the label, 503 where the table is not
//! there.

use std::net::IpAddr;

use exchange::{
    Build, Category, Exchange, Host, Plugin, PluginDefinition, RangesTable, Refusal, ReplyBody, Slot, Verdict,
};

pub(crate) const PLUGIN: PluginDefinition = PluginDefinition::new("probe-table", build);

struct Lookup {
    table: RangesTable,
}

fn build(config: &[u8], build: &mut Build<'_>) -> Result<Box<dyn Plugin>, String> {
    let name = std::str::from_utf8(config).map_err(|error| error.to_string())?;
    Ok(Box::new(Lookup { table: build.ranges(name)? }))
}

impl Plugin for Lookup {
    fn access(&self, exchange: &mut Exchange, _slot: &mut Slot, _host: &dyn Host) -> Verdict {
        let query = String::from_utf8_lossy(exchange.request.query());
        let Ok(address) = query.parse::<IpAddr>() else { return Verdict::Pass };
        let found = self.table.read(|ranges| ranges.find(address));
        let (status, text) = match found {
            Some(None) => (200, "none".to_owned()),
            Some(Some(label)) => (403, label.to_string()),
            None => (503, "no table".to_owned()),
        };
        let bytes = text.into_bytes();
        let refusal = Refusal::new(status, Category::Threat, "looked up by a probe");
        Verdict::Refuse(refusal.body(ReplyBody::Bytes { content_type: "text/plain", bytes }))
    }
}
