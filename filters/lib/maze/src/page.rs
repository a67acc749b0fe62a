//! Pages of generated text. Nothing of a request is in them but, through a hash, which page it is: the same address has the same
//! page.

use crate::MazeLimits;
use crate::words::WORDS;

/// Room for the longest sentence with its link, and for the end of the page, in bytes.
const MARGIN: usize = 512;
/// The sentences of a paragraph, and of them the one in which a link is.
const SENTENCES: u64 = 4;

/// The page at a path: HTML of at most `page_bytes` bytes.
#[must_use]
pub fn generate(limits: &MazeLimits, path: &[u8]) -> Vec<u8> {
    let size = usize::try_from(limits.page_bytes).unwrap_or(0);
    let mut page = Writer { html: Vec::with_capacity(size), random: Random(hash(path)) };
    page.text("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page.text("<meta name=\"robots\" content=\"noindex, nofollow\">\n<title>");
    page.title();
    page.text("</title>\n</head>\n<body>\n<h1>");
    page.title();
    page.text("</h1>\n<p>");
    let mut sentences = 0_u64;
    while page.html.len() + MARGIN < size {
        page.sentence(limits, sentences % SENTENCES == 1);
        sentences += 1;
        if sentences.is_multiple_of(SENTENCES) {
            page.text("</p>\n<p>");
        }
    }
    page.text("</p>\n</body>\n</html>\n");
    page.html
}

struct Writer {
    html: Vec<u8>,
    random: Random,
}

impl Writer {
    fn text(&mut self, text: &str) {
        self.html.extend_from_slice(text.as_bytes());
    }

    /// A word, with a capital if it begins something.
    fn word(&mut self, begins: bool) {
        let start = self.html.len();
        let word = self.random.word();
        self.text(word);
        if let Some(first) = self.html.get_mut(start).filter(|_| begins) {
            first.make_ascii_uppercase();
        }
    }

    fn title(&mut self) {
        self.word(true);
        for _ in 0..=self.random.below(3) {
            self.text(" ");
            self.word(false);
        }
    }

    /// A sentence of 5 to 14 words; with a link around its last but one if it is to have one.
    fn sentence(&mut self, limits: &MazeLimits, linked: bool) {
        self.word(true);
        for _ in 0..self.random.below(10) + 2 {
            self.text(" ");
            self.word(false);
        }
        self.text(" ");
        if linked {
            self.text("<a href=\"");
            self.text(&limits.path);
            self.word(false);
            self.text("-");
            self.word(false);
            let number = self.random.next() >> 32;
            self.text(&format!("-{number:08x}\">"));
        }
        self.word(false);
        self.text(if linked { "</a> " } else { " " });
        self.word(false);
        self.text(". ");
    }
}

/// SplitMix64: quick, and not secret.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next().checked_rem(bound).unwrap_or(0)
    }

    fn word(&mut self) -> &'static str {
        let at = self.below(u64::try_from(WORDS.len()).unwrap_or(1));
        usize::try_from(at).ok().and_then(|at| WORDS.get(at)).copied().unwrap_or("and")
    }
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
