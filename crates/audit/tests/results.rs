//! The tables of `docs/results` say what this version shows on the scores beside them.

use audit::{Design, Method, Plan, Table, analyse};
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results").join(name)
}

/// Rows of a CSV as functions from a column's name to its cell.
fn rows(path: &Path) -> Vec<impl Fn(&str) -> String + use<>> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect());
    let header: Vec<String> = lines.next().unwrap();
    let header = std::sync::Arc::new(header);
    lines
        .map(|cells: Vec<String>| {
            let header = header.clone();
            move |name: &str| {
                cells[header.iter().position(|column| column == name).unwrap()].clone()
            }
        })
        .collect()
}

/// A family's noise is searched to a millionth, and epsilon moves a few times as much.
const SEARCHED: f64 = 1e-5;

/// What methods show at delta 1e-5, beside what a table says.
fn holds(scores: &Path, plan: Plan, told: &[(Method, String)]) {
    let methods = told.iter().map(|(method, _)| *method).collect();
    let plan = Plan { deltas: vec![1e-5], methods, ..plan };
    let mut table = Table::default();
    table.add_file(scores).unwrap();
    let scores_read = table.settle().unwrap().into_scores(plan.design).unwrap();
    let audit = analyse(&scores_read, &plan, None).unwrap();
    for (method, told) in told {
        let found = audit.bounds.iter().find(|bound| bound.method() == *method).unwrap().epsilon();
        let told: f64 = told.parse().unwrap();
        let error = if *method == Method::LastIterate { SEARCHED * told } else { 1e-6 };
        assert!(
            (found - told).abs() <= error,
            "{}, {method}: {found}, not {told}",
            scores.display()
        );
    }
}

#[test]
fn gradient_canaries() {
    let folder = folder("last-iterate-gradient-canaries");
    let mut held = 0;
    // The scores of more canaries were not kept.
    for row in rows(&folder.join("bounds.csv")).iter().filter(|row| row("canaries") == "1000") {
        let name = format!("scores/{}-{}-1000.csv", row("batch_size"), row("observe"));
        let told = [
            (Method::OneRun, row("one_run")),
            (Method::OneRunGdp, row("one_run_gdp")),
            (Method::OneRunIndependent, row("one_run_independent")),
        ];
        holds(&folder.join(name), Plan::new(Design::OneRun), &told);
        held += 1;
    }
    assert_eq!(held, 6);
}

#[test]
fn figures_of_trained_networks() {
    let mut held = 0;
    for name in ["fashion-mnist", "cifar10-jpeg", "wrn-16-4"] {
        for figure in ["last-iterate-figure-2", "last-iterate-figure-4"] {
            let folder = folder(name).join(figure);
            for row in rows(&folder.join("audits.csv")) {
                let steps: u64 = row("steps").parse().unwrap();
                let of = [row("data"), row("model"), row("attack")].join("-");
                let mut plan = Plan::new(Design::Runs);
                plan.training = Some((0.1, steps));
                let told = [
                    (Method::ClopperPearson, row("any_mechanism_95")),
                    (Method::LastIterate, row("last_iterate_family_95")),
                ];
                holds(&folder.join(format!("scores/{of}-steps{steps}.csv")), plan, &told);
                held += 1;
            }
        }
    }
    assert_eq!(held, 62);
}

#[test]
fn trained_language_models() {
    let folder = folder("last-iterate-table-1-smollm2");
    let mut held = 0;
    for row in &rows(&folder.join("trainings.csv")) {
        let whole = |column: &str| row(column).parse::<f64>().unwrap() as u64;
        let scores = format!("scores/batch{}-seed{}.csv", whole("batch_size"), whole("seed"));
        let told = [(Method::OneRun, row("audit_any")), (Method::OneRunGdp, row("audit_gaussian"))];
        holds(&folder.join(scores), Plan::new(Design::OneRun), &told);
        held += 1;
    }
    assert_eq!(held, 12);
}

/// The page that sums up the figures quotes lower bounds, so every digit is rounded down.
#[test]
fn lower_bounds_are_quoted_from_below() {
    let page = std::fs::read_to_string(folder("last-iterate.md")).unwrap();
    let (mut quoted, steps) = (0, ["16", "64", "256"]);
    for line in page.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let Some((data, what)) = cells[0].split_once(": ") else { continue };
        let data = match data {
            "Fashion-MNIST" => "fashion-mnist",
            "CIFAR-10" => "cifar10-jpeg",
            _ => continue,
        };
        let parts: Vec<&str> = what.split(", ").collect();
        let &[canary, records, model] = &parts[..] else { panic!("{line}") };
        let (figure, kind) = match canary {
            "gradient" => ("last-iterate-figure-2", "gradient"),
            _ => ("last-iterate-figure-4", "input"),
        };
        let attack = format!("{kind}-{}", records.split(' ').next().unwrap());
        let model = model.replace("wide net", "wrn").replace(' ', "-").to_lowercase();
        let rows = rows(&folder(data).join(figure).join("audits.csv"));
        for (cell, steps) in cells[1..].iter().zip(steps).filter(|(cell, _)| !cell.is_empty()) {
            let is = |row: &dyn Fn(&str) -> String| {
                (row("model"), row("attack"), row("steps"))
                    == (model.clone(), attack.clone(), steps.into())
            };
            let row = rows.iter().find(|row| is(row)).unwrap();
            let shown: f64 = row("last_iterate_family_95").parse().unwrap();
            let said: f64 = cell.split(' ').next().unwrap().parse().unwrap();
            assert!((0.0..0.01).contains(&(shown - said)), "{line}: {said}, not {shown}");
            quoted += 1;
        }
    }
    assert_eq!(quoted, 42);
}

/// So does the page's table of the paper's own net.
#[test]
fn lower_bounds_of_the_large_net_are_quoted_from_below() {
    let page = std::fs::read_to_string(folder("last-iterate.md")).unwrap();
    let mut quoted = 0;
    for line in page.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let &[what, steps, side, auroc, any, family, _] = &cells[..] else { continue };
        let (figure, attack) = match what {
            "gradient, natural" => (2, "gradient-natural"),
            "gradient, contribute nothing" => (2, "gradient-zero"),
            "mislabelled record, natural" => (4, "input-natural"),
            "mislabelled record, blank" => (4, "input-blank"),
            _ => continue,
        };
        let rows =
            rows(&folder("wrn-16-4").join(format!("last-iterate-figure-{figure}/audits.csv")));
        let row = rows.iter().find(|row| row("attack") == attack && row("steps") == steps).unwrap();
        let number = |text: &str| text.parse::<f64>().unwrap();
        assert_eq!(row("trainings_per_side"), side, "{line}");
        assert!((number(&row("auroc")) - number(auroc)).abs() <= 5e-4, "{line}");
        for (said, shown) in [(any, "any_mechanism_95"), (family, "last_iterate_family_95")] {
            assert!((0.0..0.01).contains(&(number(&row(shown)) - number(said))), "{line}: {shown}");
        }
        quoted += 1;
    }
    assert_eq!(quoted, 6);
}
