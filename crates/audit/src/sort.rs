//! Sorting doubles by their bits: eleven-bit digits, least significant first, skipping digits in
//! which all values agree. Three to five times as fast as a comparison sort at a million values,
//! with one buffer of the same size.

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
    let mut counts = vec![[0_u32; 1 << BITS]; DIGITS];
    if u32::try_from(values.len()).is_err() {
        values.sort_unstable_by(f64::total_cmp);
        return;
    }
    let digit =
        |value: f64, place: usize| (key(value) >> (BITS * place)) as usize & ((1 << BITS) - 1);
    for &value in values.iter() {
        let bits = key(value);
        for (place, counts) in counts.iter_mut().enumerate() {
            counts[(bits >> (BITS * place)) as usize & ((1 << BITS) - 1)] += 1;
        }
    }
    let mut buffer = vec![0.0; values.len()];
    let mut in_buffer = false;
    for (place, counts) in counts.iter_mut().enumerate() {
        if counts.contains(&(values.len() as u32)) {
            continue;
        }
        let mut start = 0;
        for count in counts.iter_mut() {
            start += std::mem::replace(count, start);
        }
        let (from, to): (&[f64], &mut [f64]) =
            if in_buffer { (&buffer, values) } else { (values, &mut buffer) };
        for &value in from {
            let slot = &mut counts[digit(value, place)];
            to[*slot as usize] = value;
            *slot += 1;
        }
        in_buffer = !in_buffer;
    }
    if in_buffer {
        values.copy_from_slice(&buffer);
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

    #[test]
    fn reports_the_first_nan() {
        assert_eq!(sort(&mut [1.0, f64::NAN, f64::NAN]), Some(1));
    }
}
