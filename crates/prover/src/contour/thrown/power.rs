//! Powers of W above 0 by those below: E W^(m-p) = E[W^m W^-p], p > 0, and powers of series.
//!
//! E[W^m e^(-zW)] is m! times the coefficient of x^m in E e^(-(z-x)W) = e^(-az) e^(ax) (sum of f_k x^k/k!)^n, where
//!
//! ```text
//! f_k = E[(Y/S)^k e^(-zY/S)] = S^-k e^(k(k-1)/(2 sigma^2)) phi(z e^(k/sigma^2)/S):
//! ```
//!
//! Y^k shifts g by k/sigma. So all of them are values of phi = E e^(-zY).

use std::ops::{Add, Mul};

/// m and p of a power m - p of W.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Power {
    pub(super) m: usize,
    pub(super) p: f64,
}

/// The largest m.
pub(super) const MOST: usize = 32;

impl Power {
    /// p is -s where that is large enough, and about 1 otherwise. None where that would take too many factors, or doubles
    /// do not hold it.
    pub(super) fn of(s: f64) -> Option<Self> {
        let m = (s + 0.5).ceil().max(0.0);
        let p = m - s;
        (m <= MOST as f64 && p > 0.0 && m - p == s).then_some(Self { m: m as usize, p })
    }

    pub(super) fn tilt(self) -> f64 {
        self.m as f64 - self.p
    }
}

/// The product of two series up to the length of the first.
fn product<T: Copy + Add<Output = T> + Mul<Output = T>>(a: &[T], b: &[T]) -> Vec<T> {
    (0..a.len()).map(|k| (1..=k).fold(a[0] * b[k], |sum, i| sum + a[i] * b[k - i])).collect()
}

/// series^times * other, up to the length of `other`.
pub(super) fn raised<T: Copy + Add<Output = T> + Mul<Output = T>>(
    series: &[T],
    other: &[T],
    mut times: u64,
) -> Vec<T> {
    let (mut whole, mut power) = (other.to_vec(), series.to_vec());
    while times > 0 {
        if times & 1 == 1 {
            whole = product(&whole, &power);
        }
        times >>= 1;
        if times > 0 {
            power = product(&power, &power);
        }
    }
    whole
}

/// Products of numbers that one power takes, about.
pub(super) fn products(m: usize, times: u64) -> f64 {
    let terms = 0.5 * (m as f64 + 1.0) * (m as f64 + 2.0);
    2.0 * terms * f64::from(64 - times.leading_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_series() {
        // (1 + x)^10 (1 + 2x + 4x^2).
        let found = raised(&[1.0, 1.0, 0.0], &[1.0, 2.0, 4.0], 10);
        assert_eq!(found, [1.0, 12.0, 69.0]);
    }

    #[test]
    fn powers_are_kept_to_the_last_bit() {
        for s in [-7.25, -0.5, -0.25, 0.0, 0.5, 1.0, 1.0 + 1.0 / 1024.0, 17.5] {
            let power = Power::of(s).expect("a power within reach");
            assert_eq!(power.tilt(), s);
            assert!(power.p >= 0.5, "{s}");
        }
        assert_eq!(Power::of(1e-30), None);
        assert_eq!(Power::of(40.0), None);
    }
}
