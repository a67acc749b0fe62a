//! Rows of the same width that are added one by one, in pieces of memory that are never copied to grow.

/// How many rows a piece of memory holds.
const ROWS: usize = 64;

/// How many pieces are kept for the next transaction: a quarter to half of a MiB.
const KEPT: usize = 24;

/// Rows, known by their number.
#[derive(Default)]
pub(super) struct Chunks<T> {
    width: usize,
    rows: usize,
    pieces: Vec<Box<[T]>>,
}

impl<T: Copy + Default> Chunks<T> {
    /// Adds a row of defaults; its number. All rows have the width of the first one.
    pub(super) fn add(&mut self, width: usize) -> usize {
        if self.pieces.is_empty() {
            self.width = width;
        }
        let number = self.rows;
        self.rows += 1;
        match number / ROWS < self.pieces.len() {
            true => self.get_mut(number).unwrap_or_default().fill(T::default()),
            false => self.pieces.push(vec![T::default(); ROWS * self.width].into()),
        }
        number
    }

    pub(super) fn get(&self, number: usize) -> Option<&[T]> {
        let start = number % ROWS * self.width;
        self.pieces.get(number / ROWS)?.get(start..start + self.width)
    }

    pub(super) fn get_mut(&mut self, number: usize) -> Option<&mut [T]> {
        let start = number % ROWS * self.width;
        self.pieces.get_mut(number / ROWS)?.get_mut(start..start + self.width)
    }

    /// How many items all rows have.
    pub(super) fn items(&self) -> usize {
        self.rows * self.width
    }

    /// Forgets all rows, and keeps some of their memory.
    pub(super) fn clear(&mut self) {
        self.rows = 0;
        self.pieces.truncate(KEPT);
        self.pieces.shrink_to(KEPT);
    }

    /// How much memory is kept, in bytes.
    pub(super) fn size(&self) -> usize {
        self.pieces.len() * ROWS * self.width * size_of::<T>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_begin_empty_and_stay_where_they_are() {
        let mut chunks = Chunks::<u32>::default();
        for round in 0..3 {
            for number in 0..ROWS * (KEPT + 2) {
                assert_eq!(chunks.add(3), number);
                assert_eq!(chunks.get(number), Some(&[0, 0, 0][..]), "{round}");
                chunks.get_mut(number).unwrap().fill(number as u32);
            }
            assert_eq!(chunks.get(ROWS + 1), Some(&[ROWS as u32 + 1; 3][..]));
            assert_eq!(chunks.items(), 3 * ROWS * (KEPT + 2));
            chunks.clear();
            assert_eq!((chunks.items(), chunks.size()), (0, 3 * 4 * ROWS * KEPT));
        }
        assert_eq!(Chunks::<u64>::default().get(0), None);
    }
}
