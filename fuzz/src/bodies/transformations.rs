//! Transformations: a byte that says how many, their codes, and the input. No code runs all of them, each on the input.

use std::borrow::Cow;

use seclang::transform::Transform;

use super::split_byte;

/// One more than the highest code.
const CODES: u8 = 36;

pub fn run(data: &[u8]) {
    let Some((count, rest)) = split_byte(data) else { return };
    let (codes, input) = rest.split_at(usize::from(count % 8).min(rest.len()));
    if codes.is_empty() {
        for code in 0..CODES {
            apply(code, input);
        }
        return;
    }
    let mut value = input.to_vec();
    for code in codes {
        value = apply(code % CODES, &value);
        // Encoding over and over grows as it should, which shows nothing.
        value.truncate(1 << 20);
    }
}

fn apply(code: u8, input: &[u8]) -> Vec<u8> {
    let transform = Transform::from_code(code).expect("codes have no gap");
    assert_eq!(transform.code(), code);
    let output = transform.apply(input);
    assert!(output.len() <= bound(transform, input.len()), "{}: {} of {}", transform.name(), output.len(), input.len());
    match &output {
        Cow::Borrowed(same) => assert_eq!(*same, input, "{}: borrowed, yet changed", transform.name()),
        Cow::Owned(changed) => assert_ne!(changed, input, "{}: owned, yet unchanged", transform.name()),
    }
    let output = output.into_owned();
    if is_idempotent(transform) {
        assert_eq!(transform.apply(&output), output.as_slice(), "{}: not the same twice", transform.name());
    }
    output
}

/// How long the output may be.
fn bound(transform: Transform, input: usize) -> usize {
    match transform {
        Transform::Base64Encode => input.div_ceil(3) * 4,
        Transform::HexEncode => 2 * input,
        Transform::UrlEncode => 3 * input,
        Transform::Utf8ToUnicode => 6 * input,
        Transform::Length => 20,
        Transform::Md5 => 16,
        Transform::Sha1 => 20,
        _ => input,
    }
}

/// Whether a second application changes nothing. Decoders are not, for what they give may be encoded
/// again; nor are the two parities, which count the bit they set.
fn is_idempotent(transform: Transform) -> bool {
    use Transform as T;
    matches!(
        transform,
        T::None
            | T::CompressWhitespace
            | T::Lowercase
            | T::Uppercase
            | T::ParityZero7bit
            | T::RemoveNulls
            | T::RemoveWhitespace
            | T::ReplaceNulls
            | T::Trim
            | T::TrimLeft
            | T::TrimRight
    )
}
