//! Small databases in the MaxMind format, for unit tests and tests in a gateway.

use std::net::IpAddr;

use serde_json::{Map, Value, json};

/// What a record of a node leads to.
#[derive(Clone, Copy)]
enum Leads {
    Nowhere,
    Node(usize),
    /// To the data at this place.
    Data(usize),
}

/// A database of these networks, each with its record. Networks of IPv4 are below `::/96`.
pub fn database(networks: &[(&str, Value)]) -> Vec<u8> {
    let (mut nodes, mut data) = (vec![[Leads::Nowhere; 2]], Vec::new());
    for (network, record) in networks {
        let (address, length) = network.split_once('/').unwrap();
        let (bits, length) = match address.parse::<IpAddr>().unwrap() {
            IpAddr::V4(address) => (u128::from(u32::from(address)), 96 + length.parse::<u32>().unwrap()),
            IpAddr::V6(address) => (u128::from(address), length.parse().unwrap()),
        };
        let mut node = 0;
        for depth in 0..length {
            let side = usize::from(bits >> (127 - depth) & 1 == 1);
            node = match nodes[node][side] {
                _ if depth + 1 == length => {
                    nodes[node][side] = Leads::Data(data.len());
                    break;
                }
                Leads::Node(next) => next,
                _ => {
                    nodes.push([Leads::Nowhere; 2]);
                    let next = nodes.len() - 1;
                    nodes[node][side] = Leads::Node(next);
                    next
                }
            };
        }
        encode(record, &mut data);
    }
    let tree: Vec<[u32; 2]> = nodes
        .iter()
        .map(|sides| {
            sides.map(|leads| {
                u32::try_from(match leads {
                    Leads::Nowhere => nodes.len(),
                    Leads::Node(node) => node,
                    Leads::Data(place) => nodes.len() + 16 + place,
                })
                .unwrap()
            })
        })
        .collect();
    assembled(&tree, &data)
}

/// A database of these nodes and this data, whatever they are.
pub fn assembled(tree: &[[u32; 2]], data: &[u8]) -> Vec<u8> {
    let mut file: Vec<u8> = tree.iter().flatten().flat_map(|record| record.to_be_bytes()).collect();
    file.extend([0; 16]);
    file.extend(data);
    file.extend(b"\xab\xcd\xefMaxMind.com");
    let about = json!({
        "record_size": 32, "ip_version": 6, "binary_format_major_version": 2, "binary_format_minor_version": 0,
        "database_type": "Test", "languages": ["en"], "description": { "en": "a test" },
    });
    let fields = about.as_object().unwrap();
    // Two more, of types that no other value has.
    head(7, fields.len() + 2, &mut file);
    fields.iter().for_each(|(name, value)| {
        encode(&json!(name), &mut file);
        encode(value, &mut file);
    });
    encode(&json!("node_count"), &mut file);
    head(6, 4, &mut file);
    file.extend(u32::try_from(tree.len()).unwrap().to_be_bytes());
    encode(&json!("build_epoch"), &mut file);
    head(9, 8, &mut file);
    file.extend(1_u64.to_be_bytes());
    file
}

/// Writes a value: 16 bit numbers, as the metadata needs, where they are small.
pub fn encode(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => panic!("there is no null"),
        Value::Bool(flag) => head(14, usize::from(*flag), out),
        Value::String(text) => {
            head(2, text.len(), out);
            out.extend(text.as_bytes());
        }
        Value::Number(number) => match number.as_u64() {
            Some(number) if number < 1 << 16 => {
                head(5, 2, out);
                out.extend(&number.to_be_bytes()[6..]);
            }
            Some(number) => {
                head(6, 4, out);
                out.extend(&number.to_be_bytes()[4..]);
            }
            None => {
                head(3, 8, out);
                out.extend(number.as_f64().unwrap().to_be_bytes());
            }
        },
        Value::Array(list) => {
            head(11, list.len(), out);
            list.iter().for_each(|value| encode(value, out));
        }
        Value::Object(fields) => map(fields, out),
    }
}

fn map(fields: &Map<String, Value>, out: &mut Vec<u8>) {
    head(7, fields.len(), out);
    for (name, value) in fields {
        encode(&json!(name), out);
        encode(value, out);
    }
}

/// The head of a value of a type, with its size.
fn head(kind: u8, size: usize, out: &mut Vec<u8>) {
    let (first, more) = match size {
        0..29 => (u8::try_from(size).unwrap(), Vec::new()),
        29..285 => (29, vec![u8::try_from(size - 29).unwrap()]),
        _ => (30, u16::try_from(size - 285).unwrap().to_be_bytes().to_vec()),
    };
    match kind {
        0..=7 => out.push(kind << 5 | first),
        _ => out.extend([first, kind - 7]),
    }
    out.extend(more);
}
