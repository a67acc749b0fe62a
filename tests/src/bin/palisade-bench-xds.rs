//! How fast a change reaches many gateways, and what a connected gateway costs the control plane: a real `palisade serve`,
//! and nodes that speak delta ADS as Envoy does, each over a connection of its own.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use palisade_tests::control_plane::ControlPlane;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Endpoint;

const CLUSTERS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const LISTENERS: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
const ROUTES: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";
const FILTERS: &str = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig";

/// No change takes this long on any machine; it bounds a run that fails.
const PATIENCE: Duration = Duration::from_secs(120);

/// Measures delivery to many simulated gateways.
#[derive(Debug, Parser)]
struct Options {
    /// The file that the figures go to.
    #[arg(long, default_value = "target/bench/xds.json")]
    out: PathBuf,
    /// How many nodes are connected.
    #[arg(long, default_value_t = 1000)]
    nodes: usize,
    /// Rounds; each changes a route, then a threat policy, then the rules.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// What a node tells: it has taken a response of this type, with or without removals.
#[derive(Debug)]
struct Taken {
    type_url: String,
    removed: bool,
    bytes: usize,
    at: Instant,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    match runtime.map_err(|error| error.to_string()).and_then(|runtime| runtime.block_on(run(&options))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: &Options) -> Result<(), String> {
    let folder = options.out.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut control = ControlPlane::start();
    let rules = |number: usize| json!({ "rules": ["@import_preset crs", format!("SecRule ARGS \"@streq round-{number}\" \"id:{},phase:2,deny\"", 100 + number)] });
    let mut config = rules(0);
    config["id"] = json!("rules");
    control.create("waf-configs", &config);
    let policy = |weight: usize| json!({ "waf_block_weight": weight });
    let mut threats = policy(20);
    (threats["id"], threats["tiers"]) =
        (json!("threats"), json!([{ "min_score": 40, "action": "deny", "status": 403 }]));
    control.create("threat-policies", &threats);
    let backend = |port: usize| json!({ "backend": { "address": "127.0.0.1", "port": port } });
    let mut route = backend(9000);
    route["id"] = json!("route");
    route["plugins"] =
        json!([{ "plugin": "SecuritySuitePreset", "config": { "waf_config": "rules", "threat_policy": "threats" } }]);
    control.create("routes", &route);
    let pid = control.process().id();
    // One node first: what the first stream costs, every further one does not.
    let (taken, mut news) = mpsc::unbounded_channel();
    connect(&control, 0, taken.clone());
    started(&mut news, 1).await?;
    let before = palisade_tests::process::resident_kib(pid)?;
    let start = Instant::now();
    for number in 1..options.nodes {
        connect(&control, number, taken.clone());
    }
    let snapshot = started(&mut news, options.nodes.saturating_sub(1)).await?;
    let connected = start.elapsed();
    settled(&control)?;
    let after = palisade_tests::process::resident_kib(pid)?;

    let mut samples: Vec<(&str, Vec<f64>, usize)> =
        ["route", "policy", "rules"].map(|kind| (kind, Vec::new(), 0)).into();
    for round in 1..=options.rounds {
        for (kind, seconds, bytes) in &mut samples {
            let (collection, id, change, last) = match *kind {
                "route" => ("routes", "route", backend(9000 + round), CLUSTERS),
                "policy" => ("threat-policies", "threats", policy(20 + round), FILTERS),
                _ => ("waf-configs", "rules", rules(round), FILTERS),
            };
            control.patch(collection, id, &change);
            let answered = Instant::now();
            // A backend that is gone goes last of all, once the routes that led to it are replaced.
            let done = |taken: &Taken| taken.type_url == last && (taken.removed || last == FILTERS);
            let (at, size) = last_of(&mut news, options.nodes, done).await?;
            seconds.push(at.saturating_duration_since(answered).as_secs_f64());
            *bytes = size;
            settled(&control)?;
        }
    }
    let peak = palisade_tests::process::resident_kib(pid)?;
    let nodes = (options.nodes.saturating_sub(1)).max(1) as f64;
    let changes: serde_json::Map<String, Value> = samples
        .iter_mut()
        .map(|(kind, seconds, bytes)| {
            seconds.sort_by(f64::total_cmp);
            let of = |at: usize| seconds.get(at).copied().unwrap_or_default();
            let figures = json!({
                "seconds_median": of(seconds.len() / 2), "seconds_worst": of(seconds.len().saturating_sub(1)),
                "seconds_best": of(0), "last_response_bytes": bytes,
            });
            ((*kind).to_owned(), figures)
        })
        .collect();
    let figures = json!({
        "nodes": options.nodes, "rounds": options.rounds, "snapshot_bytes": snapshot,
        "connect_seconds": connected.as_secs_f64(),
        "resident_kib": { "one_node": before, "all_nodes": after, "after_all_rounds": peak },
        "kib_per_node": { "connected": (after as f64 - before as f64) / nodes, "after_all_rounds": (peak as f64 - before as f64) / nodes },
        "changes": changes,
    });
    print(&figures);
    std::fs::write(&options.out, format!("{figures:#}\n"))
        .map_err(|error| format!("{}: {error}", options.out.display()))?;
    println!("\nwritten to {}", options.out.display());
    Ok(())
}

/// Connects a node for as long as the runtime lives.
fn connect(control: &ControlPlane, number: usize, taken: mpsc::UnboundedSender<Taken>) {
    let url = format!("http://{}", control.xds());
    tokio::spawn(async move {
        // Once nobody listens any more, the end of the stream is the end of the run.
        if let Err(error) = node(&url, number, &taken).await
            && !taken.is_closed()
        {
            eprintln!("node {number}: {error}");
        }
    });
}

/// One gateway: it subscribes as Envoy does at its start, and takes everything.
async fn node(
    url: &str,
    number: usize,
    taken: &mpsc::UnboundedSender<Taken>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let channel = Endpoint::from_shared(url.to_owned())?.tcp_nodelay(true).connect().await?;
    let mut client = AggregatedDiscoveryServiceClient::new(channel).max_decoding_message_size(64 << 20);
    let (requests, receiver) = mpsc::channel(16);
    let request = |type_url: &str, names: &[&str]| DeltaDiscoveryRequest {
        type_url: type_url.to_owned(),
        resource_names_subscribe: names.iter().map(|&name| name.to_owned()).collect(),
        ..DeltaDiscoveryRequest::default()
    };
    let node = Node { id: format!("node-{number}"), cluster: "default".to_owned(), ..Node::default() };
    requests.send(DeltaDiscoveryRequest { node: Some(node), ..request(CLUSTERS, &[]) }).await?;
    requests.send(request(LISTENERS, &[])).await?;
    let mut responses = client.delta_aggregated_resources(ReceiverStream::new(receiver)).await?.into_inner();
    let mut listens = false;
    while let Some(response) = responses.message().await? {
        let answer = DeltaDiscoveryRequest { response_nonce: response.nonce, ..request(&response.type_url, &[]) };
        requests.send(answer).await?;
        if response.type_url == LISTENERS && !listens {
            listens = true;
            requests.send(request(ROUTES, &["palisade"])).await?;
            requests.send(request(FILTERS, &["palisade.preset"])).await?;
        }
        let bytes =
            response.resources.iter().filter_map(|resource| resource.resource.as_ref()).map(|any| any.value.len());
        let (removed, bytes) = (!response.removed_resources.is_empty(), bytes.sum());
        taken.send(Taken { type_url: response.type_url, removed, bytes, at: Instant::now() })?;
    }
    Err("the stream has ended".into())
}

/// Waits until so many nodes have taken their filter; gives its size.
async fn started(news: &mut mpsc::UnboundedReceiver<Taken>, nodes: usize) -> Result<usize, String> {
    let filter = |taken: &Taken| taken.type_url == FILTERS;
    last_of(news, nodes, filter).await.map(|(_, bytes)| bytes)
}

/// Waits until so many nodes have taken what `wanted` says; gives when the last did so, and the size of what it took.
async fn last_of(
    news: &mut mpsc::UnboundedReceiver<Taken>,
    nodes: usize,
    wanted: impl Fn(&Taken) -> bool,
) -> Result<(Instant, usize), String> {
    let (mut last, mut found) = ((Instant::now(), 0), 0);
    while found < nodes {
        let next = tokio::time::timeout(PATIENCE, news.recv()).await;
        let taken = next.ok().flatten().ok_or_else(|| format!("{found} of {nodes} nodes have got the change"))?;
        if wanted(&taken) {
            found += 1;
            last = (taken.at.max(last.0), taken.bytes);
        }
    }
    Ok(last)
}

/// Waits until the control plane knows that no node is behind.
fn settled(control: &ControlPlane) -> Result<(), String> {
    let path = "/api/extensions/svc/waf/api/_nodes?behind=true";
    palisade_tests::process::wait_for("no node is behind", PATIENCE, || {
        control.call("GET", path, None).json()["nodes"].as_array().filter(|nodes| nodes.is_empty()).map(|_| ())
    })
}

fn print(figures: &Value) {
    let number = |pointer: &str| figures.pointer(pointer).and_then(Value::as_f64).unwrap_or_default();
    println!(
        "{} nodes, each with a connection of its own; a snapshot of {:.0} KiB; all connected after {:.2} s\n",
        figures["nodes"],
        number("/snapshot_bytes") / 1024.0,
        number("/connect_seconds")
    );
    println!("change   KiB per node   best s   median s   worst s");
    for kind in ["route", "policy", "rules"] {
        let of = |field: &str| number(&format!("/changes/{kind}/{field}"));
        let kib = of("last_response_bytes") / 1024.0;
        let (best, median, worst) = (of("seconds_best"), of("seconds_median"), of("seconds_worst"));
        println!("{kind:<8} {kib:>12.1} {best:>8.2} {median:>10.2} {worst:>9.2}");
    }
    println!(
        "\nmemory of the control plane: {:.0} MiB with one node, {:.0} MiB with all, {:.0} MiB after all rounds",
        number("/resident_kib/one_node") / 1024.0,
        number("/resident_kib/all_nodes") / 1024.0,
        number("/resident_kib/after_all_rounds") / 1024.0
    );
    println!(
        "for each node: {:.0} KiB when connected, {:.0} KiB after all rounds",
        number("/kib_per_node/connected"),
        number("/kib_per_node/after_all_rounds")
    );
}
