//! Trade-off curves of composition against reference values (`golden/tradeoff.csv`: supporting
//! lines of independently computed profiles), one order each, and the symmetrised curve that
//! they imply.

use accounting::lenses::Lens;
use vocabulary::{Direction, LensName, Run};

#[test]
fn reference_curves_come_out_to_their_digits() {
    let lens = Lens::named(LensName::Composition);
    let mut smaller: Option<(String, f64)> = None;
    let mut rows = 0;
    for line in include_str!("golden/tradeoff.csv").lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |index: usize| -> f64 { cells[index].parse().unwrap() };
        let run = Run::builder().phase(number(0), number(1), number(2) as u64).build().unwrap();
        let view = lens.look(&run).unwrap();
        let (fpr, truth, allowance) = (number(3), number(5), 10_f64.powf(1.0 - number(6)));
        let direction = match cells[4] {
            "remove" => Direction::Remove,
            "add" => Direction::Add,
            _ => Direction::Both,
        };
        let found = view.fnr(fpr, direction).unwrap();
        assert!((found.value - truth).abs() <= allowance, "{line}: {found:?}");
        assert!(found.lower <= truth + allowance && truth - allowance <= found.upper, "{line}");
        // The symmetrised curve lies below both orders, and no more than a percent where one
        // of them rules.
        let key = cells[..4].join(",");
        if let Some((before, other)) = &smaller
            && *before == key
        {
            let both = view.fnr(fpr, Direction::Both).unwrap();
            let least = other.min(truth);
            assert!(both.lower <= least + allowance, "{line}: {both:?}");
            assert!(both.upper >= least - 0.01, "{line}: {both:?}");
        }
        smaller = Some((key, truth));
        rows += 1;
    }
    assert!(rows >= 30, "{rows}");
}
