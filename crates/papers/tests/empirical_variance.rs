//! The second hypothesis of "Empirical Privacy Variance", on our grid.

use experiments::Silent;
use papers::{Context, entry};
use std::sync::atomic::AtomicBool;

#[test]
fn profiles_of_one_epsilon_differ() {
    let root = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let context = Context {
        folder: root.path(),
        threads: 1,
        trials: None,
        seed: 0,
        reporter: &Silent,
        stop: &stop,
    };
    let found = entry("p2-hypothesis-2").unwrap().reproduce(&context).unwrap();
    assert_eq!((found.tables[0].rows.len(), found.figures.len()), (36, 3));
    for rows in found.tables[0].rows.chunks(12) {
        let column = |i: usize| rows.iter().map(move |row| row[i].as_f64().unwrap());
        let epsilon = column(0).next().unwrap();
        let (least, most) =
            (column(4).fold(f64::INFINITY, f64::min), column(4).fold(0.0, f64::max));
        // One epsilon, last-iterate numbers that differ several times over, none above it.
        assert!(most < epsilon && most > 3.0 * least, "{least} {most}");
        // The largest batch with the most steps leads the smallest with the fewest everywhere.
        assert!(
            rows[11][4].as_f64() > rows[0][4].as_f64()
                && rows[11][5].as_f64() > rows[0][5].as_f64()
        );
    }
}
