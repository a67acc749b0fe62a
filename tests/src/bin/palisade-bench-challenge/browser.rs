//! From the navigation to the backend's page: the challenge's page, its work, the submission, and the page asked for.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use palisade_tests::browser::Browser;
use palisade_tests::process::wait_for;

use palisade_tests::figures::{Figures, Target, quantile};

/// One visit, on a machine that does other things as well.
const PATIENCE: Duration = Duration::from_secs(60);
/// The page says so itself when it is there.
const PAGE: &str = "<!doctype html><html lang=en><head><title>Shown</title></head><body><h1>Shown</h1>\
    <script>addEventListener('load',function(){fetch('/shown'+location.search)})</script></body></html>";

pub(crate) fn measure(runs: usize, bits: u32, figures: &mut Figures) -> Result<(), String> {
    let Some(program) = Browser::program() else {
        println!("there is no chromium (PALISADE_CHROMIUM, or Debian's package chromium): no visits are measured");
        return Ok(());
    };
    let (backend, shown) = backend().map_err(|error| format!("no backend: {error}"))?;
    let gateway = crate::gateway(bits, Some(backend));
    let browser = Browser::start(&program, &[])?;
    let mut times = Vec::new();
    for run in 0..runs {
        // A host of its own: nobody has its cookies. Browsers take every name below localhost for this machine.
        let url = format!("http://run-{run}.localhost:{}/?probe=1&run={run}", gateway.address.port());
        let start = Instant::now();
        let tab = browser.open(&url)?;
        loop {
            let left = PATIENCE.saturating_sub(start.elapsed());
            let (path, at) = shown
                .recv_timeout(left)
                .map_err(|_| format!("{url} was not shown in {PATIENCE:?}\n{}", browser.log_tail(40)))?;
            if path.ends_with(&format!("&run={run}")) {
                times.push(at.duration_since(start).as_secs_f64() * 1000.0);
                break;
            }
        }
        browser.close(&tab)?;
    }
    // Proof that every visit was asked for the work, and did it.
    let solved = || {
        let said = format!("a puzzle of {bits} bits was solved");
        gateway.control.events().iter().filter(|event| event["message"].to_string().contains(&said)).count()
    };
    wait_for("an event of each solved puzzle", PATIENCE, || (solved() >= runs).then_some(()))
        .map_err(|why| format!("{why}: {} of {runs}", solved()))?;
    let median = quantile(&mut times, 0.5);
    let most = times.last().copied().unwrap_or_default();
    println!(
        "{runs} visits, {bits} bits: {}",
        times.iter().map(|time| format!("{time:.0}")).collect::<Vec<_>>().join(" ")
    );
    figures.add(&format!("navigation to the page behind, {bits} bits, median"), median, "ms", Target::AtMost(2000.0));
    figures.add(&format!("navigation to the page behind, {bits} bits, maximum"), most, "ms", Target::None);
    Ok(())
}

/// A backend whose page asks for `/shown` once it is there, and the paths and times of those requests.
fn backend() -> std::io::Result<(SocketAddr, Receiver<(String, Instant)>)> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let address = listener.local_addr()?;
    let (sender, shown) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let sender = sender.clone();
            // The gateway went away: that is its right.
            thread::spawn(move || drop(serve(stream, &sender)));
        }
    });
    Ok((address, shown))
}

fn serve(mut stream: TcpStream, shown: &Sender<(String, Instant)>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    while let Some(line) = lines.next().transpose()? {
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        // The rest of the head; none of the requests has a body.
        while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
        let body = if path.starts_with("/shown") { "" } else { PAGE };
        if body.is_empty() {
            // Nobody waits for it any more only when everything was measured.
            let _ = shown.send((path, Instant::now()));
        }
        let length = body.len();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(format!("{head}{body}").as_bytes())?;
    }
    Ok(())
}
