//! Gauss-Legendre rules.

use crate::elementary::cos;

/// Nodes and weights on [-1, 1]: roots of the Legendre polynomial by Newton's method, and 2/((1-x^2) P'(x)^2).
pub(crate) fn rule<const N: usize>() -> ([f64; N], [f64; N]) {
    let n = N as f64;
    let (mut nodes, mut weights) = ([0.0; N], [0.0; N]);
    for i in 0..N {
        let mut x = cos((4.0 * i as f64 + 3.0) / (4.0 * n + 2.0) * std::f64::consts::PI);
        let mut derivative = 1.0;
        for _ in 0..20 {
            let (mut before, mut value) = (1.0, x);
            for k in 2..=N {
                let k = k as f64;
                (before, value) = (value, ((2.0 * k - 1.0) * x * value - (k - 1.0) * before) / k);
            }
            derivative = n * (before - x * value) / (1.0 - x * x);
            let step = value / derivative;
            x -= step;
            if step.abs() < 1e-16 {
                break;
            }
        }
        nodes[i] = x;
        weights[i] = 2.0 / ((1.0 - x * x) * derivative * derivative);
    }
    (nodes, weights)
}
