use std::sync::Arc;

use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

fn server(url: &str) -> Syslog {
    Syslog::new(&url.parse().unwrap(), "local0", None).unwrap()
}

fn events(texts: &[&str]) -> Vec<Line> {
    texts.iter().map(|text| format!(r#"{{"@type":"SvcSecurityEvent","m":"{text}"}}"#).as_bytes().into()).collect()
}

/// Reads messages by the length before each, as RFC 6587 has it; so many of them.
async fn messages(stream: &mut (impl tokio::io::AsyncRead + Unpin), count: usize) -> Vec<String> {
    let mut messages = Vec::new();
    while messages.len() < count {
        let mut length = String::new();
        loop {
            match stream.read_u8().await.unwrap() {
                b' ' => break,
                digit => length.push(char::from(digit)),
            }
        }
        let mut message = vec![0; length.parse().unwrap()];
        stream.read_exact(&mut message).await.unwrap();
        messages.push(String::from_utf8(message).unwrap());
    }
    messages
}

fn text(message: &str) -> &str {
    let (_, event) = message.split_once(" SvcSecurityEvent - ").unwrap();
    event.split("\"m\":\"").nth(1).unwrap().trim_end_matches("\"}")
}

#[tokio::test]
async fn messages_have_their_length_before_them_and_a_server_that_was_away_is_found_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut sink = server(&format!("tcp://{}", listener.local_addr().unwrap()));
    let batch = events(&["one", "zwölf"]);
    let (written, accepted) = tokio::join!(sink.write(&batch), listener.accept());
    assert_eq!(written, Ok(()));
    let mut stream = accepted.unwrap().0;
    let first = messages(&mut stream, 2).await;
    assert_eq!(first.iter().map(|message| text(message)).collect::<Vec<_>>(), ["one", "zwölf"]);
    assert!(first[0].starts_with("<134>1 - "), "{first:?}");
    // The same connection is used again, until the server closes it.
    assert_eq!(sink.write(&events(&["three"])).await, Ok(()));
    assert_eq!(text(&messages(&mut stream, 1).await[0]), "three");
    drop(stream);
    let written = async {
        // The end of the connection may be on its way.
        while let Transport::Stream { open: Some(stream), .. } = &mut sink.transport
            && !has_ended(&mut **stream).await
        {
            tokio::task::yield_now().await;
        }
        sink.write(&events(&["four"])).await
    };
    let (written, accepted) = tokio::join!(written, listener.accept());
    assert_eq!(written, Ok(()));
    assert_eq!(text(&messages(&mut accepted.unwrap().0, 1).await[0]), "four");
    drop(listener);
    let mut late = sink.clone();
    assert_eq!(late.write(&events(&["five"])).await.unwrap_err().then, Then::Retry(None), "it is tried again");
}

#[tokio::test]
async fn over_tls_the_server_must_be_trusted() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), made.cert.pem()).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url: Uri = format!("tls://localhost:{}", listener.local_addr().unwrap().port()).parse().unwrap();
    let mut sink = Syslog::new(&url, "audit", Some(file.path())).unwrap();
    let accepted = async {
        let (stream, _) = listener.accept().await.unwrap();
        messages(&mut acceptor.accept(stream).await.unwrap(), 1).await
    };
    let batch = events(&["one"]);
    let (written, accepted) = tokio::join!(sink.write(&batch), accepted);
    assert_eq!(written, Ok(()));
    assert!(accepted[0].starts_with("<110>1 "), "{accepted:?}");

    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(file.path(), other.cert.pem()).unwrap();
    let mut sink = Syslog::new(&url, "audit", Some(file.path())).unwrap();
    let refused = async {
        let (stream, _) = listener.accept().await.unwrap();
        assert!(acceptor.accept(stream).await.is_err());
    };
    let (written, ()) = tokio::join!(sink.write(&batch), refused);
    assert_eq!(written.unwrap_err().then, Then::Retry(None));
}

#[tokio::test]
async fn a_datagram_is_a_message_and_one_that_does_not_fit_is_counted() {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut sink = server(&format!("udp://{}", socket.local_addr().unwrap()));
    let long = "x".repeat(MAX_DATAGRAM);
    let failure = sink.write(&events(&["one", &long, "two"])).await.unwrap_err();
    assert_eq!((failure.written, failure.refused, failure.then), (3, 1, Then::Drop), "{failure:?}");
    let mut buffer = vec![0; 65_536];
    for expected in ["one", "two"] {
        let length = socket.recv(&mut buffer).await.unwrap();
        assert_eq!(text(std::str::from_utf8(&buffer[..length]).unwrap()), expected);
    }
}

#[test]
fn what_cannot_be_an_address_is_said_at_the_start() {
    let error = |url: &str, facility: &str| Syslog::new(&url.parse().unwrap(), facility, None).unwrap_err().to_string();
    for url in ["http://a", "tcp://u:p@a", "tcp://a/path", "udp://a?x=1", "a"] {
        assert!(error(url, "local0").contains("cannot be used"), "{url}");
    }
    assert!(error("tcp://a", "local8").contains("local7"));
    let plain = Syslog::new(&"udp://[::1]".parse().unwrap(), "local7", None).unwrap();
    assert_eq!((plain.host.as_str(), plain.port), ("::1", 514));
}
