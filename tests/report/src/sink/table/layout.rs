//! Aligned columns, bars and tones for terminals.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use crate::row::Effect;
use crate::text::{cut, escaped, width};

/// What the caller knows about where text goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// Columns; at least 40 are used.
    pub width: usize,
    /// Whether colours may be used.
    pub colour: bool,
    /// Whether characters beyond ASCII may be used for bars and marks.
    pub terminal: bool,
    /// Entries of each list at most.
    pub rows: usize,
}

impl Screen {
    /// A file or a pipe: no colours, ASCII, 20 entries of each list.
    pub const fn plain(width: usize) -> Self {
        Self { width, colour: false, terminal: false, rows: 20 }
    }

    pub(crate) fn columns(&self) -> usize {
        self.width.max(40)
    }

    pub(crate) fn mark(&self) -> &'static str {
        if self.terminal { "\u{2026}" } else { "..." }
    }

    pub(crate) fn arrow(&self) -> &'static str {
        if self.terminal { "\u{2192}" } else { "->" }
    }
}

/// How a text looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    #[default]
    Plain,
    Dim,
    Bold,
    Good,
    Info,
    Warn,
    Bad,
}

impl Tone {
    pub(crate) fn of(effect: Effect) -> Self {
        match effect {
            Effect::Passed => Self::Plain,
            Effect::Observed => Self::Info,
            Effect::Slowed => Self::Warn,
            Effect::Blocked | Effect::Failed => Self::Bad,
        }
    }

    fn style(self) -> Style {
        let colour = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
        match self {
            Self::Plain => Style::new(),
            Self::Dim => Style::new().dimmed(),
            Self::Bold => Style::new().bold(),
            Self::Good => colour(AnsiColor::Green),
            Self::Info => colour(AnsiColor::Cyan),
            Self::Warn => colour(AnsiColor::Yellow),
            Self::Bad => colour(AnsiColor::Red),
        }
    }
}

/// The text in its tone, where the screen has colours. The text itself must be fit for a terminal already.
pub(crate) fn paint(text: &str, tone: Tone, screen: &Screen) -> String {
    if !screen.colour || tone == Tone::Plain || text.is_empty() {
        return text.to_owned();
    }
    let style = tone.style();
    format!("{style}{text}{style:#}")
}

/// A bar of at most `columns`; what is not nothing is to be seen.
pub(crate) fn bar(part: u64, most: u64, columns: usize, screen: &Screen) -> String {
    const EIGHTHS: [&str; 8] = ["", "\u{258f}", "\u{258e}", "\u{258d}", "\u{258c}", "\u{258b}", "\u{258a}", "\u{2589}"];
    if part == 0 || most == 0 {
        return String::new();
    }
    let steps = if screen.terminal { 8 } else { 1 };
    let long = (part as f64 / most as f64 * (columns * steps) as f64).round().max(1.0) as usize;
    let long = long.min(columns * steps);
    let full = if screen.terminal { "\u{2588}" } else { "#" };
    full.repeat(long / steps) + EIGHTHS[long % steps]
}

/// A line of heights, for counts over time.
pub(crate) fn spark(counts: &[u64], screen: &Screen) -> String {
    const BLOCKS: [char; 9] =
        [' ', '\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}'];
    const ASCII: [char; 6] = [' ', '.', ':', '-', '=', '#'];
    let marks: &[char] = if screen.terminal { &BLOCKS } else { &ASCII };
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let top = marks.len() - 1;
    let mark = |count: &u64| marks[(*count as f64 / most as f64 * top as f64).ceil() as usize];
    counts.iter().map(mark).collect()
}

/// Rows in columns. Texts are escaped and cut to what the screen has room for.
pub(crate) struct Grid {
    columns: Vec<Column>,
    rows: Vec<Vec<(String, Tone)>>,
}

struct Column {
    head: &'static str,
    right: bool,
    /// Whether it may become narrower than its texts.
    gives: bool,
}

/// What a column that gives keeps.
const NARROW: usize = 8;
/// Between columns, and before the first.
const GAP: usize = 2;

impl Grid {
    /// Columns by their heads: `>` in front sets one to the right, `~` lets it become narrower. Without any text in the
    /// heads there is no line for them.
    pub(crate) fn new(heads: &[&'static str]) -> Self {
        let column = |head: &&'static str| Column {
            head: head.trim_start_matches(['>', '~']),
            right: head.starts_with('>'),
            gives: head.starts_with('~'),
        };
        Self { columns: heads.iter().map(column).collect(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = (String, Tone)>) {
        self.rows.push(cells.into_iter().map(|(text, tone)| (escaped(&text).into_owned(), tone)).collect());
    }

    pub(crate) fn write(&self, out: &mut impl Write, screen: &Screen) -> io::Result<()> {
        let widths = self.widths(screen);
        if self.columns.iter().any(|column| !column.head.is_empty()) {
            let heads = self.columns.iter().map(|column| (column.head.to_owned(), Tone::Dim));
            self.line(out, &heads.collect::<Vec<_>>(), &widths, screen)?;
        }
        self.rows.iter().try_for_each(|row| self.line(out, row, &widths, screen))
    }

    fn line(&self, out: &mut impl Write, row: &[(String, Tone)], widths: &[usize], screen: &Screen) -> io::Result<()> {
        let mut line = String::new();
        let mut blanks = 0;
        for ((column, (text, tone)), &wide) in self.columns.iter().zip(row).zip(widths) {
            let text = cut(text, wide, screen.mark());
            let rest = wide - width(&text).min(wide);
            let (before, after) = if column.right { (rest, 0) } else { (0, rest) };
            blanks += GAP + before;
            if !text.is_empty() {
                // Blanks are only written once something comes after them: no line ends in one.
                line.push_str(&" ".repeat(blanks));
                line.push_str(&paint(&text, *tone, screen));
                blanks = 0;
            } else {
                blanks += width(&text);
            }
            blanks += after;
        }
        writeln!(out, "{line}")
    }

    fn widths(&self, screen: &Screen) -> Vec<usize> {
        let natural = |place: usize, column: &Column| {
            let cells = self.rows.iter().filter_map(|row| row.get(place)).map(|(text, _)| width(text));
            cells.chain([width(column.head)]).max().unwrap_or(0)
        };
        let mut widths: Vec<_> = self.columns.iter().enumerate().map(|(place, c)| natural(place, c)).collect();
        let room = screen.columns().saturating_sub(GAP * widths.len());
        // The widest that gives does so, until all fit.
        while widths.iter().sum::<usize>() > room {
            let over = widths.iter().sum::<usize>() - room;
            let giving = (0..widths.len()).filter(|&place| self.columns[place].gives && widths[place] > NARROW);
            let mut giving: Vec<_> = giving.collect();
            giving.sort_by_key(|&place| std::cmp::Reverse(widths[place]));
            let Some(&widest) = giving.first() else { break };
            let next = giving.get(1).map_or(NARROW, |&place| widths[place]);
            let step = (widths[widest] - next).max(1);
            widths[widest] = widths[widest].saturating_sub(step.min(over)).max(NARROW);
        }
        widths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(grid: &Grid, screen: &Screen) -> String {
        let mut out = Vec::new();
        grid.write(&mut out, screen).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_are_aligned_and_give_way() {
        let mut grid = Grid::new(&["~PATH", ">COUNT", "NOTE"]);
        let plain = |text: &str| (text.to_owned(), Tone::Plain);
        grid.row([plain("/short"), plain("5"), plain("")]);
        grid.row([plain(&format!("/{}", "long".repeat(20))), plain("1,234"), plain("x\x1b[0m")]);
        let text = written(&grid, &Screen::plain(40));
        let expected = [
            "  PATH                   COUNT  NOTE",
            "  /short                     5",
            "  /longlonglonglongl...  1,234  x\\x1b[0m",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
        assert!(text.lines().all(|line| line.len() <= 40 && !line.ends_with(' ')));
    }

    #[test]
    fn wide_characters_are_counted_as_such() {
        let mut grid = Grid::new(&["", ">"]);
        grid.row([("\u{4e2d}\u{6587}".to_owned(), Tone::Plain), ("1".to_owned(), Tone::Plain)]);
        grid.row([("abcd".to_owned(), Tone::Plain), ("2".to_owned(), Tone::Plain)]);
        assert_eq!(written(&grid, &Screen::plain(40)), "  \u{4e2d}\u{6587}  1\n  abcd  2\n");
    }

    #[test]
    fn colours_are_used_only_where_wanted() {
        let plain = Screen::plain(80);
        assert_eq!(paint("x", Tone::Bad, &plain), "x");
        assert_eq!(paint("x", Tone::Bad, &Screen { colour: true, ..plain }), "\x1b[31mx\x1b[0m");
    }

    #[test]
    fn bars_and_sparks_show_what_is_not_nothing() {
        let (plain, terminal) = (Screen::plain(80), Screen { terminal: true, ..Screen::plain(80) });
        assert_eq!([bar(0, 9, 8, &plain), bar(1, 1_000, 8, &plain), bar(9, 9, 4, &plain)], ["", "#", "####"]);
        assert_eq!([bar(1, 1_000, 8, &terminal), bar(9, 9, 2, &terminal)], ["\u{258f}", "\u{2588}\u{2588}"]);
        assert_eq!([spark(&[0, 1, 500, 1_000], &plain), spark(&[], &plain)], [" .-#", ""]);
        assert_eq!(spark(&[0, 1, 1_000], &terminal), " \u{2581}\u{2588}");
    }
}
