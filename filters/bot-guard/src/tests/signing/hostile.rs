//! Headers that no client writes: whatever they are, a request goes on or is refused as without them, and none verifies.

use super::*;

/// A small generator: the same numbers in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

fn with_fields(exchange: &mut Exchange, fields: &[(&str, Vec<u8>)]) {
    let kept = [":scheme", "user-agent"]
        .into_iter()
        .filter_map(|name| Some((name, exchange.request.headers.get(name)?.to_vec())));
    let all: Vec<(&str, Vec<u8>)> = kept.chain(fields.iter().cloned()).collect();
    exchange.request.headers = Headers::new(&all);
}

#[test]
fn damaged_fields_verify_nothing_but_what_means_the_same() {
    let worker = Worker::with(BotGuardStep { signatures_per_second: 1_000_000, ..step() }, bots());
    worker.publish(&[(AGENT, &[key_of(1)])]);
    let right = Signed::new().exchange();
    let fields = ["signature-input", "signature", "signature-agent"]
        .map(|name| (name, right.request.headers.get(name).unwrap().to_vec()));
    let bytes = b"\"\\();=,:?@*-.0aZ \t\x00\x7f\xff%";
    let mut numbers = Numbers(7);
    let (mut verified, mut bad) = (0, 0);
    for round in 0..20_000_u32 {
        let mut damaged = fields.clone();
        for _ in 0..=numbers.below(3) {
            let field = &mut damaged[numbers.below(3)].1;
            let place = numbers.below(field.len().max(1));
            match numbers.below(4) {
                0 if !field.is_empty() => drop(field.remove(place)),
                1 => field.insert(place, bytes[numbers.below(bytes.len())]),
                2 => field.truncate(place),
                _ if !field.is_empty() => field[place] = bytes[numbers.below(bytes.len())],
                _ => {}
            }
        }
        let mut exchange =
            Signed { address: std::net::Ipv4Addr::from(0x0a00_0000 + round * 256).to_string(), ..Signed::new() }
                .exchange();
        with_fields(&mut exchange, &damaged);
        match worker.finds_in(&mut exchange).as_str() {
            "v signerbot" => {
                verified += 1;
                // White space, padding and zeros in front make another spelling of the same; parameters of a signature mean nothing.
                let meaning = |fields: &[(&str, Vec<u8>)]| {
                    let spelled = |(name, value): &(&str, Vec<u8>)| {
                        let end = value.iter().rposition(|byte| *byte == b':').filter(|_| *name == "signature");
                        let value = &value[..end.unwrap_or(value.len())];
                        value.iter().filter(|byte| !b" \t=0".contains(byte)).copied().collect::<Vec<u8>>()
                    };
                    fields.iter().map(spelled).collect::<Vec<_>>()
                };
                let same = meaning(&damaged) == meaning(&fields);
                assert!(same, "{:?}", damaged.map(|(_, value)| value.escape_ascii().to_string()));
            }
            "bad" => bad += 1,
            _ => {}
        }
    }
    assert!(verified > 0 && bad > 50, "{verified} {bad}: the damage is not of one kind");
}

#[test]
fn long_and_many_fields_are_not_read() {
    let worker = Worker::new();
    let long = |byte: u8, length| vec![byte; length];
    let right = Signed::new().exchange();
    let field = |name: &str| right.request.headers.get(name).unwrap().to_vec();
    let [input, signature, agent] = ["signature-input", "signature", "signature-agent"].map(field);
    let padded = |field: &[u8], length| [field, b", pad=\"", &long(b'x', length), b"\""].concat();
    for (fields, found) in [
        (
            vec![
                ("signature-input", padded(&input, 7000)),
                ("signature", signature.clone()),
                ("signature-agent", agent.clone()),
            ],
            "v signerbot",
        ),
        (
            vec![
                ("signature-input", padded(&input, 8192)),
                ("signature", signature.clone()),
                ("signature-agent", agent.clone()),
            ],
            "-",
        ),
        (
            vec![
                ("signature-input", input.clone()),
                ("signature", padded(&signature, 8192)),
                ("signature-agent", agent.clone()),
            ],
            "-",
        ),
        (
            vec![
                ("signature-input", input.clone()),
                ("signature", signature.clone()),
                ("signature-agent", padded(&agent, 8192)),
            ],
            "-",
        ),
        (
            vec![
                ("signature-input", long(b'(', 8000)),
                ("signature", long(b'(', 8000)),
                ("signature-agent", long(b'(', 8000)),
            ],
            "-",
        ),
        (std::iter::repeat_n(("signature-input", long(b'a', 1000)), 60).collect(), "-"),
    ] {
        let mut exchange = Signed::new().exchange();
        with_fields(&mut exchange, &fields);
        assert_eq!(worker.finds_in(&mut exchange), found, "{}", fields.len());
    }
    // A field that is read for each of its members.
    let mut signed = Signed { base: Some(String::new()), ..Signed::new() };
    let keys: Vec<String> = (0..16).map(|number| format!("\"x-map\";key=\"k{number}\"")).collect();
    signed.components = format!("\"@authority\" {} \"signature-agent\";key=\"sig\"", keys.join(" "));
    let members: Vec<String> =
        (0..16).map(|number| format!("k{number}=\"{}\"", "x".repeat(if number < 15 { 1 } else { 600 }))).collect();
    signed.headers.push(("x-map".to_owned(), members.join(", ").into_bytes()));
    assert_eq!(worker.finds(&signed), "what it covers is too long");
    // Long headers and paths that are covered.
    for (components, path) in
        [("\"@authority\" \"x-long\"", "/"), ("\"@authority\" \"@path\" \"@target-uri\" \"@request-target\"", "long")]
    {
        let mut signed = Signed {
            components: format!("{components} \"signature-agent\";key=\"sig\""),
            base: Some(String::new()),
            ..Signed::new()
        };
        signed.headers.push(("x-long".to_owned(), long(b'x', 9000)));
        let mut exchange = signed.exchange();
        exchange.request.path = if path == "long" { long(b'/', 9000) } else { path.into() };
        assert_eq!(worker.finds_in(&mut exchange), "what it covers is too long", "{components}");
    }
}
