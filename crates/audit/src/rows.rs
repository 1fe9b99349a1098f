//! What rows look like when they are not what an audit takes them for: sorted, or given more than once.

/// Distinct scores from which on equal multiples are not chance: with this many the probability is below 1e-6.
const DISTINCT: usize = 20;

/// Kendall's trend of a column over its rows, in standard deviations: under any law of independent scores it is
/// about normal with mean 0, and a sorted column of 15 rows has 5. The variance counts ties (Kendall 1970,
/// chapter 4). Cost: that of sorting.
pub(crate) fn trend(column: &[f64]) -> f64 {
    let mut sorted = column.to_vec();
    let falling = inversions(&mut sorted, &mut Vec::with_capacity(column.len()));
    let n = column.len() as f64;
    let (mut tied, mut square) = (0.0, n * (n - 1.0) * (2.0 * n + 5.0));
    for equal in sorted.chunk_by(|a, b| a == b) {
        let t = equal.len() as f64;
        tied += 0.5 * t * (t - 1.0);
        square -= t * (t - 1.0) * (2.0 * t + 5.0);
    }
    let rising = 0.5 * n * (n - 1.0) - tied - falling as f64;
    if square > 0.0 { (rising - falling as f64) / (square / 18.0).sqrt() } else { 0.0 }
}

/// Sorts, and counts the pairs of which the first is larger.
fn inversions(values: &mut [f64], buffer: &mut Vec<f64>) -> u64 {
    if values.len() < 2 {
        return 0;
    }
    let (left, right) = values.split_at_mut(values.len() / 2);
    let mut count = inversions(left, buffer) + inversions(right, buffer);
    buffer.clear();
    let (mut i, mut j) = (0, 0);
    while i < left.len() && j < right.len() {
        if right[j] < left[i] {
            count += (left.len() - i) as u64;
            buffer.push(right[j]);
            j += 1;
        } else {
            buffer.push(left[i]);
            i += 1;
        }
    }
    buffer.extend_from_slice(&left[i..]);
    buffer.extend_from_slice(&right[j..]);
    values.copy_from_slice(buffer);
    count
}

/// The number that divides how often every score occurs on its side, where that is above 1 and cannot be chance.
pub(crate) fn copies(members: &[f64], nonmembers: &[f64]) -> Option<u64> {
    let mut divisor = 0;
    let mut distinct = 0;
    for sorted in [members, nonmembers] {
        for equal in sorted.chunk_by(|a, b| a == b) {
            divisor = common_divisor(equal.len() as u64, divisor);
            distinct += 1;
            if divisor == 1 {
                return None;
            }
        }
    }
    (distinct >= DISTINCT).then_some(divisor)
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the definition, with ties; sorted columns are far off, whichever way.
    #[test]
    fn the_trend_is_kendalls() {
        let column: Vec<f64> = (0..60).map(|i| f64::from(i * 37 % 23)).collect();
        let mut sum = 0.0;
        for (i, a) in column.iter().enumerate() {
            for b in &column[i + 1..] {
                sum += if a < b {
                    1.0
                } else if a > b {
                    -1.0
                } else {
                    0.0
                };
            }
        }
        // 60 = 14 times 3 and 9 times 2 values of 23.
        let ties: f64 = 14.0 * 3.0 * 2.0 * 11.0 + 9.0 * 2.0 * 9.0;
        let expected = sum / ((60.0 * 59.0 * 125.0 - ties) / 18.0_f64).sqrt();
        assert!((trend(&column) - expected).abs() < 1e-12, "{} {expected}", trend(&column));
        let sorted: Vec<f64> = (0..15).map(f64::from).collect();
        assert!(trend(&sorted) > 5.0);
        let falling: Vec<f64> = sorted.iter().rev().copied().collect();
        assert!(trend(&falling) < -5.0);
        assert_eq!(trend(&[1.0; 9]), 0.0);
        assert_eq!(trend(&[]), 0.0);
    }

    #[test]
    fn copies_are_told_from_ties() {
        let ten: Vec<f64> = (0..10).map(f64::from).collect();
        let thrice = |side: &[f64]| side.iter().flat_map(|score| [*score; 3]).collect::<Vec<_>>();
        assert_eq!(copies(&thrice(&ten), &thrice(&ten)), Some(3));
        assert_eq!(copies(&thrice(&ten), &ten), None);
        // Two values that occur as often may be chance.
        assert_eq!(copies(&[0.0, 0.0, 1.0, 1.0], &[0.0, 0.0]), None);
    }
}
