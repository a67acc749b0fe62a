//! Searches for marks of two or three bytes, such as the end of a comment.

use memchr::memchr_iter;

/// Where `mark`, of at least one byte, occurs first. What is between marks is short as a rule: a general search takes longer to begin
/// than to find the next one.
pub(crate) fn find(input: &[u8], mark: &[u8]) -> Option<usize> {
    let last = *mark.last()?;
    memchr_iter(last, input).find_map(|at| {
        let start = (at + 1).checked_sub(mark.len())?;
        (input.get(start..=at)? == mark).then_some(start)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_a_general_search_finds() {
        let letters = b"*/-";
        for length in 0..8_u32 {
            for number in 0..3_usize.pow(length) {
                let text: Vec<u8> = (0..length).map(|at| letters[number / 3_usize.pow(at) % 3]).collect();
                for mark in [b"*/".as_slice(), b"/*", b"--", b"-", b"*/-", b"---"] {
                    assert_eq!(find(&text, mark), memchr::memmem::find(&text, mark), "{text:?} {mark:?}");
                }
            }
        }
    }
}
