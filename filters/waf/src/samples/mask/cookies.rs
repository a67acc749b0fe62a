//! Cookies: all values but that of the cookie that matched.

use super::{MASK, Mask};
use crate::samples::target::Input;

impl Mask<'_> {
    /// The value of a `Cookie` header. Text without a name is a value for some applications.
    pub(super) fn cookies(&self, header: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(header.len());
        for (number, cookie) in header.split(|byte| *byte == b';').enumerate() {
            if number > 0 {
                out.push(b';');
            }
            let start = cookie.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let (space, cookie) = cookie.split_at_checked(start).unwrap_or((b"", cookie));
            out.extend_from_slice(space);
            let equals = cookie.iter().position(|byte| *byte == b'=');
            let name = cookie.get(..equals.unwrap_or(cookie.len())).unwrap_or_default();
            if self.keeps_cookie(name.trim_ascii_end()) || cookie.is_empty() {
                out.extend_from_slice(cookie);
                continue;
            }
            let (name, value) = match equals.and_then(|equals| cookie.split_at_checked(equals.saturating_add(1))) {
                Some(parts) => parts,
                None => (b"".as_slice(), cookie),
            };
            out.extend_from_slice(name);
            if !value.is_empty() {
                out.extend_from_slice(MASK);
            }
        }
        out
    }

    fn keeps_cookie(&self, name: &[u8]) -> bool {
        match self.target.input {
            Input::Cookie(matched) => matched.eq_ignore_ascii_case(name) && !self.is_secret(name),
            _ => false,
        }
    }
}
