//! The closed-form paper: its numbers come out again, and what is inconsistent is said.

mod common;

use common::reproduce;
use papers::entry;

#[test]
fn figure_7_to_four_digits() {
    let found = reproduce("closed-form-figure-7");
    for number in [".97165", "0.12835 and 0.11305", "0.07835 and 0.05777", "0.03835 and 0.01206"] {
        assert!(found.we_get.contains(number), "{number}: {}", found.we_get);
    }
}

#[test]
fn calibrations_and_membership_of_the_table() {
    let found = reproduce("closed-form-table");
    for number in
        ["3.5151", "3.5170", "1.8119", "1.8255", "closed form 0.8772", "closed form 0.8702"]
    {
        assert!(found.we_get.contains(number), "{number}: {}", found.we_get);
    }
}

#[test]
fn figure_2_is_an_upper_bound_far_from_the_truth() {
    let found = reproduce("closed-form-figure-2");
    for row in &found.tables[0].rows {
        let number = |column: usize| row[column].as_f64().unwrap();
        let (truth, term, bound) = (number(2), number(3), number(4));
        assert!(truth <= term && truth <= bound * (1.0 + 1e-6) + 1e-12, "{row:?}");
        assert!(bound <= term * (1.0 + 1e-9) || number(0) < 1.0, "{row:?}");
    }
}

#[test]
fn figure_4_has_the_published_form_on_the_unsafe_side() {
    let found = reproduce("closed-form-figure-4");
    assert!(
        found.we_get.starts_with(
            "120 cells: the closed form is above the exact Bayes security (unsafe) in 120"
        ),
        "{}",
        found.we_get
    );
    assert!(found.we_get.contains("the certified form above it in 0"), "{}", found.we_get);
}

/// The guide's table of errors is what the command writes.
#[test]
fn the_guide_has_the_table_of_errors() {
    let root = tempfile::tempdir().unwrap();
    let entry = entry("closed-form-figure-10").unwrap();
    let found = reproduce("closed-form-figure-10");
    papers::write(&entry, &found, root.path()).unwrap();
    let page = std::fs::read_to_string(root.path().join("README.md")).unwrap();
    let guide = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/record-level.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let rows: Vec<&str> = page
        .lines()
        .skip_while(|line| *line != "## errors")
        .take_while(|line| *line != "## bayes-security")
        .filter(|line| line.starts_with("| "))
        .collect();
    assert_eq!(rows.len(), 21);
    let cells = |row: &str| -> Vec<String> {
        row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let written: Vec<Vec<String>> =
        guide.lines().filter(|line| line.starts_with("| ")).map(cells).collect();
    for row in rows {
        let fresh = cells(row);
        let old = written
            .iter()
            .find(|old| old.len() == fresh.len() && old[..2] == fresh[..2])
            .unwrap_or_else(|| panic!("docs/record-level.md lacks this row: {row}"));
        for (new, old) in fresh.iter().zip(old).skip(2) {
            // The last printed digit may turn; a changed number may not.
            let same = match (new.parse::<f64>(), old.parse::<f64>()) {
                (Ok(new), Ok(old)) => (new - old).abs() <= 1e-2 * new.abs(),
                _ => new == old,
            };
            assert!(same, "docs/record-level.md has {old} in this row: {row}");
        }
    }
}
