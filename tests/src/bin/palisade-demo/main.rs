//! The whole of it on one machine: control plane, Envoy and a demo backend, until Ctrl-C. What the reputation of callers needs of
//! others is here as well: a threat feed, a decision service and a resolver.

mod lists;
mod resolver;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::Parser;
use palisade_tests::backend::Backend;
use palisade_tests::bootstrap::shipped;
use palisade_tests::control_plane::ControlPlane;
use palisade_tests::envoy::Envoy;
use palisade_tests::gateway::{WRITTEN_ADMIN_PORT, WRITTEN_XDS_PORT, preset, route, threat_policy, waf_config};
use palisade_tests::parts;
use palisade_tests::process::wait_for;
use serde_json::{Value, json};

/// Runs the control plane, an Envoy that it configures, and a demo backend.
#[derive(Debug, Parser)]
struct Options {
    /// Where the gateway listens.
    #[arg(long, default_value_t = 10_000)]
    port: u16,
    /// Where the control plane serves REST.
    #[arg(long, default_value_t = 8900)]
    admin_port: u16,
    /// Where the control plane serves xDS.
    #[arg(long, default_value_t = 18_000)]
    xds_port: u16,
    /// Where the demo backend listens.
    #[arg(long, default_value_t = 18_081)]
    backend_port: u16,
    /// The folder of the control plane's store; it is kept.
    #[arg(long, default_value = ".cache/demo")]
    dir: PathBuf,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    for (port, variable) in [
        (options.port, "PORT"),
        (options.admin_port, "ADMIN_PORT"),
        (options.xds_port, "XDS_PORT"),
        (options.backend_port, "BACKEND_PORT"),
    ] {
        if let Err(error) = TcpListener::bind(loopback(port)) {
            return Err(format!("port {port} cannot be used ({error}); choose another: make run {variable}=<port>"));
        }
    }
    let backend = Backend::start_on(loopback(options.backend_port)).map_err(|error| format!("the backend: {error}"))?;
    let lists = lists::start().map_err(|error| format!("the threat feed: {error}"))?;
    let resolver = resolver::start().map_err(|error| format!("the resolver: {error}"))?;
    let mut control =
        ControlPlane::start_in(&options.dir, loopback(options.admin_port), loopback(options.xds_port), &[])?;
    let access_log = std::path::absolute(options.dir.join("access.log")).map_err(|error| error.to_string())?;
    configure(&control, &backend, options.port, &access_log);
    configure_reputation(&control, lists, resolver);
    let mut envoy = Envoy::start_with(
        &shipped("xds.yaml", &[(WRITTEN_XDS_PORT, options.xds_port), (WRITTEN_ADMIN_PORT, 0)]),
        2,
        None,
    )?;
    let gateway = loopback(options.port);
    wait_for("the gateway takes connections", Duration::from_secs(90), || TcpStream::connect(gateway).ok())
        .map_err(|why| format!("{why}\n{}\n{}", envoy.log_tail(40), control.process().log_tail(40)))?;
    greet(&control, &envoy, &backend, gateway)?;

    let ended = until_stopped(&mut control, &mut envoy)?;
    println!("\nstopping");
    envoy.process().terminate(Duration::from_secs(10))?;
    control.process().terminate(Duration::from_secs(10))?;
    ended
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// Creates what is absent. What a user changed since stays, but for where things listen.
fn configure(control: &ControlPlane, backend: &Backend, port: u16, access_log: &std::path::Path) {
    control.configure(&json!({"gateway": {"address": "127.0.0.1", "port": port, "access_log": access_log}}));
    let name = |mut entity: Value, name: &str| {
        entity["name"] = name.into();
        entity
    };
    let tiers = json!([{"min_score": 40, "action": "deny", "status": 403}]);
    let mut plugins = preset("demo", "demo");
    plugins[0]["config"]["honeypot_policy"] = "demo".into();
    let entities = [
        ("honeypot-policies", json!({"id": "demo", "name": "Paths that scanners request"})),
        ("waf-configs", name(waf_config("demo", json!({})), "Core Rule Set, paranoia level 1")),
        ("threat-policies", name(threat_policy("demo", json!({"tiers": tiers})), "Deny at 40")),
        ("routes", name(route("demo", backend.address(), plugins), "Demo")),
    ];
    for (collection, entity) in entities {
        if control.call("GET", &ControlPlane::path(collection, "demo"), None).status == 404 {
            control.create(collection, &entity);
        }
    }
    let address = backend.address();
    control.patch("routes", "demo", &json!({"backend": {"address": address.ip().to_string(), "port": address.port()}}));
}

/// Creates what knows callers, if it is absent. The feed, the service and the resolver have other ports after each start.
fn configure_reputation(control: &ControlPlane, lists: SocketAddr, resolver: SocketAddr) {
    let (feed, service) = (format!("http://{lists}/list.txt"), format!("http://{lists}"));
    control.configure(&json!({"security": {"bots": {"resolvers": [resolver.to_string()]}}}));
    if control.call("GET", &ControlPlane::path("threat-feeds", "demo"), None).status == 404 {
        // All clients are on this machine: x-forwarded-for stands in for callers elsewhere.
        control.configure(&json!({"identity": {"trusted_hops": 1}}));
        let list = json!({"id": "demo", "name": "Bad callers", "url": feed, "allow_private": true, "tag": "feed:demo"});
        control.create("threat-feeds", &list);
        let service = json!({
            "id": "demo", "name": "Decisions", "lapi_url": service, "api_key": lists::KEY, "allow_private": true,
            "poll_interval_seconds": 1,
        });
        control.create("svc-bouncers", &service);
        control.create("bot-policies", &json!({"id": "demo", "name": "Known bots"}));
    }
    control.patch("threat-feeds", "demo", &json!({"url": feed}));
    control.patch("svc-bouncers", "demo", &json!({"lapi_url": service}));
}

/// A link that logs the operator `admin` in once, who is added at the first start. Each start makes a new one.
fn login_link(control: &ControlPlane) -> Result<String, String> {
    let operator = |arguments: &[&str]| {
        let mut command = Command::new(parts::palisade());
        command.arg("operator").args(arguments).arg("--data").arg(control.data()).output()
    };
    let add = ["add", "admin", "--email", "admin@localhost", "--no-password"];
    // At later starts the name is taken, which is as well.
    operator(&add).map_err(|error| format!("`palisade operator` does not start: {error}"))?;
    let base = format!("http://{}", control.rest());
    let made = operator(&["login-link", "admin", "--base", &base]);
    let made = made.map_err(|error| format!("`palisade operator` does not start: {error}"))?;
    if !made.status.success() {
        return Err(format!("no login link: {}", String::from_utf8_lossy(&made.stderr)));
    }
    Ok(String::from_utf8_lossy(&made.stdout).trim().to_owned())
}

fn greet(control: &ControlPlane, envoy: &Envoy, backend: &Backend, gateway: SocketAddr) -> Result<(), String> {
    let key: Value = std::fs::read(control.data().join("admin-key.json"))
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok())
        .ok_or("the admin key cannot be read")?;
    let (id, secret) = (key["id"].as_str().unwrap_or_default(), key["secret"].as_str().unwrap_or_default());
    let (rest, link) = (control.rest(), login_link(control)?);
    println!(
        "\n\
         gateway        http://{gateway}\n\
         control plane  http://{rest}  (admin key in {})\n\
         xDS            {}\n\
         Envoy's admin  http://{}\n\
         backend        http://{}\n\
         \n\
         A benign request:\n  \
         curl -i 'http://{gateway}/search?q=garden+chairs'\n\
         An SQL injection:\n  \
         curl -i \"http://{gateway}/search?q=1'+UNION+SELECT+password+FROM+users--+-\"\n\
         A path that only scanners request:\n  \
         curl -i http://{gateway}/.env\n\
         A caller on the threat feed, one that the decision service bans, and one that only says it is Googlebot:\n  \
         curl -i -H 'x-forwarded-for: {}' http://{gateway}/\n  \
         curl -i -H 'x-forwarded-for: {}' http://{gateway}/\n  \
         curl -i -H 'x-forwarded-for: {}' -A 'Mozilla/5.0 (compatible; Googlebot/2.1)' http://{gateway}/\n\
         The incidents they made:\n  \
         curl -s -u {id}:{secret} http://{rest}/api/extensions/svc/waf/api/_incidents\n\
         \n\
         The console. The link logs you in as `admin` once, within ten minutes; the second line makes another one:\n  \
         {link}\n  \
         {} operator login-link admin --data {} --base http://{rest}\n\
         \n\
         Ctrl-C stops all of it.",
        control.data().join("admin-key.json").display(),
        control.xds(),
        envoy.admin(),
        backend.address(),
        lists::LISTED,
        lists::BANNED,
        resolver::FORGER,
        nearer(parts::palisade()).display(),
        control.data().display(),
    );
    Ok(())
}

/// A path as it is written from where this was called.
fn nearer(path: PathBuf) -> PathBuf {
    let here = std::env::current_dir().ok();
    here.and_then(|here| path.strip_prefix(here).ok().map(PathBuf::from)).unwrap_or(path)
}

/// Waits for Ctrl-C or SIGTERM; the inner error is a part that ended by itself.
fn until_stopped(control: &mut ControlPlane, envoy: &mut Envoy) -> Result<Result<(), String>, String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
            .map_err(|error| error.to_string())?;
        loop {
            tokio::select! {
                stopped = tokio::signal::ctrl_c() => {
                    stopped.map_err(|error| error.to_string())?;
                    return Ok(Ok(()));
                }
                _ = terminated.recv() => return Ok(Ok(())),
                () = tokio::time::sleep(Duration::from_millis(200)) => {}
            }
            for process in [control.process(), envoy.process()] {
                if let Some(status) = process.ended() {
                    return Ok(Err(format!("a part ended by itself ({status})\n{}", process.log_tail(40))));
                }
            }
        }
    })
}
