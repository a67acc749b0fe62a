use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::*;

const SECRET: &str = "s3cret";

/// Names with the answers they give, one after the other; the last one is given for good.
#[derive(Default)]
struct Names(Mutex<Vec<(String, VecDeque<Vec<IpAddr>>)>>);

impl Names {
    fn new(names: &[(&str, &[&str])]) -> Arc<Names> {
        let ips = |list: &&str| list.split_whitespace().map(|ip| ip.parse().unwrap()).collect();
        let names = names.iter().map(|(name, answers)| ((*name).to_owned(), answers.iter().map(ips).collect()));
        Arc::new(Names(Mutex::new(names.collect())))
    }
}

impl Resolver for Names {
    fn resolve<'a>(&'a self, host: &'a str) -> Resolved<'a> {
        let mut names = self.0.lock().unwrap();
        let answers = names.iter_mut().find(|(name, _)| name == host).map(|(_, answers)| answers);
        let answer = answers.map(|answers| match answers.len() {
            1 => answers[0].clone(),
            _ => answers.pop_front().unwrap_or_default(),
        });
        Box::pin(async move { answer.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such name")) })
    }
}

/// A request as a server has seen it: its head and its body.
type Seen = (Request<()>, Bytes);

type Answering = fn(&str) -> Response;

async fn answer(State((seen, how)): State<(UnboundedSender<Seen>, Answering)>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let path = parts.uri.to_string();
    seen.send((Request::from_parts(parts, ()), body)).unwrap();
    match path.as_str() {
        "/never" => std::future::pending().await,
        path => how(path),
    }
}

async fn serve_on(ip: &str, how: Answering) -> (SocketAddr, UnboundedReceiver<Seen>) {
    let listener = TcpListener::bind((ip, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (seen, requests) = unbounded_channel();
    let router = Router::new().fallback(answer).with_state((seen, how));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, requests)
}

async fn serve(how: Answering) -> (SocketAddr, UnboundedReceiver<Seen>) {
    serve_on("127.0.0.1", how).await
}

fn fine(_: &str) -> Response {
    "fine".into_response()
}

fn post(url: String) -> Call {
    let token = HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::from_static(SECRET))]);
    Call {
        method: Method::POST,
        url,
        headers: token,
        body: Bytes::from_static(b"body"),
        // Long enough for a machine that is busy: no test waits for it to pass but the one that says so.
        timeout: Duration::from_secs(60),
        max_answer_bytes: 1000,
        redirects: 0,
    }
}

fn get(url: String) -> Call {
    Call { method: Method::GET, body: Bytes::new(), redirects: 3, ..post(url) }
}

fn nets(nets: &str) -> Vec<IpNet> {
    nets.split_whitespace().map(|net| net.parse().unwrap()).collect()
}

fn local(names: &[(&str, &[&str])]) -> Outbound {
    Outbound::with(nets("127.0.0.1/32"), Names::new(names), Trust::system())
}

async fn fails(outbound: &Outbound, call: Call) -> OutboundError {
    let error = outbound.call(call).await.map(|answer| answer.status).unwrap_err();
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains(SECRET) && !shown.contains("path"), "{shown}");
    error
}

#[tokio::test]
async fn a_call_is_sent_and_answered() {
    let (address, mut seen) = serve(|_| (StatusCode::IM_A_TEAPOT, [("x-a", "b")], "tea").into_response()).await;
    let outbound = local(&[("hook.test", &["127.0.0.1"])]);
    let mut call = post(format!("http://Hook.test:{}/path?{SECRET}#x", address.port()));
    call.headers.insert(header::HOST, HeaderValue::from_static("other"));
    call.headers.insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    let answer = outbound.call(call).await.unwrap();
    assert_eq!(
        (answer.status.as_u16(), &answer.headers["x-a"], &answer.body[..]),
        (418, &"b".parse().unwrap(), &b"tea"[..])
    );
    let (head, body) = seen.recv().await.unwrap();
    assert_eq!((head.method(), head.uri().to_string()), (&Method::POST, format!("/path?{SECRET}")));
    assert_eq!(
        (&head.headers()["host"], &body[..]),
        (&format!("hook.test:{}", address.port()).parse().unwrap(), &b"body"[..])
    );
    assert_eq!(
        (&head.headers()["content-length"], head.headers().get("transfer-encoding")),
        (&"4".parse().unwrap(), None)
    );
    assert!(head.headers()["user-agent"].to_str().unwrap().starts_with("palisade/"));
}

#[tokio::test]
async fn addresses_that_are_not_for_outside_are_refused_by_name_and_by_number() {
    let outbound = Outbound::with(Vec::new(), Names::new(&[]), Trust::system());
    for (host, what) in [
        ("127.0.0.1", "a loopback address"),
        ("10.0.0.5", "a private address"),
        ("[::1]", "a loopback address"),
        ("169.254.169.254", "a link-local address"),
        ("100.64.0.1", "a shared address"),
        ("0.0.0.0", "an unspecified address"),
        ("224.0.0.1", "a multicast address"),
        ("255.255.255.255", "a reserved address"),
        ("192.0.2.1", "an address for documentation"),
        ("[fd00::1]", "a unique local address"),
        ("[fe80::1]", "a link-local address"),
        ("[::ffff:127.0.0.1]", "a loopback address"),
        ("[64:ff9b::a00:5]", "a private address"),
        ("[2002:a00:5::1]", "a private address"),
    ] {
        let error = fails(&outbound, post(format!("https://{host}/path/{SECRET}"))).await;
        assert_eq!(error.fault(), OutboundFault::Refused, "{error}");
        assert!(error.to_string().contains(what) && !error.is_passing(), "{error}");

        let bare = host.trim_matches(['[', ']']);
        let named = Outbound::with(Vec::new(), Names::new(&[("name.test", &[bare])]), Trust::system());
        let error = fails(&named, post(format!("https://name.test/path/{SECRET}"))).await;
        assert_eq!(error.fault(), OutboundFault::Refused, "{error}");
    }
    let error = fails(&outbound, post("http://10.0.0.5/path".to_owned())).await.to_string();
    let says = "http://10.0.0.5:80: 10.0.0.5 is a private address; start palisade with --outbound-allow 10.0.0.5/32 if this is meant";
    assert_eq!(error, says);
}

/// The operating system reads many numbers as addresses; it is what it makes of them that is judged.
#[tokio::test]
async fn numbers_in_other_forms_do_not_get_past() {
    let outbound = Outbound::new(Vec::new());
    for host in ["2130706433", "0x7f000001", "127.1", "0177.0.0.1", "localhost"] {
        let error = fails(&outbound, post(format!("http://{host}/path"))).await;
        assert!(matches!(error.fault(), OutboundFault::Refused | OutboundFault::Name), "{error}");
    }
}

#[tokio::test]
async fn one_bad_address_of_a_name_refuses_them_all() {
    let (address, mut seen) = serve(fine).await;
    let outbound = local(&[("mixed.test", &["127.0.0.1 10.0.0.5"])]);
    let error = fails(&outbound, post(format!("http://mixed.test:{}/path", address.port()))).await;
    assert!(error.to_string().contains("10.0.0.5 is a private address"), "{error}");
    assert!(seen.try_recv().is_err(), "nobody was called");
}

#[tokio::test]
async fn the_connection_goes_to_the_address_that_was_checked() {
    let (address, mut seen) = serve(fine).await;
    // Allowed at first, and another one whenever it is asked again.
    let outbound = local(&[("rebinding.test", &["127.0.0.1", "127.0.0.2"])]);
    let url = format!("http://rebinding.test:{}/path", address.port());
    assert_eq!(outbound.call(post(url.clone())).await.unwrap().status, 200);
    seen.recv().await.unwrap();
    let error = fails(&outbound, post(url)).await;
    assert!(error.to_string().contains("127.0.0.2 is a loopback address"), "the next call is checked anew: {error}");
}

#[tokio::test]
async fn a_name_without_an_address_and_a_port_without_a_server_are_passing() {
    let outbound = local(&[("empty.test", &[""]), ("closed.test", &["127.0.0.1"])]);
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    for (url, fault) in [
        ("http://unknown.test/path".to_owned(), OutboundFault::Name),
        ("http://empty.test/path".to_owned(), OutboundFault::Name),
        (format!("http://closed.test:{closed}/path/{SECRET}"), OutboundFault::Connection),
    ] {
        let error = fails(&outbound, post(url)).await;
        assert!(error.fault() == fault && error.is_passing(), "{error}");
    }
}

#[tokio::test]
async fn the_next_address_is_tried_where_one_does_not_answer() {
    let (address, mut seen) = serve(fine).await;
    let outbound =
        Outbound::with(nets("127.0.0.0/8"), Names::new(&[("two.test", &["127.0.0.9 127.0.0.1"])]), Trust::system());
    assert_eq!(outbound.call(post(format!("http://two.test:{}/path", address.port()))).await.unwrap().status, 200);
    seen.recv().await.unwrap();
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_an_error_with_its_status() {
    let (address, _seen) = serve(|path| match path {
        "/fits" => "x".repeat(1000).into_response(),
        _ => (StatusCode::ACCEPTED, "x".repeat(1001)).into_response(),
    })
    .await;
    let outbound = local(&[]);
    assert_eq!(outbound.call(get(format!("http://{address}/fits"))).await.unwrap().body.len(), 1000);
    let error = fails(&outbound, get(format!("http://{address}/long"))).await;
    assert_eq!((error.fault(), error.status()), (OutboundFault::TooLong, Some(StatusCode::ACCEPTED)));
    assert_eq!(error.to_string(), format!("http://{address}: the answer is longer than 1000 bytes"));
}

#[tokio::test]
async fn time_is_up_for_all_of_it_together() {
    let (address, _seen) = serve(fine).await;
    let outbound = local(&[]);
    let call = Call { timeout: Duration::from_millis(50), ..post(format!("http://{address}/never")) };
    let error = fails(&outbound, call).await;
    assert!(error.fault() == OutboundFault::Timeout && error.is_passing(), "{error}");
    assert_eq!(error.to_string(), format!("http://{address}: no complete answer within 0.05 s"));

    struct Slow;
    impl Resolver for Slow {
        fn resolve<'a>(&'a self, _: &'a str) -> Resolved<'a> {
            Box::pin(std::future::pending())
        }
    }
    let slow = Outbound::with(Vec::new(), Arc::new(Slow), Trust::system());
    let call = Call { timeout: Duration::from_millis(50), ..post("http://slow.test/path".to_owned()) };
    assert_eq!(fails(&slow, call).await.fault(), OutboundFault::Timeout);
}

#[tokio::test]
async fn redirects_are_checked_counted_and_followed_without_secrets() {
    fn hop(path: &str) -> Response {
        let to = match path {
            "/private" => "http://10.0.0.5/path/s3cret",
            "/meta" => "//169.254.169.254/latest/s3cret",
            "/named" => "http://inner.test/path/s3cret",
            "/file" => "file:///path/s3cret",
            "/loop" => "/loop",
            "/own" => "end",
            "/end" => return "end".into_response(),
            other => other.strip_prefix("/to/").unwrap_or("/end"),
        };
        (StatusCode::FOUND, [(header::LOCATION, to.to_owned())]).into_response()
    }
    let (address, mut seen) = serve(hop).await;
    let (other, mut elsewhere) = serve(fine).await;
    let outbound = local(&[("inner.test", &["192.168.0.1"])]);
    let url = |path: &str| format!("http://{address}/{path}");

    for (path, says) in [
        ("private", "10.0.0.5 is a private address"),
        ("meta", "169.254.169.254 is a link-local address"),
        ("named", "192.168.0.1 is a private address"),
    ] {
        let error = fails(&outbound, get(url(path))).await;
        assert!(error.fault() == OutboundFault::Refused && error.to_string().contains(says), "{error}");
    }
    assert_eq!(fails(&outbound, get(url("file"))).await.fault(), OutboundFault::Redirect);
    let error = fails(&outbound, get(url("loop"))).await;
    assert!(error.fault() == OutboundFault::Redirect && error.to_string().contains("more than 3 redirects"), "{error}");
    let unfollowed = outbound.call(post(url("private"))).await.unwrap();
    assert_eq!(unfollowed.status, StatusCode::FOUND, "with no redirects allowed it is the answer");
    while seen.try_recv().is_ok() {}

    let answer = outbound.call(Call { redirects: 1, ..post(url("own")) }).await.unwrap();
    assert_eq!((answer.status, &answer.body[..]), (StatusCode::OK, &b"end"[..]));
    let (_, (second, body)) = (seen.recv().await.unwrap(), seen.recv().await.unwrap());
    assert_eq!((second.method(), &body[..]), (&Method::GET, &b""[..]));
    assert_eq!(second.headers()["authorization"], SECRET, "the same origin may see it");

    let mut call = get(url(&format!("to/http://{other}/end")));
    call.headers.insert("x-api-key", HeaderValue::from_static(SECRET));
    call.headers.insert(header::ACCEPT, HeaderValue::from_static("text/plain"));
    assert_eq!(&outbound.call(call).await.unwrap().body[..], b"fine");
    let (head, _) = elsewhere.recv().await.unwrap();
    let names = ["authorization", "x-api-key", "accept"].map(|name| head.headers().contains_key(name));
    assert_eq!(names, [false, false, true]);
}

#[tokio::test]
async fn a_body_goes_to_its_own_origin_alone() {
    let (other, mut elsewhere) = serve(fine).await;
    let (address, _seen) = serve(|path| {
        let to = path.trim_start_matches('/').to_owned();
        (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, to)]).into_response()
    })
    .await;
    let outbound = local(&[]);
    let call = Call { redirects: 3, ..post(format!("http://{address}/http://{other}/path")) };
    let error = fails(&outbound, call).await;
    assert!(error.fault() == OutboundFault::Redirect && error.to_string().contains("the body is not sent"), "{error}");
    assert!(elsewhere.try_recv().is_err());
}

#[tokio::test]
async fn tls_is_checked_against_the_name_and_never_left() {
    let signed = rcgen::generate_simple_self_signed(vec!["hook.test".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(signed.signing_key.serialize_der().into());
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), signed.cert.pem()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![signed.cert.der().clone()], key).unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            // A client that does not trust us goes away.
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            let plain = "http://hook.test/path/s3cret";
            let how = hyper::service::service_fn(move |_| async move {
                let location = [(header::LOCATION, plain)];
                Ok::<_, std::convert::Infallible>((StatusCode::FOUND, location, "over TLS").into_response())
            });
            let stream = hyper_util::rt::TokioIo::new(stream);
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(stream, how).await;
        }
    });
    let names = || Names::new(&[("hook.test", &["127.0.0.1"]), ("other.test", &["127.0.0.1"])]);
    let trusting = Outbound::with(nets("127.0.0.0/8"), names(), Trust::file(file.path()).unwrap());
    let url = format!("https://hook.test:{port}/path/{SECRET}");
    assert_eq!(&trusting.call(post(url.clone())).await.unwrap().body[..], b"over TLS");
    let error = fails(&trusting, get(url.clone())).await;
    assert!(error.fault() == OutboundFault::Redirect && error.to_string().contains("without TLS"), "{error}");
    let error = fails(&trusting, post(format!("https://other.test:{port}/path/{SECRET}"))).await;
    assert!(error.fault() == OutboundFault::Tls && !error.is_passing(), "{error}");
    let another = rcgen::generate_simple_self_signed(vec!["another.test".to_owned()]).unwrap();
    std::fs::write(file.path(), another.cert.pem()).unwrap();
    let distrusting = Outbound::with(nets("127.0.0.0/8"), names(), Trust::file(file.path()).unwrap());
    assert_eq!(fails(&distrusting, post(url)).await.fault(), OutboundFault::Tls);
    assert!(Trust::file(std::path::Path::new("/no/such/file")).unwrap_err().to_string().contains("/no/such/file"));
}

#[test]
fn what_is_shown_of_a_call_has_no_secret() {
    let shown = format!("{:?} {:?}", post(format!("https://h/path?{SECRET}")), Outbound::new(nets("10.0.0.0/8")));
    assert!(shown.contains("https://h:443") && shown.contains("10.0.0.0/8"), "{shown}");
    assert!(!shown.contains(SECRET) && !shown.contains("path") && !shown.contains("body"), "{shown}");
}

#[tokio::test]
async fn a_client_that_reaches_private_targets_reaches_no_link_local_ones() {
    let (address, _seen) = serve(fine).await;
    let outbound = Outbound::with(Vec::new(), Names::new(&[]), Trust::system());
    let url = format!("http://127.0.0.1:{}/", address.port());
    assert_eq!(fails(&outbound, get(url.clone())).await.fault(), OutboundFault::Refused);
    let private = outbound.reaching_private();
    assert_eq!(private.call(get(url)).await.unwrap().status, StatusCode::OK);
    for other in
        ["169.254.169.254", "0.0.0.0", "168.63.129.16", "[fe80::1]", "[fd00:ec2::254]", "[fd20:ce::254]", "100.64.0.1"]
    {
        let error = fails(&private, get(format!("http://{other}:{}/", address.port()))).await;
        assert_eq!(error.fault(), OutboundFault::Refused, "{other}");
    }
}

#[tokio::test]
async fn connections_for_other_protocols_are_guarded_as_calls_are() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let outbound = Outbound::with(Vec::new(), Names::new(&[]), Trust::system());
    let patience = Duration::from_secs(5);
    let refused = outbound.connect("127.0.0.1", port, patience).await.unwrap_err();
    assert_eq!(refused.fault(), OutboundFault::Refused);
    assert!(refused.to_string().starts_with(&format!("127.0.0.1:{port}: ")), "{refused}");
    let private = outbound.reaching_private();
    assert!(private.connect("127.0.0.1", port, patience).await.is_ok());
    drop(listener);
    assert_eq!(private.connect("127.0.0.1", port, patience).await.unwrap_err().fault(), OutboundFault::Connection);
    for (host, fault) in
        [("169.254.169.254", OutboundFault::Refused), ("fe80::1", OutboundFault::Refused), ("a b", OutboundFault::Url)]
    {
        assert_eq!(private.connect(host, port, patience).await.unwrap_err().fault(), fault, "{host}");
    }
}
