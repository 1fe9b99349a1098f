//! Gaussian and last-iterate pairs against reference values computed elsewhere.

use accounting::pairs::{BinomialGaussian, Gaussian};
use accounting::{Order, Pair};
use vocabulary::{Interval, Run};

struct Row {
    kind: String,
    sigma: f64,
    q: f64,
    steps: u64,
    at: f64,
    order: String,
    quantity: String,
    value: f64,
    digits: i32,
}

fn rows() -> Vec<Row> {
    include_str!("golden/closed_forms.csv")
        .lines()
        .filter(|line| !line.starts_with('#') && !line.starts_with("kind"))
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            Row {
                kind: cells[0].to_owned(),
                sigma: cells[1].parse().unwrap(),
                q: cells[2].parse().unwrap(),
                steps: cells[3].parse::<f64>().unwrap() as u64,
                at: cells[4].parse().unwrap(),
                order: cells[5].to_owned(),
                quantity: cells[6].to_owned(),
                value: cells[7].parse().unwrap(),
                digits: cells[8].parse().unwrap(),
            }
        })
        .collect()
}

fn run(sigma: f64, q: f64, steps: u64) -> Run {
    Run::builder().phase(sigma, q, steps).build().unwrap()
}

fn pair_of(row: &Row) -> Box<dyn Pair> {
    match row.kind.as_str() {
        "last-iterate" => {
            Box::new(BinomialGaussian::for_run(&run(row.sigma, row.q, row.steps)).unwrap())
        }
        "gaussian-mu" => Box::new(Gaussian::new(row.sigma).unwrap()),
        "full-batch" => Box::new(Gaussian::full_batch(&run(row.sigma, row.q, row.steps)).unwrap()),
        other => panic!("unknown kind {other}"),
    }
}

fn answer(row: &Row) -> Interval {
    let pair = pair_of(row);
    let one = |order| {
        if row.quantity == "eps" { pair.epsilon(row.at, order) } else { pair.delta(row.at, order) }
    };
    match row.order.as_str() {
        "remove" => one(Order::Remove).unwrap(),
        "add" => one(Order::Add).unwrap(),
        _ => one(Order::Remove).unwrap().max(one(Order::Add).unwrap()),
    }
}

/// Every row: the value agrees to the digits trusted (at most 1e-13 of an f64), the interval
/// contains the reference widened by its own uncertainty, and the interval is narrow.
#[test]
fn every_reference_value_holds_to_its_digits() {
    let rows = rows();
    assert_eq!(rows.len(), 804);
    let mut widest: f64 = 0.0;
    for row in &rows {
        let name = format!(
            "{} sigma={} q={} T={} at={:e} {} {}",
            row.kind, row.sigma, row.q, row.steps, row.at, row.order, row.quantity
        );
        let got = answer(row);
        // k digits trusted: half a unit of the k-th, and f64 parsing of longer ones.
        let trusted = (0.5 * 10f64.powi(1 - row.digits)).max(4e-16);
        if row.quantity == "log_delta" {
            if row.value < -680.0 {
                assert!(got.lower == 0.0 && got.upper <= 1e-290, "{name}: {got:?}");
                continue;
            }
            let slack = trusted * row.value.abs().max(1.0);
            let (low, high) = (got.lower.ln() - slack, got.upper.ln() + slack);
            assert!(
                low <= row.value && row.value <= high,
                "{name}: {got:?} misses e^{}",
                row.value
            );
            assert!(
                (got.value.ln() - row.value).abs() <= slack + 1e-12,
                "{name}: {}",
                got.value.ln()
            );
            assert!(got.relative_width() < 1e-6, "{name}: {got:?}");
            continue;
        }
        let slack = trusted * row.value.abs();
        assert!(
            got.lower - slack <= row.value && row.value <= got.upper + slack,
            "{name}: {got:?} misses {} (width {:e})",
            row.value,
            got.relative_width()
        );
        assert!(
            (got.value - row.value).abs() <= slack.max(2e-13 * row.value),
            "{name}: {got:?} against {}",
            row.value
        );
        if row.value > 0.0 {
            widest = widest.max(got.relative_width());
            assert!(got.relative_width() < 1e-10, "{name}: width {:e}", got.relative_width());
        }
    }
    assert!(widest < 1e-10, "{widest:e}");
}

/// The values printed in the paper (2.222, 2.182) with all their digits.
#[test]
fn the_papers_example() {
    for (steps, want) in [(3, 2.222410709182349786), (1, 2.181694109245377831)] {
        let pair = BinomialGaussian::for_run(&run(1.0, 0.1, steps)).unwrap();
        let got = pair.epsilon(1e-6, Order::Remove).unwrap();
        assert!((got.value - want).abs() < 1e-13, "{steps}: {got:?}");
        assert!(got.lower <= want && want <= got.upper);
    }
}

/// Larger runs; eight digits known (independent NumPy evaluation).
#[test]
fn large_runs() {
    for (steps, q, sigma, delta, want) in [
        (1000, 0.01, 0.5, 1e-6, 3.4014366),
        (1000, 0.01, 0.5, 1e-10, 4.8954146),
        (100_000, 1e-3, 0.5, 1e-6, 2.9660831),
        (100_000, 1e-3, 0.5, 1e-10, 4.0660753),
        (1_000_000, 1e-3, 0.6, 1e-6, 8.8796623),
        (1_000_000, 1e-3, 0.6, 1e-10, 11.6475131),
    ] {
        let pair = BinomialGaussian::for_run(&run(sigma, q, steps)).unwrap();
        let got = pair
            .epsilon(delta, Order::Remove)
            .unwrap()
            .max(pair.epsilon(delta, Order::Add).unwrap());
        assert!(
            (got.value - want).abs() < 6e-8 * want.max(1.0),
            "{steps} {q} {sigma} {delta}: {got:?}"
        );
    }
}

/// The heuristic is not monotone in the number of steps.
#[test]
fn epsilon_falls_and_rises_with_steps() {
    for (steps, want) in
        [(1, 1.000), (2, 0.573), (5, 0.397), (20, 0.417), (100, 0.691), (1000, 1.978)]
    {
        let pair = BinomialGaussian::for_run(&run(0.7764, 0.01, steps)).unwrap();
        let got = pair.epsilon(1e-6, Order::Remove).unwrap().value;
        assert!((got - want).abs() < 1e-3, "{steps}: {got}");
    }
}

/// Corners of the domain: T q << 1, T <= 10, little and much noise, delta down to 1e-100. Values:
/// mpmath with 60 digits or more, summed and root-found directly from the definition (rates and deltas
/// being the f64 written). The certified ends contain them.
#[test]
fn corners_in_high_precision() {
    use Order::{Add, Remove};
    for (sigma, q, steps, delta, order, want) in [
        (100.0, 1e-07, 1, 1e-12, Remove, 2.7593252311353542945e-9),
        (100.0, 1e-07, 1, 1e-12, Add, 2.6771814467908175916e-9),
        (0.2, 1e-07, 1, 1e-09, Remove, 7.1978125306640654842),
        (0.2, 1e-07, 1, 1e-09, Add, 9.8906385497528691538e-8),
        (0.3, 1e-05, 2, 1e-100, Remove, 82.753726972898114862),
        (0.3, 1e-05, 2, 1e-100, Add, 0.000020000100000666673303),
        (0.2, 0.9, 5, 1e-50, Remove, 227.90451816250529195),
        (0.2, 0.9, 5, 1e-50, Add, 11.512925464968956062),
        (0.2, 1e-07, 10, 1e-100, Remove, 145.04956530025180219),
        (0.2, 1e-07, 10, 1e-100, Add, 1.0000000499999738009e-6),
        (100.0, 0.3, 7, 0.001, Remove, 0.0061620690827988702411),
        (100.0, 0.3, 7, 0.001, Add, 0.0061400814104627717197),
        (0.5, 0.0001, 100, 1e-30, Remove, 0.076519172128759976709),
        (0.5, 0.0001, 100, 1e-30, Add, 0.008799028166336389459),
        (0.2, 0.02, 300, 1e-08, Remove, 24.611468091634859958),
        (0.2, 0.02, 300, 1e-08, Add, 4.780984906228638101),
        (50.0, 1e-06, 1000, 1e-10, Remove, 2.0530020265938019154e-6),
        (50.0, 1e-06, 1000, 1e-10, Add, 2.0484504275590360714e-6),
        (100.0, 1e-07, 1000000000, 1e-12, Remove, 0.00016118517594465990004),
        (100.0, 1e-07, 1000000000, 1e-12, Add, 0.00016118490679069467705),
        (0.2, 1e-05, 1000000, 1e-20, Remove, 0.44557423780776004904),
        (0.2, 1e-05, 1000000, 1e-20, Add, 0.42628430773009192327),
        (3.0, 0.7, 400, 1e-100, Remove, 115.87517369531702181),
        (3.0, 0.7, 400, 1e-100, Add, 101.77194146385007167),
    ] {
        let got = BinomialGaussian::for_run(&run(sigma, q, steps))
            .unwrap()
            .epsilon(delta, order)
            .unwrap();
        let parsing = 2.3e-16 * want;
        assert!(
            got.lower <= want + parsing && want - parsing <= got.upper,
            "{sigma} {q} {steps} {delta:e} {order:?}: {got:?} misses {want}"
        );
        assert!(got.relative_width() < 1e-12, "{sigma} {q} {steps} {delta:e} {order:?}: {got:?}");
    }
}
