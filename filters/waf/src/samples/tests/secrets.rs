//! No secret leaves the node.

use super::*;

#[test]
fn no_secret_is_in_any_report() {
    let parts = |secret: &str| {
        format!(
            "--b\r\nContent-Disposition: form-data; name=password\r\n\r\n{secret}\r\n--b\r\nContent-Disposition: form-data; name=q\r\n\r\nodd whole\r\n--b--\r\n"
        )
    };
    let bodies = |secret: &str| {
        [
            ("application/x-www-form-urlencoded", format!("q=odd+whole&password={secret}&card[number]={secret}")),
            (
                "application/json",
                format!("{{\"q\":\"odd whole\",\"user\":{{\"password\":\"{secret}\",\"pin\":{secret}}}}}"),
            ),
            ("multipart/form-data; boundary=b", parts(secret)),
            ("text/xml", format!("<a><q>odd whole</q><password>{secret}</password></a>")),
            ("text/plain", format!("q=odd whole\r\npassword={secret}")),
            ("application/x-www-form-urlencoded", format!("{{\"password\":\"{secret}\",\"odd whole\":\"\"}}")),
            ("application/json", format!("q=odd whole&token={secret}")),
            ("application/x-www-form-urlencoded", format!("password={secret}odd")),
        ]
    };
    // Digits, so that they are a number in JSON as well.
    let secret = "8675309867530986";
    let (host, plugin) = (host(), plugin_of(RULES, step()));
    let mut total = 0;
    for (number, (kind, body)) in bodies(secret).into_iter().enumerate() {
        let (referer, cookie) =
            (format!("https://a/?token={secret}"), format!("odd=odd; sid={secret}; other={secret}"));
        let headers = Headers::from([
            ("content-type", kind),
            ("authorization", secret),
            ("x-session-token", secret),
            ("referer", &referer),
            ("cookie", &cookie),
            ("user-agent", "odd"),
        ]);
        let path = format!(
            "/p{number};jsessionid={secret}?a=odd&api_key={secret}&p%69n={secret}&x=%7B%22secret%22:%22{secret}%22%7D"
        );
        ask(&*plugin, exchange(&path, headers), body.as_bytes(), &host);
        host.advance(u64::from(TICK));
        plugin.on_timer(&host);
        for (_, report) in host.reports.take() {
            assert!(!contains(&report, secret.as_bytes()), "{kind}: {}", report.escape_ascii());
            total += MatchReport::decode(report.as_slice()).unwrap().matches.len();
        }
    }
    assert!(total >= 24, "{total}");
}

#[test]
fn what_matched_stays_in_the_request_unless_it_is_a_secret() {
    let (host, plugin) = (host(), plugin_of(RULES, step()));
    ask(&*plugin, exchange("/", Headers::from([("cookie", "a=odd; b=2")])), b"", &host);
    let found = matched(&*plugin, &host);
    let request = found.request.unwrap();
    assert_eq!(
        (found.target.as_str(), header(&request, "cookie")),
        ("REQUEST_COOKIES:a", Some(b"a=odd; b=***".as_slice()))
    );
    get(&*plugin, "/login?password=odd", &host);
    let found = matched(&*plugin, &host);
    let request = found.request.unwrap();
    assert_eq!((found.target.as_str(), found.value.as_slice()), ("ARGS:password", b"***".as_slice()));
    assert_eq!((request.uri.as_slice(), request.masked), (b"/login?password=***".as_slice(), true));
    get(&*plugin, "/odd?odd_token=1", &host);
    let found = matched(&*plugin, &host);
    let request = found.request.unwrap();
    assert_eq!((found.target.as_str(), found.value.as_slice()), ("ARGS_NAMES:odd_token", b"odd_token".as_slice()));
    assert_eq!((request.uri.as_slice(), request.masked), (b"/odd?odd_token=***".as_slice(), false));
}

#[test]
fn numbers_of_cards_stay_only_where_they_matched() {
    let (host, plugin) = (host(), plugin_of(RULES, step()));
    let body = b"q=odd+whole+4111111111111111&x=4111111111111111&y=5555555555554444";
    ask(&*plugin, exchange("/?z=5555555555554444", form()), body, &host);
    let reports = tick(&*plugin, &host);
    let shown = |rule_id: u64| {
        let found = matches(&reports).into_iter().find(|found| found.rule_id == rule_id).unwrap();
        let request = found.request.as_ref().unwrap();
        [&found.value, &request.uri, &request.body].map(|text| text.escape_ascii().to_string())
    };
    let body = "q=odd+whole+4111111111111111&x=4111111111111111&y=***";
    assert_eq!(shown(2), ["odd whole 4111111111111111", "/?z=***", body]);
    let body = "q=odd+whole+***&x=***&y=***";
    assert_eq!(shown(8), [body, "/?z=***", body], "all of the body matched");
}

#[test]
fn what_rules_sanitise_is_in_no_sample() {
    let rules = "SecRuleEngine On\nSecRule ARGS:q \"@contains odd\" \"id:1,phase:1,pass,log\"\n\
        SecAction \"id:2,phase:5,pass,nolog,sanitiseArg:note\"";
    let (host, plugin) = (host(), plugin_of(rules, step()));
    get(&*plugin, "/?q=odd&note=hunter2", &host);
    assert_eq!(matched(&*plugin, &host).request.unwrap().uri, b"/?q=odd&note=***");
}
