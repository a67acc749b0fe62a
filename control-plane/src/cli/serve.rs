//! `palisade serve`: puts the parts of the control plane together and runs them until it is told to stop.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::error::CliError;
use crate::config::{DRAIN, ServeConfig};
use crate::{gather, health, stored};
use accounts::{AdminKey, Scope};
use alerts::Alerts;
use api::access::{Access, guard};
use api::console::{self, Console, Replaying, StoredEvents};
use api::rest::log_level::Logging;
use api::rest::report::Reports;
use api::rest::{self, AppState, RestConfig};
use base::atomic_file::{self, Readers};
use base::clock;
use compiler::publish;
use compiler::{Compiler, Settings};
use entities::{Admission, EntityService, Route};
use events::{self, EventHub, Exporter, Outbox, Part, Stored};
use fabric::challenges::{self, Verifier};
use fabric::{BanRules, Bans, Fabric};
use kit::{ChallengeRoot, Runtimes};
use link::{self, LinkHub, NodePort};
use listen::{self, Door, Limits, Opened};
use outbound::Outbound;
use replays::Replays;
use store::{SqliteOptions, SqliteStore, Store, StoreError};
use telemetry::{LogControl, Metrics, Readiness, init_logs};
use threat_gate::TRAFFIC;
use xds::Hub;

/// The first key of a new store, in its directory.
const FIRST_KEY_FILE: &str = "admin-key.json";

/// How long events may take to be written once nothing more comes.
const FLUSH: Duration = Duration::from_secs(5);

/// What the parts of a running control plane are given to work with. Cheap to clone.
#[derive(Clone)]
pub struct Parts {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The entities and the way to change them.
    pub entities: EntityService,
    /// Calls to addresses that come from entities.
    pub outbound: Outbound,
    /// What plugins have at work.
    pub runtimes: Runtimes,
    /// Where a part registers that must be up before the control plane is ready.
    pub readiness: Readiness,
    /// Becomes true when the control plane was told to stop; a part then finishes within [`DRAIN`].
    pub stopping: watch::Receiver<bool>,
}

/// Runs the control plane until SIGTERM or SIGINT.
pub(super) async fn run(config: ServeConfig) -> Result<(), CliError> {
    let logs = init_logs(config.log_format);
    let metrics = Metrics::install();
    let (stop, stopping) = watch::channel(false);
    // First of all, so that a signal during the start is not lost.
    let signals = listen_for_signals(stop)?;

    // Before anything is made or listened on: a file that is wrong is the operator's to mend first.
    config.tls.may_listen(config.xds_listen).map_err(|error| CliError::Other(error.to_string()))?;
    let listening = config.tls.open().map_err(|error| CliError::Other(error.to_string()))?;
    config.login.rules(None).map_err(CliError::Other)?;
    let mut exporters = config.events.exporters().map_err(|error| CliError::Other(error.to_string()))?;

    let store = open_store(&config).await?;
    first_key(store.as_ref(), &config).await?;
    let entities = EntityService::open(Arc::clone(&store)).await?;
    tokio::spawn(entities.clone().follow_store());
    tokio::spawn(entities.clone().sweep_history());
    let outbound = Outbound::new(config.outbound_allow.clone());
    let runtimes = Runtimes::of(entities::plugins::active());
    let readiness = Readiness::default();
    let parts = Parts { store: Arc::clone(&store), entities, outbound, runtimes, readiness, stopping };

    let rest = bind("admin API", config.listen).await?;
    let xds = bind("xDS", config.xds_listen).await?;
    let (rest_address, xds_address) = (address(&rest)?, address(&xds)?);
    let stored = stored::open(&config).await.map_err(CliError::Other)?;
    let storing = stored.iter().map(|(stored, _)| Stored::new(Arc::clone(stored), clock::now_millis));
    exporters.extend(storing.map(Exporter::Store));
    let (format, spill) = (config.events.events_format.into(), config.events.spill(&config.data));
    let events = EventHub::start(exporters, format, spill.as_ref(), clock::now_millis)
        .map_err(|error| CliError::Other(error.to_string()))?;
    let others = store.elsewhere();
    events::restore_incidents(store.as_ref(), &events).await?;
    let challenge_root = challenges::root(store.as_ref()).await?;
    tokio::spawn(challenges::sweep(Arc::clone(&store)));
    let gateway_side = start_gateway_side(&parts, &config, challenge_root, events.clone());
    let counts = Arc::new(link::start_counts(store.as_ref(), clock::now_millis).await?);
    gateway_side.link.count_with(Arc::clone(&counts), Arc::clone(&store));
    let counted_once = entities::plugins::active().flat_map(|plugin| plugin.counted_once.iter().copied()).collect();
    tokio::spawn(gateway_side.link.share(Arc::clone(&store), counted_once));
    tokio::spawn(link::sweep_counts(counts, Arc::clone(&store), clock::now_millis));
    let clock = Arc::new(clock::now_millis);
    let plain = listening.admin.is_none().then_some(rest_address);
    // With the port that was taken, if it was 0.
    let login = config.login.rules(plain).map_err(CliError::Other)?;
    let runtimes = parts.runtimes.clone();
    let console = Console::new(
        Arc::clone(&parts.store),
        parts.entities.clone(),
        events.clone(),
        plain,
        clock.clone(),
        runtimes,
        login,
    );
    let announcer = gateway_side.link.announcer().clone();
    let fabric = Fabric::new(Arc::clone(&store), parts.entities.clone(), events.clone(), announcer, clock);
    let link = gateway_side.link.clone();
    fabric.show_tables(move || link.tables());
    fabric.load().await?;
    tokio::spawn(fabric.clone().keep_ledger());
    tokio::spawn(fabric.clone().sweep());
    tokio::spawn(fabric.clone().follow_others());
    tokio::spawn(fabric.clone().follow_setbacks());
    let limits = Limits::default();
    let alerts = start_alerts(&parts, &events);
    let watched = stored::start(&stored, Arc::clone(&store), &events, parts.stopping.clone());
    let of_routes = parts.entities.clone();
    events.count_by(move |name| stored::is_counted_by(name, |id| of_routes.current().get::<Route>(id).is_some()));
    tokio::spawn(stored::count_requests(gateway_side.link.reports().receive(TRAFFIC), events.clone()));
    let settings = config.replay.settings(&config.data, store.is_dedicated());
    let replays = Replays::open(settings, Arc::clone(&store)).await;
    let of_events = stored.as_ref().map(|(stored, _)| Arc::clone(stored));
    let replaying = Replaying::new(replays.clone(), Arc::clone(&gateway_side.compiler), of_events);
    let more = (fabric, alerts.clone(), watched, replaying);
    // Not before the ledger and the alerts listen: gateways that were waiting for this start report at once.
    let gateways = serve_gateways(xds, &listening, &gateway_side, parts.stopping.clone());
    let admin_side = tokio::spawn(listen::admin::serve(
        Door::new("admin", rest, listening.admin.clone(), limits.handshake),
        rest_router(&config, &parts, &metrics, logs, gateway_side.reports.clone(), &console, more),
        limits,
        parts.stopping.clone(),
    ));
    follow_files(&listening);
    tokio::spawn(upkeep(metrics, listening.clone(), store.leads()));
    tokio::spawn(console.clone().watch_provider());
    tokio::spawn(sweep_sessions(console));
    let outbox = Outbox::new(Arc::clone(&store), events.clone());
    tokio::spawn(outbox.clone().run());
    tokio::spawn(health::watch(
        Arc::clone(&store),
        parts.entities.clone(),
        events.clone(),
        gateway_side.reports.nodes.clone(),
    ));
    tokio::spawn(events::keep_incidents(Arc::clone(&store), events.clone(), others));
    tokio::spawn(events::keep_rollups(Arc::clone(&store), events.clone()));

    warn_of_open_ports(&listening, rest_address, xds_address);
    tracing::info!(rest = %rest_address, xds = %xds_address, data = %config.data.display(), "ready");
    if let Some(file) = &config.ready_file {
        write_ready_file(file, rest_address, xds_address)?;
    }

    let mut stopping = parts.stopping.clone();
    // An error means that the sender is gone, which is a reason to stop as well.
    let _ = stopping.wait_for(|stop| *stop).await;
    tracing::info!("stopping: no new connections, requests in progress have {} s", DRAIN.as_secs());
    replays.close().await;
    let drained = tokio::time::timeout(DRAIN, async {
        let _ = admin_side.await;
        let _ = gateways.await;
    });
    if drained.await.is_err() {
        tracing::warn!("requests were still in progress and are aborted");
    }
    if tokio::time::timeout(FLUSH, alerts.flush()).await.is_err() {
        tracing::warn!("alerts could not be delivered in time; they are sent after the next start");
    }
    if let Err(error) = outbox.look().await {
        tracing::warn!(%error, "the last events in the store are sent after the next start");
    }
    // Once nothing is left that could add to them; with time of its own, so that those cut off are told as well. What is left
    // after that goes to the disk or is lost.
    let _ = tokio::time::timeout(FLUSH, events.flush()).await;
    events.close().await;
    // What is written by now is not sent again at the next start.
    if let Err(error) = outbox.look().await {
        tracing::warn!(%error, "removing sent events from the store failed");
    }
    if let Err(error) = events::save_incidents(store.as_ref(), &events).await {
        tracing::warn!(%error, "storing the last changes of incidents failed");
    }
    if let Err(error) = events::save_rollups(store.as_ref(), &events).await {
        tracing::warn!(%error, "the counts of the last seconds could not be added to the rollups");
    }
    if let Some((stored, _)) = &stored {
        stored.close().await?;
    }
    signals.abort();
    store.close().await?;
    tracing::info!("stopped");
    Ok(())
}

/// What gateways talk to, and what is known from them.
struct GatewaySide {
    reports: Reports,
    link: LinkHub,
    compiler: Arc<Compiler>,
}

/// Starts what gateways talk to, but for the port: see [`serve_gateways`].
fn start_gateway_side(
    parts: &Parts,
    config: &ServeConfig,
    challenge_root: ChallengeRoot,
    events: EventHub,
) -> GatewaySide {
    let hub = Hub::with_clock(clock::now_millis);
    let bans = Bans::new(Arc::clone(&parts.store), events.clone(), clock::now_millis);
    let rules = parts.entities.clone();
    let bans = bans.with_rules(move || BanRules::of(&rules.current()));
    tokio::spawn(bans.clone().keep_unrecorded());
    let link = LinkHub::new(events.clone(), bans, hub.clone(), clock::now_millis);
    link.answer_from(Arc::clone(&parts.store));
    let Parts { store, entities, outbound, .. } = parts.clone();
    link.verify_with(Arc::new(Verifier::new(store, entities, outbound, events.clone(), clock::now_millis)));
    let settings = Settings { filters_dir: config.filters_dir.clone(), link: true, challenge_root };
    let compiler = Arc::new(Compiler::new(settings).with_material(link.material()));
    parts.entities.add_admission(Arc::clone(&compiler) as Arc<dyn Admission>);
    let first = parts.readiness.register("first snapshot");
    let (entities, told) = (parts.entities.clone(), events.clone());
    let publishing = publish::run(entities, Arc::clone(&compiler), hub.clone(), told, first, parts.stopping.clone());
    let (publishing, told) = (tokio::spawn(publishing), events.clone());
    tokio::spawn(async move {
        if let Err(error) = publishing.await {
            told.trouble(Part::Publication, "all", &format!("nothing is published any more: {error}"));
        }
    });

    gather::start(parts, &link, events.clone());
    GatewaySide { reports: Reports { events, nodes: hub }, link, compiler }
}

/// Serves xDS and the node link on `--xds-listen` from here on. The task ends when `stopping` becomes true.
fn serve_gateways(
    listener: TcpListener,
    listening: &Opened,
    side: &GatewaySide,
    mut stopping: watch::Receiver<bool>,
) -> tokio::task::JoinHandle<()> {
    let port = NodePort {
        tls: listening.xds.clone(),
        tokens: listening.tokens.clone(),
        shared_certificates: listening.shared_certificates,
        limits: Limits::default(),
    };
    let (hub, link) = (side.reports.nodes.clone(), side.link.clone());
    tokio::spawn(async move {
        let stopped = async move {
            let _ = stopping.wait_for(|stop| *stop).await;
        };
        if let Err(error) = link::serve_with(port, listener, hub, link, stopped).await {
            tracing::error!(%error, "the xDS and node port has failed");
        }
    })
}

/// Alert rules act from here on. Before anything is served: a ban by hand is to be told.
fn start_alerts(parts: &Parts, events: &EventHub) -> Alerts {
    let (entities, outbound) = (parts.entities.clone(), parts.outbound.clone());
    let (store, clock) = (Arc::clone(&parts.store), Arc::new(clock::now_millis));
    let alerts = Alerts::new(store, entities, events.clone(), outbound, clock);
    tokio::spawn(alerts.clone().run());
    alerts
}

fn rest_router(
    config: &ServeConfig,
    parts: &Parts,
    metrics: &Metrics,
    logs: LogControl,
    reports: Reports,
    console: &Console,
    (fabric, alerts, stored, replaying): (Fabric, Alerts, StoredEvents, Replaying),
) -> axum::Router {
    let hub = reports.nodes.clone();
    let state = AppState {
        store: Arc::clone(&parts.store),
        entities: parts.entities.clone(),
        access: Access::new(Arc::clone(&parts.store), reports.events.clone()),
        events: reports.events.clone(),
        readiness: parts.readiness.clone(),
        metrics: metrics.clone(),
        config: Arc::new(RestConfig {
            entity_group: config.entity_group.clone(),
            max_body_bytes: config.max_body_bytes,
            hosts: config.admin_host.clone(),
        }),
    };
    let logging = Logging { logs, events: state.events.clone() };
    let logging = guard(rest::log_level::router(logging), state.access.clone(), None);
    let reports = rest::report::router(reports).merge(console::report_router(console));
    let reports = guard(reports, state.access.clone(), Some(Scope::Report));
    let further = reports
        .merge(logging)
        .merge(console::page_router())
        .merge(console::router(console))
        .merge(console::entities_router(console, &state))
        .merge(console::events_router(console, stored))
        .merge(console::replay_router(console, replaying))
        .merge(console::security_router(console, fabric, hub, alerts));
    rest::router_with(state, further)
}

/// Follows the files of TLS and tokens, where there are any. Without them SIGHUP ends the process, as it does by default.
fn follow_files(listening: &Opened) {
    let followed = listening.followed();
    if !followed.is_empty() {
        tokio::spawn(listen::follow(followed));
    }
}

fn warn_of_open_ports(listening: &Opened, rest: SocketAddr, xds: SocketAddr) {
    if !rest.ip().is_loopback() && listening.admin.is_none() {
        tracing::warn!(%rest, "the admin API is reachable from outside and speaks plain HTTP: use --tls-cert, or put TLS in front of it");
    }
    let shared = listening.tokens.as_ref().map_or(0, |tokens| tokens.current().shared());
    if shared > 0 {
        tracing::warn!(
            shared,
            "node tokens are shared: a gateway with one of them may claim the id of another; bind them with `node=ID TOKEN`, or derive one for each (`palisade node-token derive`)"
        );
    }
    if xds.ip().is_loopback() {
        return;
    }
    if listening.tokens.is_none() && !listening.client_certificates {
        tracing::warn!(%xds, "the xDS port is reachable from outside and, with --xds-open, accepts every client as a gateway: clients can read the configuration and send events and bans");
    }
    if listening.xds.is_none() {
        tracing::warn!(%xds, "the xDS port is reachable from outside and speaks plain HTTP/2, so snapshots and tokens can be intercepted: use --xds-tls-cert");
    }
}

async fn open_store(config: &ServeConfig) -> Result<Arc<dyn Store>, CliError> {
    if let Some(url) = &config.store {
        if config.max_store_mib.is_some() {
            let message = "--max-store-mib limits the file of an embedded store; limit a server with its own maxmemory";
            return Err(CliError::Other(message.to_owned()));
        }
        return Ok(Arc::new(super::migrate_store::open_shared(url, &config.data, true).await?));
    }
    /// Pages of the store's file in a MiB.
    const PAGES_PER_MIB: u32 = 256;
    let options = SqliteOptions { exclusive: true, max_pages: config.max_store_mib.map(|mib| mib * PAGES_PER_MIB) };
    let data = config.data.clone();
    let opening = tokio::task::spawn_blocking(move || SqliteStore::open(&data, options));
    let store = opening.await.map_err(|error| CliError::Other(format!("the store could not be opened: {error}")))?;
    Ok(Arc::new(store?))
}

/// Gives a store without any key its first one, so that a new control plane can be used at once.
async fn first_key(store: &dyn Store, config: &ServeConfig) -> Result<(), CliError> {
    if !store.admin_keys().await?.is_empty() {
        return Ok(());
    }
    if let Some(file) = &config.first_admin_key_file {
        let key = given_key(file)?;
        tracing::info!(id = %key.id, file = %file.display(), "took the first admin key from the file");
        return Ok(store.admin_key_put(key).await?);
    }
    let data = &config.data;
    let issued = AdminKey::issue("first key", &Scope::ALL, clock::now_millis(), None)
        .map_err(|error| CliError::Io("make a secret".to_owned(), error))?;
    let file = data.join(FIRST_KEY_FILE);
    let text = format!("{}\n", json!({ "id": issued.key.id, "secret": issued.secret }));
    // The file comes first: should the process end in between, the next start makes another key and overwrites it.
    atomic_file::replace(&file, text.as_bytes(), Readers::Owner)
        .map_err(|error| CliError::Io(format!("write {}", file.display()), error))?;
    store.admin_key_put(issued.key.clone()).await?;
    // Not through the log: logs travel further than a terminal, and the secret must not.
    let _ = writeln!(
        std::io::stderr(),
        "The store had no admin key, so one was made. It is shown once, and kept in {}:\n  id:     {}\n  secret: {}",
        file.display(),
        issued.key.id,
        issued.secret
    );
    tracing::info!(id = %issued.key.id, file = %file.display(), "made the first admin key");
    Ok(())
}

/// The key of `--first-admin-key-file`. Several control planes that start at once on an empty store all put the same one.
fn given_key(file: &Path) -> Result<AdminKey, CliError> {
    let failed = |error| CliError::Io(format!("read {}", file.display()), error);
    let text = std::fs::read(file).map_err(failed)?;
    let given: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
    let field = |name: &str| given.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
    let key = AdminKey::given("first key", field("id"), field("secret"), &Scope::ALL, clock::now_millis());
    key.ok_or_else(|| {
        CliError::Other(format!(
            "{}: expected {{\"id\": \"...\", \"secret\": \"...\"}}, with 1 to 64 of A-Z a-z 0-9 . _ - and 32 to 256 printable characters",
            file.display()
        ))
    })
}

fn write_ready_file(file: &Path, rest: SocketAddr, xds: SocketAddr) -> Result<(), CliError> {
    let text = format!("{}\n", json!({ "rest": rest.to_string(), "xds": xds.to_string(), "pid": std::process::id() }));
    // One that is left of an earlier process may be another user's, and tells of nothing that is there.
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => atomic_file::replace(file, text.as_bytes(), Readers::Owner),
    }
    .map_err(|error| CliError::Io(format!("write {}", file.display()), error))
}

async fn bind(what: &str, address: SocketAddr) -> Result<TcpListener, CliError> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|error| CliError::Io(format!("listen on {address} for the {what}"), error))
}

fn address(listener: &TcpListener) -> Result<SocketAddr, CliError> {
    listener.local_addr().map_err(|error| CliError::Io("tell the listener's address".to_owned(), error))
}

fn listen_for_signals(stop: watch::Sender<bool>) -> Result<tokio::task::JoinHandle<()>, CliError> {
    let listen = |kind| signal(kind).map_err(|error| CliError::Io("listen for signals".to_owned(), error));
    let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    Ok(tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop.send_replace(true);
        // A second signal means that nobody wants to wait: its default would have ended the process at once.
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        std::process::exit(130);
    }))
}

async fn upkeep(metrics: Metrics, listening: Opened, mut leads: watch::Receiver<bool>) {
    let mut ticks = tokio::time::interval(Duration::from_secs(5));
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            Ok(()) = leads.changed() => {}
        }
        metrics::gauge!("palisade_control_plane_leads").set(if *leads.borrow() { 1.0 } else { 0.0 });
        metrics.upkeep();
        listening.gauge();
    }
}

async fn sweep_sessions(console: Console) {
    let mut ticks = tokio::time::interval(Duration::from_secs(600));
    loop {
        ticks.tick().await;
        match console.sweep().await {
            Ok(0) | Err(StoreError::Closed) => {}
            Ok(ended) => tracing::debug!(ended, "deleted expired console sessions"),
            Err(error) => tracing::warn!(%error, "deleting expired console sessions failed"),
        }
    }
}
