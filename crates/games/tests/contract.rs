//! The pairs of games keep the promises of every pair.

// Tests may compare with the platform's functions.
#![allow(clippy::disallowed_methods)]

#[path = "../../accounting/tests/support/pair_laws.rs"]
mod pair_laws;

use games::exact::{QuadraticPair, ShiftedGaussians};

#[test]
fn pairs_of_games_keep_their_promises() {
    let mixture =
        ShiftedGaussians::new(vec![(0.0, 0.6), (1.0, 0.3), (2.5, 0.1)], 1.5, 1e-15).unwrap();
    pair_laws::all("a mixture of shifted Gaussians", &mixture);
    for (alpha, noise, rate, steps) in [(0.0, 1.0, 0.1, 3), (0.5, 2.0, 0.3, 6), (1.0, 1.5, 0.05, 4)]
    {
        let pair = QuadraticPair::new(alpha, noise, rate, steps).unwrap();
        pair_laws::all(&format!("the quadratic game with alpha {alpha}"), &pair);
        let printed = pair.rounded_as_printed().unwrap();
        pair_laws::all(&format!("the same as printed, alpha {alpha}"), &printed);
    }
}
