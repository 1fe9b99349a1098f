//! Powers on both sides of the poles against closed forms, lines in every zone against a Gaussian pair.

use super::*;
use crate::model::gaussian;
use crate::pairs::Part;
use crate::shelf::convert;

fn meets<const N: usize>(one: Ball<N>, other: Ball<N>) -> bool {
    let gap = one - other;
    !gap.is_positive() && !gap.is_negative()
}

fn alone(sigma: f64, batches: u64, seen: u64) -> Thrown {
    Thrown::new(sigma, vec![Factor { batches, seen, times: 1 }])
}

/// E W^(s + iu) at u = 0, du, 2 du, 3 du.
fn nodes(thrown: &Thrown, s: f64, du: f64) -> (Ball<3>, Vec<Complex<3>>) {
    let (factor, power) = (&thrown.factors[0], Power::of(s).unwrap());
    let average = Average::new(thrown.sigma, factor);
    let real = thrown.real::<3>(factor, power, 60.0).unwrap();
    let node = |k: usize| {
        let u = k as f64 * du;
        let ray =
            thrown.ray(factor, power, (u, u), 50.0).unwrap_or_else(|| panic!("no ray {s} {u}"));
        average.nodes(&ray, &real, du, (k, k))[0].conjugate()
    };
    (real.moment(), (0..4).map(node).collect())
}

/// One batch in an epoch: E Y^s = e^(s(s-1)/2 sigma^2) for every complex s.
#[test]
fn powers_of_one_number() {
    for (sigma, s) in
        [(0.8, -3.5), (2.0, -0.25), (0.7, 0.5), (1.5, 1.0), (0.9, 2.75), (3.0, 9.5), (4.0, 12.75)]
    {
        let (real, found) = nodes(&alone(sigma, 1, 1), s, 0.7);
        let inverse = Ball::<3>::from_f64(sigma).squared().reciprocal().scaled(-1);
        for (k, node) in found.iter().enumerate() {
            let s = Complex::new(Ball::from_f64(s), Ball::from_f64(0.7).times_u64(k as u64));
            let exact = (s * (s - Complex::one())).times_real(inverse).exponential();
            assert!(meets(node.re, exact.re) && meets(node.im, exact.im), "{sigma} {k}");
            let size = exact.square_modulus().root().above();
            assert!(node.re.radius <= size.scaled(-40), "{sigma} {k}: {:?}", node.re);
            assert!(k > 0 || meets(real, exact.re), "{sigma}");
        }
    }
}

/// Whole powers against the sums of positive terms that they are.
#[test]
fn powers_of_many_numbers() {
    for (batches, seen) in [(40, 40), (40, 9), (3, 2), (2000, 1700)] {
        let thrown = alone(1.1, batches, seen);
        let exact = moments::<3>(1.1, &thrown.factors[0], 6);
        for s in [1u8, 2, 3, 6] {
            let (real, _) = nodes(&thrown, f64::from(s), 1.0);
            assert!(meets(real, exact[usize::from(s)]), "{batches} {seen} {s}");
            assert!(real.radius <= real.above().scaled(-50), "{batches} {seen} {s}: {real:?}");
        }
    }
}

/// What is said of all nodes beyond one holds for some of them.
#[test]
fn the_tail_of_a_broken_epoch_holds() {
    for s in [-4.5, 0.625, 2.75] {
        let thrown = alone(1.3, 30, 27);
        let (power, from) = (Power::of(s).unwrap(), 30.0);
        let (log, kappa) = thrown.rough_tail(s, from);
        assert!(log < 0.0 && kappa > 0.0, "{s}: {log}");
        let bound = thrown.tail::<3>(power, from, kappa, 40.0).unwrap();
        let bound = Ball::exact(crate::arithmetic::Float::from_magnitude(bound));
        let bound = bound * Ball::pi() * Ball::from_f64(from);
        let (whole, found) = nodes(&thrown, s, 15.0);
        assert!(bound.is_below(&whole), "{s}");
        for node in &found[2..] {
            assert!(node.square_modulus().root().is_at_most(&bound), "{s}: {node:?} {bound:?}");
        }
    }
}

/// Three epochs of one batch are a Gaussian pair. The cheapest line stands in every zone, as the threshold and the error ask for.
#[test]
fn lines_in_every_zone() {
    let sigma = 1.2;
    let thrown = Thrown::new(sigma, vec![Factor { batches: 1, seen: 1, times: 3 }]);
    let mu = Ball::<4>::from_u64(3).root().over(Ball::from_f64(sigma));
    let mut zones = Vec::new();
    for (t, log_error) in [(6.0, -50.0), (-6.0, -50.0), (-0.5, -20.0), (0.5, -35.0), (14.0, -90.0)]
    {
        let line = thrown.line::<4>(t, log_error).unwrap();
        let at = Ball::from_f64(t);
        for part in [Part::Above, Part::Least, Part::Below] {
            let found = convert(line.zone(), line.at(at), at, part, Ball::one());
            assert!(meets(found, gaussian(mu, at, part)), "{t} {part:?}");
            let wide = found.radius.order() as f64 * std::f64::consts::LN_2;
            assert!(wide < log_error + 3.0, "{t} {part:?}: {wide}");
        }
        if !zones.contains(&line.zone()) {
            zones.push(line.zone());
        }
    }
    assert!(zones.contains(&Zone::Above) && zones.contains(&Zone::Below), "{zones:?}");
}
