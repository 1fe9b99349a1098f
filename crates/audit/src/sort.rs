//! Sorting doubles by distribution.
//!
//! Scores of an attack fill their range evenly enough that some four bins a score, equally wide,
//! hold one or two each. So the values are dealt into bins, in two or three stable passes over the
//! digits of the bin's number, and a look at neighbours puts the few others right. Values that
//! crowd into few bins (heavy tails, an outlier far out) are sorted by their bits instead:
//! eleven-bit digits, least significant first. Several times as fast as a comparison sort at a
//! million values, with one buffer of the same size, which several sorts share: to be given new
//! pages costs about as much as to sort what fits on them. The order is exact in every case: the last
//! pass compares all neighbours. Everything is compiled a second time for processors with AVX2, where
//! bins are found for several values at once.

use crate::Column;

/// Below this a comparison sort is faster.
const FEW: usize = 2048;
const DIGITS: usize = 6;
const BITS: u32 = 11;
/// Bits of a bin's number that one pass looks at, at most: this many places are written to at once,
/// and each needs its page at hand.
const PASS_BITS: u32 = 9;
const PASSES: usize = 3;
/// Values whose bins are found before the first of them is moved.
const BLOCK: usize = 256;

/// Sorts ascending; minus zero becomes zero. Gives the place of the first NaN instead of sorting.
/// The buffer grows as needed; what it holds does not matter.
pub(crate) fn sort(values: &mut [f64], buffer: &mut Column) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    if let Some(instructions) = pulp::x86::V3::try_new() {
        return instructions.vectorize(
            #[inline(always)]
            || sort_with(values, buffer),
        );
    }
    sort_with(values, buffer)
}

#[inline(always)]
fn sort_with(values: &mut [f64], buffer: &mut Column) -> Option<usize> {
    let Summary { low, high, sorted, numbers } = Summary::of(values);
    if !numbers {
        return values.iter().position(|value| value.is_nan());
    }
    if sorted {
        return None;
    }
    if values.len() < FEW || u32::try_from(values.len()).is_err() {
        values.sort_unstable_by(f64::total_cmp);
        return None;
    }
    if buffer.len() < values.len() {
        *buffer = Column::zeros(values.len());
    }
    let buffer = &mut buffer[..values.len()];
    let in_bins = Bins::new(values.len(), low, high).is_some_and(|bins| {
        if bins.deal(values, buffer) {
            repair(values, |_, place| buffer[place]) || {
                values.copy_from_slice(buffer);
                false
            }
        } else {
            repair(values, |values, place| values[place])
        }
    });
    if !in_bins {
        by_digits(values, buffer);
    }
    None
}

/// What one look at all values tells; minus zero becomes zero on the way, which equals it in every
/// comparison downstream.
struct Summary {
    /// The least finite value.
    low: f64,
    /// The largest finite value.
    high: f64,
    sorted: bool,
    /// Whether none is NaN.
    numbers: bool,
}

impl Summary {
    /// Eight values at a time, so that no step waits for the one before.
    #[inline(always)]
    fn of(values: &mut [f64]) -> Self {
        const LANES: usize = 8;
        let (mut low, mut high) = ([f64::INFINITY; LANES], [f64::NEG_INFINITY; LANES]);
        let (mut finite, mut numbers, mut sorted) = ([true; LANES], [true; LANES], true);
        let mut before = f64::NEG_INFINITY;
        let mut look = |chunk: &mut [f64; LANES]| {
            let mut rises = before <= chunk[0];
            for lane in 0..LANES {
                chunk[lane] += 0.0;
                let value = chunk[lane];
                finite[lane] &= value.abs() < f64::INFINITY;
                numbers[lane] &= !value.is_nan();
                low[lane] = if value < low[lane] { value } else { low[lane] };
                high[lane] = if value > high[lane] { value } else { high[lane] };
            }
            for lane in 1..LANES {
                rises &= chunk[lane - 1] <= chunk[lane];
            }
            before = chunk[LANES - 1];
            sorted &= rises;
        };
        let (chunks, rest) = values.as_chunks_mut::<LANES>();
        chunks.iter_mut().for_each(&mut look);
        if let Some(&last) = rest.last() {
            let mut chunk = [last; LANES];
            chunk[..rest.len()].copy_from_slice(rest);
            look(&mut chunk);
            rest.copy_from_slice(&chunk[..rest.len()]);
        }
        let (mut low, mut high) = (
            low.iter().copied().fold(f64::INFINITY, f64::min),
            high.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        );
        if finite.contains(&false) {
            let finite = || values.iter().copied().filter(|value| value.is_finite());
            (low, high) = (
                finite().fold(f64::INFINITY, f64::min),
                finite().fold(f64::NEG_INFINITY, f64::max),
            );
        }
        Self { low, high, sorted, numbers: !numbers.contains(&false) }
    }
}

/// Bins of equal width between the least and the largest finite value.
struct Bins {
    low: f64,
    high: f64,
    scale: f64,
    passes: usize,
    pass_bits: u32,
}

impl Bins {
    /// About four bins a value; `None` where the range is empty or overflows.
    #[inline(always)]
    fn new(count: usize, low: f64, high: f64) -> Option<Self> {
        let bits = count.ilog2() + 3;
        let passes = (bits.div_ceil(PASS_BITS) as usize).clamp(2, PASSES);
        let pass_bits = bits.div_ceil(passes as u32).min(PASS_BITS);
        let last = (1_u32 << (passes as u32 * pass_bits)) - 1;
        let scale = f64::from(last) / (high - low);
        let useful = scale.is_finite() && scale > 0.0;
        useful.then_some(Self { low, high, scale, passes, pass_bits })
    }

    /// Never falls when the value rises; infinities go to the ends. A sum with 2^52 has the nearest
    /// whole number in its lower bits, in fewer steps than a cast, which would look for overflow.
    #[inline(always)]
    fn of(&self, value: f64) -> u32 {
        const WHOLE: f64 = (1_u64 << 52) as f64;
        let value = if value > self.low { value } else { self.low };
        let value = if value < self.high { value } else { self.high };
        let place = (value - self.low) * self.scale;
        (place + WHOLE).to_bits() as u32
    }

    /// One stable pass a digit; tells whether the values ended in the buffer.
    #[inline(always)]
    fn deal(&self, values: &mut [f64], buffer: &mut [f64]) -> bool {
        const SIZE: usize = 1 << PASS_BITS;
        let mut counts = [[0_u32; SIZE]; PASSES];
        let mask = (1_u32 << self.pass_bits) - 1;
        let digit = |bin: u32, pass: usize| {
            ((bin >> (self.pass_bits * pass as u32)) & mask) as usize & (SIZE - 1)
        };
        let mut bins = [0_u32; BLOCK];
        for block in values.chunks(BLOCK) {
            for (bin, &value) in bins.iter_mut().zip(block) {
                *bin = self.of(value);
            }
            for &bin in &bins[..block.len()] {
                for (pass, counts) in counts.iter_mut().enumerate() {
                    let count = &mut counts[digit(bin, pass)];
                    *count = count.wrapping_add(1);
                }
            }
        }
        let mut in_buffer = false;
        for (pass, counts) in counts.iter_mut().enumerate().take(self.passes) {
            if in_buffer {
                scatter(buffer, values, counts, |value| digit(self.of(value), pass));
            } else {
                scatter(values, buffer, counts, |value| digit(self.of(value), pass));
            }
            in_buffer = !in_buffer;
        }
        in_buffer
    }
}

/// Moves values to where their digit's counts say, in their order.
#[inline(always)]
fn scatter(from: &[f64], to: &mut [f64], counts: &mut [u32], digit: impl Fn(f64) -> usize) {
    let mut start = 0;
    for count in counts.iter_mut() {
        start += std::mem::replace(count, start);
    }
    let mut digits = [0_u32; BLOCK];
    for block in from.chunks(BLOCK) {
        for (found, &value) in digits.iter_mut().zip(block) {
            *found = digit(value) as u32;
        }
        for (&digit, &value) in digits.iter().zip(block) {
            let slot = &mut counts[digit as usize];
            to[*slot as usize] = value;
            *slot = slot.wrapping_add(1);
        }
    }
}

/// Insertion of the values that `next` gives, which is quick on what is sorted but for a few
/// neighbours; gives up on more.
#[inline(always)]
fn repair(values: &mut [f64], next: impl Fn(&[f64], usize) -> f64) -> bool {
    let mut patience = values.len();
    for place in 0..values.len() {
        let value = next(values, place);
        let mut slot = place;
        while slot > 0 && values[slot - 1] > value {
            values[slot] = values[slot - 1];
            slot -= 1;
            if patience == 0 {
                // The value must not be lost.
                values[slot] = value;
                return false;
            }
            patience -= 1;
        }
        values[slot] = value;
    }
    true
}

/// Bits whose unsigned order is the order of the doubles.
fn key(value: f64) -> u64 {
    let bits = value.to_bits();
    bits ^ (((bits as i64 >> 63) as u64) | 1 << 63)
}

/// Stable sort by the digits of the bits, leaving out digits in which all values agree.
fn by_digits(values: &mut [f64], buffer: &mut [f64]) {
    const SIZE: usize = 1 << BITS;
    let digit =
        |value: f64, place: usize| (key(value) >> (BITS * place as u32)) as usize & (SIZE - 1);
    let mut counts = vec![[0_u32; SIZE]; DIGITS];
    for &value in values.iter() {
        for (place, counts) in counts.iter_mut().enumerate() {
            let count = &mut counts[digit(value, place)];
            *count = count.wrapping_add(1);
        }
    }
    let mut in_buffer = false;
    for (place, counts) in counts.iter_mut().enumerate() {
        if counts.contains(&(values.len() as u32)) {
            continue;
        }
        if in_buffer {
            scatter(buffer, values, counts, |value| digit(value, place));
        } else {
            scatter(values, buffer, counts, |value| digit(value, place));
        }
        in_buffer = !in_buffer;
    }
    if in_buffer {
        values.copy_from_slice(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_comparison_sort() {
        let mut dealer = crate::split::Dealer::new(3);
        let mut values: Vec<f64> = (0..5000)
            .map(|_| {
                loop {
                    let value = f64::from_bits(dealer.next());
                    if !value.is_nan() {
                        return value;
                    }
                }
            })
            .collect();
        values.extend([f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, f64::MIN_POSITIVE, 1.0, 1.0]);
        let mut expected: Vec<f64> = values.iter().map(|value| value + 0.0).collect();
        expected.sort_by(f64::total_cmp);
        assert_eq!(sort(&mut values, &mut Column::default()), None);
        assert_eq!(values, expected);
    }

    /// Values that differ in their last bits only, in the worst order for neighbours.
    #[test]
    fn agrees_where_only_the_lower_half_differs() {
        let mut values: Vec<f64> =
            (0..5000_u64).rev().map(|step| f64::from_bits(1.0_f64.to_bits() + step)).collect();
        values.swap(0, 4999);
        let mut expected = values.clone();
        expected.sort_by(f64::total_cmp);
        assert_eq!(sort(&mut values, &mut Column::default()), None);
        assert_eq!(values, expected);
    }

    /// Heavy tails, ties, infinities, one outlier: bins of equal width serve none of them alone.
    #[test]
    fn agrees_on_crowded_and_spread_values() {
        let mut dealer = crate::split::Dealer::new(5);
        let mut uniform = || (dealer.next() >> 11) as f64 / (1_u64 << 53) as f64;
        let shapes: [&mut dyn FnMut(usize) -> f64; 6] = [
            &mut |_| uniform(),
            &mut |step| (1.0 / (1e-6 + (step * 7919 % 5000) as f64)).powi(3),
            &mut |step| f64::from((step * 7919 % 13) as u32),
            &mut |step| if step == 77 { 1e300 } else { -((step * 31 % 997) as f64) },
            &mut |step| if step % 3 == 0 { f64::INFINITY } else { (step * 31 % 997) as f64 },
            &mut |step| if step % 2 == 0 { f64::MAX } else { -f64::MAX / step as f64 },
        ];
        for shape in shapes {
            let mut values: Vec<f64> = (0..5000).map(shape).collect();
            values[9] = f64::NEG_INFINITY;
            let mut expected = values.clone();
            expected.sort_by(f64::total_cmp);
            assert_eq!(sort(&mut values, &mut Column::default()), None);
            assert_eq!(values, expected);
        }
    }

    #[test]
    fn reports_the_first_nan() {
        assert_eq!(sort(&mut [1.0, f64::NAN, f64::NAN], &mut Column::default()), Some(1));
    }
}
