//! libinjection, as libmodsecurity exports it.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;

use libloading::Library;

/// How much room the state of the library gets: it is far smaller.
const STATE: usize = 4096;

/// The bits by which the library is told how to read a value as SQL.
const NO_QUOTE: c_int = 1;
const SINGLE_QUOTE: c_int = 2;
const DOUBLE_QUOTE: c_int = 4;
const ANSI: c_int = 8;
const MYSQL: c_int = 16;

/// The state of its tokenizer for HTML.
#[repr(C)]
struct HtmlState {
    value: *const c_char,
    length: usize,
    at: usize,
    closes: c_int,
    state: *const c_void,
    token: *const c_char,
    token_length: usize,
    kind: c_int,
}

/// The functions of the library.
pub struct Libinjection {
    version: unsafe extern "C" fn() -> *const c_char,
    sqli: unsafe extern "C" fn(*const c_char, usize, *mut c_char) -> c_int,
    sqli_init: unsafe extern "C" fn(*mut c_void, *const c_char, usize, c_int),
    sqli_fingerprint: unsafe extern "C" fn(*mut c_void, c_int) -> *const c_char,
    sqli_check: unsafe extern "C" fn(*mut c_void) -> c_int,
    xss: unsafe extern "C" fn(*const c_char, usize) -> c_int,
    is_xss: unsafe extern "C" fn(*const c_char, usize, c_int) -> c_int,
    html_init: unsafe extern "C" fn(*mut HtmlState, *const c_char, usize, c_int),
    html_next: unsafe extern "C" fn(*mut HtmlState) -> c_int,
    _library: Library,
}

/// A value with the NUL after it that the library may look at.
pub struct Terminated(Vec<u8>);

impl Terminated {
    pub fn new(value: &[u8]) -> Self {
        Self([value, &[0, 0, 0, 0]].concat())
    }

    fn start(&self) -> *const c_char {
        self.0.as_ptr().cast()
    }

    fn length(&self) -> usize {
        self.0.len() - 4
    }
}

impl Libinjection {
    /// Loads the library from a file.
    pub fn load(path: &Path) -> Result<Self, libloading::Error> {
        // SAFETY: the functions have had these types since version 3.9; what version 4 returns fits into an `int`.
        unsafe {
            let library = Library::new(path)?;
            Ok(Self {
                version: *library.get(b"libinjection_version\0")?,
                sqli: *library.get(b"libinjection_sqli\0")?,
                sqli_init: *library.get(b"libinjection_sqli_init\0")?,
                sqli_fingerprint: *library.get(b"libinjection_sqli_fingerprint\0")?,
                sqli_check: *library.get(b"libinjection_sqli_check_fingerprint\0")?,
                xss: *library.get(b"libinjection_xss\0")?,
                is_xss: *library.get(b"libinjection_is_xss\0")?,
                html_init: *library.get(b"libinjection_h5_init\0")?,
                html_next: *library.get(b"libinjection_h5_next\0")?,
                _library: library,
            })
        }
    }

    /// What it says its version is; some builds say nothing.
    pub fn version(&self) -> String {
        // SAFETY: the library returns a constant.
        unsafe { CStr::from_ptr((self.version)()) }.to_string_lossy().into_owned()
    }

    /// Whether it is version 3: to it a number without the digits of its exponent is a name, since then it is nothing.
    pub fn is_version_3(&self) -> bool {
        !self.read_sql(&Terminated::new(b"1.e"), None, true).0.is_empty()
    }

    /// Whether a value is an SQL injection.
    pub fn is_sql(&self, value: &Terminated) -> bool {
        let mut fingerprint: [c_char; 16] = [0; 16];
        // SAFETY: the value is as long as said; the fingerprint has at most eight bytes.
        unsafe { (self.sqli)(value.start(), value.length(), fingerprint.as_mut_ptr()) != 0 }
    }

    /// The fingerprint of one reading, and whether it is one of an injection.
    pub fn read_sql(&self, value: &Terminated, quote: Option<u8>, mysql: bool) -> (Vec<u8>, bool) {
        let quote = match quote {
            None => NO_QUOTE,
            Some(b'\'') => SINGLE_QUOTE,
            Some(_) => DOUBLE_QUOTE,
        };
        let mut state = [0u64; STATE / 8];
        let state: *mut c_void = state.as_mut_ptr().cast();
        // SAFETY: the state is larger than any version's, and the value outlives it.
        unsafe {
            (self.sqli_init)(state, value.start(), value.length(), 0);
            let fingerprint = (self.sqli_fingerprint)(state, quote | if mysql { MYSQL } else { ANSI });
            let fingerprint = CStr::from_ptr(fingerprint).to_bytes().to_vec();
            (fingerprint, (self.sqli_check)(state) != 0)
        }
    }

    /// Whether a value is cross-site scripting.
    pub fn is_script(&self, value: &Terminated) -> bool {
        // SAFETY: the value is as long as said.
        unsafe { (self.xss)(value.start(), value.length()) != 0 }
    }

    /// Whether a value is cross-site scripting in one context.
    pub fn is_script_in(&self, value: &Terminated, context: usize) -> bool {
        // SAFETY: as above; there are five contexts.
        unsafe { (self.is_xss)(value.start(), value.length(), context as c_int) != 0 }
    }

    /// The tokens of a value as HTML: a letter for what each is, and its length.
    pub fn html_tokens(&self, value: &Terminated, context: usize) -> Vec<(u8, usize)> {
        let mut state = HtmlState {
            value: std::ptr::null(),
            length: 0,
            at: 0,
            closes: 0,
            state: std::ptr::null(),
            token: std::ptr::null(),
            token_length: 0,
            kind: 0,
        };
        let mut tokens = Vec::new();
        // SAFETY: the value outlives the state, which has the layout of the library's.
        unsafe {
            (self.html_init)(&mut state, value.start(), value.length(), context as c_int);
            while (self.html_next)(&mut state) != 0 {
                let kind = match state.kind {
                    0 => b't',
                    1 => b'<',
                    2 | 3 => b'>',
                    5 => b'/',
                    6 => b'n',
                    7 => b'v',
                    8 => b'c',
                    9 => b'd',
                    _ => b'?',
                };
                tokens.push((kind, state.token_length));
            }
        }
        tokens
    }
}
