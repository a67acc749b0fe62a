//! Exchanges from a seed.

use std::path::Path;

use super::case::Case;
use super::mutate::mutate;
use super::templates::exchange;
use ftw::request;
use ftw::suite::{Selection, Suite};
use recording::random::Random;

/// The cases of a seed. With exchanges of a suite, every second case begins as one of them.
#[must_use]
pub fn cases(seed: u64, count: usize, suite: &[Case]) -> Vec<Case> {
    (0..count)
        .map(|number| {
            let mut random = Random::new(seed, number as u64);
            let own = exchange(&mut random);
            let mut case = match suite.len() {
                0 => own,
                length if number % 2 == 0 => suite[random.below(length)].clone(),
                _ => own,
            };
            case.name = match case.name.as_str() {
                "" => format!("{seed}-{number}"),
                test => format!("{seed}-{number}-{test}"),
            };
            if random.chance(60) {
                let other = exchange(&mut random);
                mutate(&mut random, &mut case, &other);
            }
            transmissible(&mut case);
            case
        })
        .collect()
}

/// The exchanges of a regression suite of the OWASP Core Rule Set, to begin with.
///
/// # Errors
///
/// A folder without tests.
pub fn suite(folder: &Path) -> Result<Vec<Case>, String> {
    let suite = Suite::read(folder, &Selection::default())?;
    let mut cases = Vec::new();
    for test in &suite.tests {
        for stage in &test.stages {
            let Ok(exchange) = request::exchange(&stage.input) else { continue };
            let mut case = Case { name: test.name.clone(), ..Case::default() };
            for (name, value) in exchange.request.headers {
                match name.as_slice() {
                    b":method" => case.method = value,
                    b":path" => case.uri = value,
                    b":authority" => case.headers.push((b"host".to_vec(), value)),
                    _ => case.headers.push((name, value)),
                }
            }
            case.protocol = String::from_utf8_lossy(&exchange.request.protocol).into_owned();
            case.body = exchange.request.body;
            case.status = exchange.response.status;
            case.response_headers = exchange.response.headers;
            case.response_body = exchange.response.body;
            cases.push(case);
        }
    }
    Ok(cases)
}

/// What no server would hand on to an engine is taken out: an engine is not asked about it.
fn transmissible(case: &mut Case) {
    let uri = std::mem::take(&mut case.uri);
    for byte in uri {
        match byte {
            0..=0x20 | 0x7f => case.uri.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            _ => case.uri.push(byte),
        }
    }
    if case.uri.is_empty() {
        case.uri.push(b'/');
    }
    for (_, value) in case.headers.iter_mut().chain(&mut case.response_headers) {
        value.retain(|byte| !matches!(byte, 0 | b'\r' | b'\n'));
        *value = value.trim_ascii().to_vec();
    }
    let length = case.body.len().to_string().into_bytes();
    for (name, value) in &mut case.headers {
        let is_length = name.eq_ignore_ascii_case(b"content-length");
        if is_length && value.iter().all(u8::is_ascii_digit) {
            value.clone_from(&length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_cases_however_many_are_wanted() {
        let many = cases(1, 40, &[]);
        assert_eq!(cases(1, 10, &[]), many[..10]);
        assert_ne!(cases(2, 10, &[]), many[..10]);
        let with_body = many.iter().filter(|case| !case.body.is_empty()).count();
        assert!((10..40).contains(&with_body), "{with_body} of 40 have a body");
    }

    #[test]
    fn nothing_is_asked_that_no_server_would_hand_on() {
        for case in cases(3, 300, &[]) {
            assert!(case.uri.iter().all(|&byte| byte > 0x20 && byte != 0x7f), "{}", case.text());
            let values = case.headers.iter().map(|(_, value)| value);
            assert!(values.flatten().all(|byte| !matches!(byte, 0 | b'\r' | b'\n')), "{}", case.text());
        }
    }
}
