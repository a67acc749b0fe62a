//! `normalizePath` and `normalizePathWin`.

/// Resolves empty, `.` and `..` segments of a path. Never climbs above the root of an absolute path; `..` at the start
/// of a relative path stays. A slash at the end stays, none is added.
pub(super) fn normalize(input: &[u8]) -> Option<Vec<u8>> {
    // Without a segment of dots and two slashes in a row there is nothing to resolve.
    let dots = memchr::memchr_iter(b'.', input).any(|at| {
        let after = input.get(at + 1..).unwrap_or_default();
        let after = after.strip_prefix(b".").unwrap_or(after);
        matches!(after.first(), None | Some(b'/')) && (at == 0 || input.get(at - 1) == Some(&b'/'))
    });
    if !dots {
        memchr::memmem::find(input, b"//")?;
    }
    Some(resolve(input))
}

/// As [`normalize`], after turning each `\` into `/`.
pub(super) fn normalize_windows(input: &[u8]) -> Option<Vec<u8>> {
    if memchr::memchr(b'\\', input).is_none() {
        return normalize(input);
    }
    let slashes: Vec<u8> = input.iter().map(|&byte| if byte == b'\\' { b'/' } else { byte }).collect();
    Some(resolve(&slashes))
}

fn resolve(input: &[u8]) -> Vec<u8> {
    let absolute = input.first() == Some(&b'/');
    let trailing = input.last() == Some(&b'/');
    // How many of the segments kept so far can be climbed out of again.
    let mut named: Vec<usize> = Vec::new();
    let mut output = Vec::with_capacity(input.len());
    if absolute {
        output.push(b'/');
    }
    for segment in input.split(|&byte| byte == b'/') {
        match segment {
            b"" | b"." => continue,
            b".." => match named.pop() {
                Some(start) => output.truncate(start),
                None if absolute => {}
                None => output.extend_from_slice(b"../"),
            },
            _ => {
                named.push(output.len());
                output.extend_from_slice(segment);
                output.push(b'/');
            }
        }
    }
    if !trailing && output.last() == Some(&b'/') && (output.len() > 1 || !absolute) {
        output.pop();
    }
    output
}
