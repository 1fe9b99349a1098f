//! Sorting doubles by their bits: eleven-bit digits, least significant first, skipping digits in
//! which all values agree. First by the upper half alone: scores that differ at all mostly differ
//! there, and a look at neighbours puts the few others right; where there are many, the lower half
//! has its turn too. Several times as fast as a comparison sort at a million values, with one
//! buffer of the same size.

/// Below this a comparison sort is faster.
const FEW: usize = 2048;
const DIGITS: usize = 6;
const BITS: usize = 11;

/// Sorts ascending; minus zero becomes zero. Gives the place of the first NaN instead of sorting.
pub(crate) fn sort(values: &mut [f64]) -> Option<usize> {
    if let Some(place) = values.iter().position(|value| value.is_nan()) {
        return Some(place);
    }
    for value in values.iter_mut() {
        // Minus zero equals zero in every comparison downstream.
        *value += 0.0;
    }
    if values.len() < FEW {
        values.sort_unstable_by(f64::total_cmp);
    } else if !values.is_sorted() {
        radix_sort(values);
    }
    None
}

/// Bits whose unsigned order is the order of the doubles.
fn key(value: f64) -> u64 {
    let bits = value.to_bits();
    bits ^ (((bits as i64 >> 63) as u64) | 1 << 63)
}

fn radix_sort(values: &mut [f64]) {
    if u32::try_from(values.len()).is_err() {
        values.sort_unstable_by(f64::total_cmp);
        return;
    }
    let mut buffer = vec![0.0; values.len()];
    by_digits(values, &mut buffer, DIGITS / 2..DIGITS);
    if !repair(values) {
        by_digits(values, &mut buffer, 0..DIGITS);
    }
}

/// Insertion, which is quick on what is sorted but for a few neighbours; gives up on more.
fn repair(values: &mut [f64]) -> bool {
    let mut patience = values.len();
    for place in 1..values.len() {
        let value = values[place];
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

/// Stable sort by the digits of a range of places.
fn by_digits(values: &mut [f64], buffer: &mut [f64], places: std::ops::Range<usize>) {
    const MASK: u64 = (1 << BITS) - 1;
    let mut counts = vec![[0_u32; 1 << BITS]; places.len()];
    for &value in values.iter() {
        let bits = key(value);
        for (counts, place) in counts.iter_mut().zip(places.clone()) {
            counts[((bits >> (BITS * place)) & MASK) as usize] += 1;
        }
    }
    let mut in_buffer = false;
    for (counts, place) in counts.iter_mut().zip(places) {
        if counts.contains(&(values.len() as u32)) {
            continue;
        }
        let mut start = 0;
        for count in counts.iter_mut() {
            start += std::mem::replace(count, start);
        }
        let (from, to): (&[f64], &mut [f64]) =
            if in_buffer { (buffer, values) } else { (values, buffer) };
        for &value in from {
            let slot = &mut counts[((key(value) >> (BITS * place)) & MASK) as usize];
            to[*slot as usize] = value;
            *slot += 1;
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
        assert_eq!(sort(&mut values), None);
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
        assert_eq!(sort(&mut values), None);
        assert_eq!(values, expected);
    }

    #[test]
    fn reports_the_first_nan() {
        assert_eq!(sort(&mut [1.0, f64::NAN, f64::NAN]), Some(1));
    }
}
