//! Names that hold secrets or personal data, and headers that are no parameters of an API.

/// Words of names whose values are never quoted: no lists of values, no ranges, no lengths.
const SENSITIVE: [&str; 69] = [
    "account",
    "address",
    "answer",
    "apikey",
    "auth",
    "authorization",
    "bearer",
    "bic",
    "birth",
    "birthday",
    "card",
    "cc",
    "city",
    "cookie",
    "credential",
    "credentials",
    "csrf",
    "cvc",
    "cvv",
    "dob",
    "email",
    "fax",
    "fingerprint",
    "firstname",
    "hash",
    "iban",
    "imei",
    "ip",
    "jwt",
    "key",
    "lastname",
    "lat",
    "latitude",
    "license",
    "lng",
    "login",
    "lon",
    "longitude",
    "mail",
    "mobile",
    "msisdn",
    "name",
    "nonce",
    "otp",
    "owner",
    "pan",
    "passcode",
    "passport",
    "passwd",
    "password",
    "phone",
    "pin",
    "postcode",
    "pwd",
    "salary",
    "secret",
    "session",
    "sid",
    "signature",
    "ssn",
    "street",
    "surname",
    "tax",
    "tel",
    "telephone",
    "token",
    "user",
    "username",
    "zip",
];

/// Headers that HTTP, browsers, proxies and gateways define.
const STANDARD_HEADERS: [&str; 70] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "access-control-request-headers",
    "access-control-request-method",
    "age",
    "alt-used",
    "authorization",
    "baggage",
    "b3",
    "cache-control",
    "cdn-loop",
    "connection",
    "content-digest",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-length",
    "content-type",
    "cookie",
    "date",
    "dnt",
    "early-data",
    "expect",
    "forwarded",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "keep-alive",
    "max-forwards",
    "newrelic",
    "origin",
    "pragma",
    "priority",
    "proxy-authorization",
    "proxy-connection",
    "purpose",
    "range",
    "referer",
    "save-data",
    "sec-gpc",
    "sec-purpose",
    "sentry-trace",
    "te",
    "traceparent",
    "tracestate",
    "trailer",
    "transfer-encoding",
    "true-client-ip",
    "upgrade",
    "upgrade-insecure-requests",
    "user-agent",
    "via",
    "warning",
    "want-digest",
    "x-correlation-id",
    "x-real-ip",
    "x-request-id",
    "x-request-start",
    "x-requested-with",
    "x-schemathesis-testcaseid",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-original-url",
    "x-trace-id",
];

/// Beginnings of such headers.
const STANDARD_PREFIXES: [&str; 11] = [
    ":",
    "sec-ch-",
    "sec-fetch-",
    "sec-websocket-",
    "x-forwarded-",
    "x-envoy-",
    "x-b3-",
    "cf-",
    "x-amzn-",
    "x-datadog-",
    "x-cloud-trace",
];

/// Whether a name holds what must not be quoted.
pub(crate) fn is_sensitive(name: &str) -> bool {
    let mut word = String::new();
    let mut was_lower = false;
    for character in name.chars().chain(std::iter::once(' ')) {
        let begins = !character.is_alphanumeric() || (character.is_uppercase() && was_lower);
        if begins && !word.is_empty() {
            let plural = word.strip_suffix('s').unwrap_or(&word);
            if SENSITIVE.binary_search(&word.as_str()).is_ok() || SENSITIVE.binary_search(&plural).is_ok() {
                return true;
            }
            word.clear();
        }
        was_lower = character.is_lowercase();
        if character.is_alphanumeric() {
            word.extend(character.to_lowercase());
        }
    }
    false
}

/// Whether a header may be a parameter of an API.
pub(crate) fn is_parameter(header: &str) -> bool {
    !STANDARD_HEADERS.contains(&header) && !STANDARD_PREFIXES.iter().any(|prefix| header.starts_with(prefix))
}

/// Whether a name is one of a program, and no value: short, of letters, digits and a few signs, without long numbers.
pub(crate) fn is_name(name: &str) -> bool {
    let plain = name.chars().all(|character| character.is_ascii_alphanumeric() || "_-.$[]:@".contains(character));
    let starts = name.starts_with(|first: char| first.is_ascii_alphabetic() || "_$@".contains(first));
    let digits = name.chars().filter(char::is_ascii_digit).count();
    let address = name.char_indices().any(|(at, character)| character == '@' && at > 0);
    plain
        && starts
        && !address
        && name.len() <= 64
        && digits * 3 <= name.len()
        && !crate::segment::is_token(name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_sorted_and_found_in_names() {
        assert!(SENSITIVE.is_sorted());
        for name in ["email", "userEmail", "X-Api-Key", "card_number", "passwords", "billingAddress", "APIKEY"] {
            assert!(is_sensitive(name), "{name}");
        }
        for name in ["status", "monkey", "limit", "category", "mailbox", "tokenizer"] {
            assert!(!is_sensitive(name), "{name}");
        }
    }

    #[test]
    fn names_are_not_values() {
        for name in ["status", "created_at", "filter[kind]", "$top", "line2", "@type"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "12", "a@b.example", "3f2c9a70b1", "550e8400-e29b-41d4-a716-446655440000", "two words", "kä"]
        {
            assert!(!is_name(name), "{name}");
        }
    }
}
