//! The second hypothesis of "Empirical Privacy Variance", on our grid.

mod common;

use common::reproduce;

#[test]
fn profiles_of_one_epsilon_differ() {
    let found = reproduce("empirical-variance-hypothesis-2");
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
