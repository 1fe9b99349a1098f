//! Roots of increasing functions that are known with an error bound, returned as two points
//! whose sides are certain: the caller takes the safe one. Newton inside a bracket; the answer
//! does not depend on the derivative being right, only the number of evaluations does.

/// An increasing function at a point: its value, a bound on the value's error, its derivative.
#[derive(Clone, Copy, Debug)]
pub struct Noisy {
    pub value: f64,
    pub error: f64,
    pub slope: f64,
}

/// Two points around a root: the true function is at most the target at `below` and at least
/// the target at `above`. `middle` is the best estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Enclosure {
    pub below: f64,
    pub middle: f64,
    pub above: f64,
}

/// Encloses the root of `function = target`, starting at `guess` and expecting it within about
/// `step`. `None` if the function's errors are too large for any point to be certain, or if the
/// root is not reached.
///
/// # Errors
/// Those of the function.
///
/// ```
/// use numerics::roots::{Noisy, enclose};
/// let cube = |x: f64| Ok::<_, ()>(Noisy { value: x * x * x, error: 1e-15 * x.abs().powi(3), slope: 3.0 * x * x });
/// let root = enclose(cube, 2.0, 1.0, 1.0).unwrap().unwrap();
/// assert!(root.below.powi(3) < 2.0 && root.above.powi(3) > 2.0);
/// assert!(root.above - root.below < 1e-14);
/// ```
pub fn enclose<E>(
    mut function: impl FnMut(f64) -> Result<Noisy, E>,
    target: f64,
    guess: f64,
    step: f64,
) -> Result<Option<Enclosure>, E> {
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
    let mut reach = step.abs().max(f64::MIN_POSITIVE);
    let mut x = guess;
    let mut last_residual = f64::INFINITY;
    let mut found = None;
    for _ in 0..200 {
        let here = function(x)?;
        if here.value.is_nan() {
            return Ok(None);
        }
        let residual = here.value - target;
        if residual < 0.0 {
            low = x;
        } else {
            high = x;
        }
        let newton = -residual / here.slope;
        let grain = 2.0 * f64::EPSILON * x.abs();
        found = Some((x, residual.abs(), here));
        if residual.abs() <= 2.0 * here.error || newton.abs() <= grain || high - low <= grain {
            break;
        }
        let mut next = x + newton;
        // Newton that does not shrink the residual by half gives way to bisection.
        let stalled = residual.abs() > 0.5 * last_residual;
        last_residual = residual.abs();
        if low.is_finite() && high.is_finite() {
            if !(next > low && next < high) || stalled {
                next = 0.5 * (low + high);
            }
        } else if !newton.is_finite() || newton.abs() > reach {
            next = x + if residual < 0.0 { reach } else { -reach };
            reach *= 2.0;
        }
        if !next.is_finite() {
            return Ok(None);
        }
        x = next;
    }
    let Some((x, residual, here)) = found else { return Ok(None) };
    let grain = 2.0 * f64::EPSILON * x.abs() + f64::MIN_POSITIVE;
    let spread =
        if here.slope > 0.0 { 1.5 * (residual + here.error) / here.slope } else { step * 1e-12 };
    let margin = spread.max(grain);
    let below = certain(&mut function, x, -margin, |p| p.value + p.error <= target)?;
    let above = certain(&mut function, x, margin, |p| p.value - p.error >= target)?;
    Ok(below.zip(above).map(|(below, above)| Enclosure { below, middle: x, above }))
}

/// The first of x + m, x + 2m, x + 4m, ... at which the side is certain.
fn certain<E>(
    function: &mut impl FnMut(f64) -> Result<Noisy, E>,
    x: f64,
    mut margin: f64,
    sure: impl Fn(&Noisy) -> bool,
) -> Result<Option<f64>, E> {
    for _ in 0..120 {
        let candidate = x + margin;
        if !candidate.is_finite() {
            break;
        }
        if sure(&function(candidate)?) {
            return Ok(Some(candidate));
        }
        margin *= 2.0;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_far_roots_and_keeps_the_sides() {
        let mut calls = 0;
        let root = enclose(
            |x: f64| {
                calls += 1;
                Ok::<_, ()>(Noisy { value: x.atan(), error: 1e-12, slope: 1.0 / (1.0 + x * x) })
            },
            1.0,
            -40.0,
            1.0,
        )
        .unwrap()
        .unwrap();
        assert!(root.below.atan() + 1e-12 <= 1.0 && root.above.atan() - 1e-12 >= 1.0);
        assert!(root.above - root.below < 1e-10, "{root:?}");
        assert!(calls < 60, "{calls}");
    }

    #[test]
    fn gives_up_where_nothing_is_certain() {
        let flat = |_: f64| Ok::<_, ()>(Noisy { value: 0.0, error: 1.0, slope: 0.0 });
        assert_eq!(enclose(flat, 0.5, 0.0, 1.0), Ok(None));
        let nan = |_: f64| Ok::<_, ()>(Noisy { value: f64::NAN, error: 0.0, slope: 1.0 });
        assert_eq!(enclose(nan, 0.5, 0.0, 1.0), Ok(None));
    }

    #[test]
    fn wrong_derivative_costs_time_only() {
        let skewed =
            |x: f64| Ok::<_, ()>(Noisy { value: x.exp(), error: 1e-15 * x.exp(), slope: 7.0 });
        let root = enclose(skewed, 3.0, 0.0, 1.0).unwrap().unwrap();
        assert!(root.below <= 3f64.ln() && root.above >= 3f64.ln());
    }
}
