//! What plugins gather for filters beside entities, for as long as the control plane runs.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use base::clock;
use entities::{EntityService, EntitySource};
use events::{EventHub, EventTap, Part};
use kit::{
    AskedBody, BoxFuture, EventStream, GatewayReports, Gateways, ReportStream, SourceHealth, Sources, Surroundings,
    Trouble,
};
use link::{LinkHub, QuestionBody, ReportReceiver, Reports};
use tokio::sync::watch;

use crate::cli::Parts;

/// Changes of entities within this time are one to gatherers.
const TOGETHER: Duration = Duration::from_millis(100);

/// Sources that fail are troubles of the control plane.
struct Health(EventHub);

/// Reports of a kind, as gatherers see them.
struct Stream(ReportReceiver);

/// Events, as gatherers see them.
struct Tap(EventTap);

/// The body of a question, as gatherers see it.
struct Body(QuestionBody);

/// Starts the gatherers of all plugins.
pub(crate) fn start(parts: &Parts, link: &LinkHub, events: EventHub) {
    let kinds = link.reports();
    let trouble: Trouble = Arc::new(|plugin, what| tracing::warn!(plugin, "material is not up to date: {what}"));
    let tapped = events.clone();
    let (answers, with_body) = (link.answers().clone(), link.answers().clone());
    let gateways = Gateways {
        events: Arc::new(move |plugin| Box::new(Tap(tapped.tap(plugin)))),
        has_trail: |module| entities::plugins::active().any(|plugin| plugin.charged_by_trail && plugin.name == module),
        answer: Arc::new(move |topic, answer| answers.register_encoded(topic, answer)),
        answer_with_body: Arc::new(move |topic, answer| {
            let answer = Arc::new(move |data, body| answer(data, Box::new(Body(body)) as Box<dyn AskedBody>));
            with_body.register_encoded_with_body(topic, answer);
        }),
    };
    let around = Surroundings {
        entities: follow(&parts.entities),
        material: link.material(),
        store: Arc::clone(&parts.store),
        outbound: parts.outbound.clone(),
        health: Arc::new(Health(events)),
        clock: clock::now_millis,
        trouble,
        runtimes: parts.runtimes.clone(),
        reports: Arc::new(move |kind| Box::new(Stream(kinds.receive(kind)))),
        gateways,
    };
    for plugin in entities::plugins::active() {
        if let Some(gather) = plugin.gather {
            tokio::spawn(gather(Sources::new(plugin, &around)));
        }
    }
}

/// The entities as gatherers see them: a change at once, further ones together after [`TOGETHER`]. Each gatherer looks at all of its
/// entities after each change, which is too much for each of hundreds of writes a second.
fn follow(entities: &EntityService) -> kit::EntityWatch {
    let mut changes = entities.subscribe();
    let now: Arc<dyn EntitySource + Send + Sync> = changes.borrow_and_update().clone();
    let (sender, seen) = watch::channel(now);
    tokio::spawn(async move {
        while changes.changed().await.is_ok() {
            let now: Arc<dyn EntitySource + Send + Sync> = changes.borrow_and_update().clone();
            if sender.send(now).is_err() {
                return;
            }
            tokio::time::sleep(TOGETHER).await;
        }
    });
    seen
}

impl ReportStream for Stream {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<GatewayReports>> + Send + '_>> {
        Box::pin(async {
            let Reports { node, reports } = self.0.next().await?;
            Some(GatewayReports { node, reports })
        })
    }
}

impl AskedBody for Body {
    fn length(&self) -> u64 {
        self.0.length()
    }

    fn is_complete(&self) -> bool {
        self.0.is_complete()
    }

    fn collect(self: Box<Self>, limit: usize) -> BoxFuture<'static, Option<Vec<u8>>> {
        Box::pin(async move { self.0.collect(limit).await.ok() })
    }
}

impl EventStream for Tap {
    fn next(&mut self) -> BoxFuture<'_, Vec<Arc<[u8]>>> {
        Box::pin(self.0.next())
    }
}

impl SourceHealth for Health {
    fn fails(&self, subject: &str, why: &str) {
        self.0.trouble(Part::Sources, subject, why);
    }

    fn works(&self, subject: &str) {
        self.0.recovered(Part::Sources, subject);
    }

    fn ends(&self, subject: &str) {
        self.0.dismiss_trouble(Part::Sources, subject);
    }
}
