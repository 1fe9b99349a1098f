//! Numbers in a row, on large pages where the system lends them.
//!
//! A million scores on pages of four kilobytes cost two thousand page faults, which takes about as
//! long as reading them from text. So a column beyond a mebibyte is an anonymous mapping that
//! asks for large pages; where there are none, or no mapping, it is the same on small ones.

use memmap2::{MmapMut, MmapOptions};

/// Smaller rooms are on the heap.
const MAPPED_FROM: usize = 1 << 17;
const SMALLEST: usize = 1 << 10;
/// Room for more than this (four gibibytes) is not asked for in advance, only grown into.
const MOST_IN_ADVANCE: usize = 1 << 29;

/// A growing list of numbers; reads as a slice.
#[derive(Default)]
pub struct Column {
    room: Room,
    length: usize,
}

enum Room {
    Heap(Vec<f64>),
    Mapped(MmapMut),
}

impl Default for Room {
    fn default() -> Self {
        Self::Heap(Vec::new())
    }
}

impl Room {
    /// This many zeros; no page of them is there before it is used.
    fn new(count: usize) -> Self {
        if count >= MAPPED_FROM
            && let Some(bytes) = count.checked_mul(size_of::<f64>())
            && let Ok(map) = MmapOptions::new().len(bytes).no_reserve_swap().map_anon()
        {
            // Without large pages it is as good as the heap.
            #[cfg(target_os = "linux")]
            let _ = map.advise(memmap2::Advice::HugePage);
            return Self::Mapped(map);
        }
        Self::Heap(vec![0.0; count])
    }

    fn all(&self) -> &[f64] {
        match self {
            Self::Heap(values) => values,
            Self::Mapped(map) => bytemuck::cast_slice(map),
        }
    }

    fn all_mut(&mut self) -> &mut [f64] {
        match self {
            Self::Heap(values) => values,
            Self::Mapped(map) => bytemuck::cast_slice_mut(map),
        }
    }
}

impl Column {
    /// This many zeros.
    pub(crate) fn zeros(length: usize) -> Self {
        Self { room: Room::new(length), length }
    }

    /// Makes room for this many more, so that growing does not copy. A guess that is far too high
    /// costs address space and no memory.
    pub(crate) fn expect(&mut self, more: usize) {
        let wanted = self.length.saturating_add(more);
        if wanted > self.room.all().len() && wanted <= MOST_IN_ADVANCE {
            self.grow(wanted);
        }
    }

    /// At least `least` places behind the last number, to be written to; [`Column::advance`] makes
    /// them part of the column.
    pub(crate) fn spare(&mut self, least: usize) -> &mut [f64] {
        let (there, wanted) = (self.room.all().len(), self.length.saturating_add(least));
        if wanted > there {
            self.grow(wanted.max(2 * there).max(SMALLEST));
        }
        &mut self.room.all_mut()[self.length..]
    }

    /// Takes the first `count` spare places into the column.
    pub(crate) fn advance(&mut self, count: usize) {
        let length = self.length + count;
        assert!(length <= self.room.all().len(), "only spare places can be taken in");
        self.length = length;
    }

    /// Adds a number at the end.
    pub fn push(&mut self, value: f64) {
        self.spare(1)[0] = value;
        self.length += 1;
    }

    /// Adds numbers at the end.
    pub fn extend_from_slice(&mut self, values: &[f64]) {
        self.spare(values.len())[..values.len()].copy_from_slice(values);
        self.length += values.len();
    }

    #[cold]
    fn grow(&mut self, capacity: usize) {
        let mut room = Room::new(capacity);
        room.all_mut()[..self.length].copy_from_slice(self);
        self.room = room;
    }
}

impl std::ops::Deref for Column {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        &self.room.all()[..self.length]
    }
}

impl std::ops::DerefMut for Column {
    fn deref_mut(&mut self) -> &mut [f64] {
        &mut self.room.all_mut()[..self.length]
    }
}

impl From<Vec<f64>> for Column {
    fn from(values: Vec<f64>) -> Self {
        Self { length: values.len(), room: Room::Heap(values) }
    }
}

impl Clone for Column {
    fn clone(&self) -> Self {
        let mut copy = Self::zeros(self.length);
        copy.copy_from_slice(self);
        copy
    }
}

impl PartialEq for Column {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl PartialEq<Vec<f64>> for Column {
    fn eq(&self, other: &Vec<f64>) -> bool {
        **self == **other
    }
}

impl<'a> IntoIterator for &'a Column {
    type Item = &'a f64;
    type IntoIter = std::slice::Iter<'a, f64>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl std::fmt::Debug for Column {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Through the heap, into a mapping and into a larger one.
    #[test]
    fn what_goes_in_comes_out() {
        let mut column = Column::from(vec![-1.0]);
        let count = 3 * MAPPED_FROM;
        for step in 0..count {
            column.push(step as f64);
        }
        column.extend_from_slice(&[7.0, 8.0]);
        assert!(matches!(column.room, Room::Mapped(_)));
        assert_eq!(column.len(), count + 3);
        assert_eq!((column[0], column[count], column[count + 2]), (-1.0, (count - 1) as f64, 8.0));
        assert!(column[..=count].is_sorted());
        assert_eq!(column.clone(), column);
    }

    #[test]
    fn room_asked_for_in_advance_is_not_outgrown() {
        let mut column = Column::default();
        column.expect(MAPPED_FROM);
        let before = column.room.all().as_ptr();
        column.spare(MAPPED_FROM)[..2].copy_from_slice(&[1.0, 2.0]);
        column.advance(2);
        assert_eq!(column.room.all().as_ptr(), before);
        assert_eq!(*column, [1.0, 2.0]);
        // Absurd guesses are not believed.
        column.expect(usize::MAX);
        assert_eq!(*column, [1.0, 2.0]);
    }
}
