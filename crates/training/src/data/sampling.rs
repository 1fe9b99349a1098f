//! Cutting a data set in two, the same way on every machine.

use super::{Dataset, Split};
use random::{Purpose, Stream};

impl Dataset {
    /// `count` records for training and the rest for testing, chosen by the seed alone (sorting
    /// by random words; a tie keeps the original order).
    ///
    /// # Panics
    /// If there are fewer than `count` records.
    ///
    /// ```
    /// let adult = training::data::adult::load()?.train;
    /// let split = adult.cut(26_048, 7);
    /// assert_eq!((split.train.len(), split.test.unwrap().len()), (26_048, 6_513));
    /// # Ok::<(), training::data::DataError>(())
    /// ```
    pub fn cut(&self, count: usize, seed: u64) -> Split {
        assert!(count <= self.len(), "{count} of {} records", self.len());
        let stream = Stream::new(seed, Purpose::SHUFFLE, 0);
        let mut rows: Vec<usize> = (0..self.len()).collect();
        rows.sort_by_cached_key(|&row| stream.word(0, row as u64));
        let (train, test) = rows.split_at_mut(count);
        // The order inside a part means nothing; that of the file is easier to look up.
        train.sort_unstable();
        test.sort_unstable();
        let test = (!test.is_empty()).then(|| self.select(test));
        Split { train: self.select(train), test }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Provenance, Shape};
    use super::*;

    #[test]
    fn every_record_is_in_one_part() {
        let data = Dataset {
            features: (0..100).map(|x| x as f32).collect(),
            labels: vec![0; 100],
            classes: 2,
            shape: Shape::Flat(1),
            columns: Vec::new(),
            provenance: Provenance::default(),
        };
        let split = data.cut(80, 1);
        let other = data.cut(80, 2);
        assert_ne!(split.train.features, other.train.features);
        assert_eq!(split.train.features, data.cut(80, 1).train.features);
        let mut all = [split.train.features, split.test.unwrap().features].concat();
        all.sort_by(f32::total_cmp);
        assert_eq!(all, data.features);
        assert!(data.cut(100, 1).test.is_none());
    }
}
