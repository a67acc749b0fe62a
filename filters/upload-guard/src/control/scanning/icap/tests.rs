use super::*;

async fn read(text: &str, length: usize) -> Result<Reply, String> {
    read_reply(&mut BufReader::new(text.as_bytes()), length, is_infected).await
}

#[tokio::test]
async fn findings_are_read_from_the_headers_of_many_servers() {
    for (headers, expected) in [
        ("X-Infection-Found: Type=0; Resolution=2; Threat=Eicar;", Some("Eicar")),
        ("X-Virus-ID: Eicar", Some("Eicar")),
        ("X-Violations-Found: 1", Some("1")),
        ("x-virus-name: Eicar", Some("Eicar")),
        ("X-Virus-ID: none", None),
        ("X-Infection-Found: 0", None),
    ] {
        let reply = read(&format!("ICAP/1.0 204 No Content\r\n{headers}\r\n\r\n"), 0).await.unwrap();
        let expected = expected.map_or(Verdict::Clean, |threat| Verdict::Infected(threat.to_owned()));
        assert_eq!(verdict(&reply, b"x"), Ok(expected), "{headers}");
    }
}

#[tokio::test]
async fn another_answer_in_place_of_the_file_is_a_finding() {
    let answer = |http: &str, body: &str| {
        let chunk = if body.is_empty() { String::new() } else { format!("{:x}\r\n{body}\r\n", body.len()) };
        format!("ICAP/1.0 200 OK\r\nEncapsulated: res-hdr=0, res-body={}\r\n\r\n{http}{chunk}0\r\n\r\n", http.len())
    };
    let ok = "HTTP/1.1 200 OK\r\n\r\n";
    for (text, clean) in [
        (answer(ok, "file"), true),
        (answer(ok, "page"), false),
        (answer(ok, ""), false),
        (answer("HTTP/1.1 403 Forbidden\r\n\r\n", "file"), false),
    ] {
        let reply = read(&text, 4).await.unwrap();
        assert_eq!(verdict(&reply, b"file") == Ok(Verdict::Clean), clean, "{text}");
    }
    // Longer than it could be: the connection is not used again.
    let long = read(&answer(ok, &"x".repeat(600_000)), 4).await.unwrap();
    assert!(!long.complete && matches!(verdict(&long, b"file"), Ok(Verdict::Infected(_))));
    assert!(verdict(&read("ICAP/1.0 200 OK\r\n\r\n", 0).await.unwrap(), b"x").is_err());
    assert!(verdict(&read("ICAP/1.0 404 Not Found\r\n\r\n", 0).await.unwrap(), b"x").is_err());
}

#[tokio::test]
async fn damaged_answers_are_errors() {
    for text in [
        "",
        "ICAP/1.0",
        "ICAP/1.0 200",
        "ICAP/1.0 x OK\r\n\r\n",
        "HTTP/1.1 204 No\r\n\r\n",
        "ICAP/1.0 200 OK\r\nEncapsulated: res-hdr=0\r\n\r\nHTTP/1.1",
        "ICAP/1.0 200 OK\r\nEncapsulated: res-body=0\r\n\r\nzz\r\n",
        "ICAP/1.0 200 OK\r\nEncapsulated: res-body=0\r\n\r\n5\r\nab",
        "ICAP/1.0 200 OK\r\nEncapsulated: res-body=0\r\n\r\n2\r\nabc\r\n0\r\n\r\n",
        "ICAP/1.0 200 OK\r\nEncapsulated: res-body=0\r\n\r\n0\r\n",
    ] {
        assert!(read(text, 10).await.is_err(), "{text:?}");
    }
    let endless = format!("ICAP/1.0 200 OK\r\n{}", "a: b\r\n".repeat(10_000));
    assert!(read(&endless, 10).await.unwrap_err().contains("too long a head"));
}
