//! Equal to statsmodels and scipy: `reference/make.py` made the values, once.
//!
//! Tolerance 1e-10 relative: both sides work in doubles on 18 to 54 rows whose design has a
//! condition number below 1e3, so that each is within about 1e-12 of the truth.

use serde_json::Value;
use std::path::Path;
use tuning::regression::{Errors, Regression, RegressionOptions, Unit, regress};
use tuning::{EpsilonGroup, TrainingTable, groups};

fn reference() -> Value {
    serde_json::from_str(include_str!("reference/reference.json")).unwrap()
}

fn all_groups() -> Vec<EpsilonGroup> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/table.csv");
    let table = TrainingTable::read(&path).unwrap();
    groups(&table, table.score(Some("vmr")).unwrap()).unwrap()
}

fn close(got: f64, want: &Value, what: &str) {
    let want = want.as_f64().unwrap();
    let scale = want.abs().max(1e-300);
    assert!((got - want).abs() <= 1e-10 * scale, "{what}: {got} is not {want}");
}

fn compare(found: &Regression, want: &Value, what: &str) {
    for (i, effect) in found.coefficients.iter().enumerate() {
        let what = format!("{what}, {}", effect.name);
        close(effect.estimate, &want["params"][i], &what);
        close(effect.standard_error, &want["bse"][i], &what);
        close(effect.statistic, &want["t"][i], &what);
        close(effect.p_value, &want["p"][i], &what);
        close(effect.lower, &want["lower"][i], &what);
        close(effect.upper, &want["upper"][i], &what);
    }
    assert_eq!(found.coefficients.len(), want["params"].as_array().unwrap().len());
    close(found.r_squared, &want["r2"], what);
    close(found.adjusted_r_squared, &want["adj"], what);
    if want["f"].is_number() {
        let joint = found.joint.as_ref().unwrap();
        close(joint.statistic, &want["f"], what);
        close(joint.p_value, &want["f_p"], what);
        let contrast = &found.contrasts[0];
        close(contrast.estimate, &want["contrast"][0], what);
        close(contrast.standard_error, &want["contrast"][1], what);
        close(contrast.p_value, &want["contrast"][2], what);
    }
}

#[test]
fn regressions_equal_statsmodels() {
    let (reference, all) = (reference(), all_groups());
    let at_eight = [all[1].clone()];
    for (name, errors) in
        [("classical", Errors::Classical), ("hc1", Errors::Hc1), ("hc3", Errors::Hc3)]
    {
        let options = RegressionOptions { errors: Some(errors), ..RegressionOptions::default() };
        let found = regress(&at_eight, "vmr", &options).unwrap();
        compare(&found, &reference["regression"][format!("one-{name}")], &format!("one {name}"));
        let found = regress(&all, "vmr", &options).unwrap();
        compare(&found, &reference["regression"][format!("both-{name}")], &format!("both {name}"));
    }
    for (name, errors) in [("configuration", Errors::Configuration), ("seed", Errors::Seed)] {
        let options = RegressionOptions {
            unit: Unit::Runs,
            errors: Some(errors),
            ..RegressionOptions::default()
        };
        let found = regress(&at_eight, "vmr", &options).unwrap();
        compare(&found, &reference["regression"][format!("runs-{name}")], name);
    }
}

#[test]
fn spread_and_correlations_equal_scipy() {
    let (reference, all) = (reference(), all_groups());
    let ranking = tuning::rank(&all, "vmr", 0.95).unwrap();
    let (spread, want) = (&ranking.groups[1].spread, &reference["spread"]);
    close(spread.observed.unwrap(), &want["observed"], "observed");
    close(spread.seed_noise.unwrap(), &want["seed_noise"], "seed noise");
    close(spread.between.unwrap(), &want["between"], "between");
    close(spread.statistic.unwrap(), &want["f"], "F");
    close(spread.p_value.unwrap(), &want["p"], "p");
    for want in reference["correlations"].as_array().unwrap() {
        let name = |key: &str| want[key].as_str().unwrap().trim_start_matches("score_").to_owned();
        let found = ranking.groups[1]
            .correlations
            .iter()
            .find(|c| c.of == name("of") && c.with == name("with_"))
            .unwrap();
        close(found.spearman, &want["spearman"], "rho");
        close(found.p_value, &want["p"], "p of rho");
        close(found.kendall, &want["kendall"], "tau");
        close(found.kendall_p_value, &want["kendall_p"], "p of tau");
        assert!(found.lower < found.spearman && found.spearman < found.upper);
    }
    let ties = &reference["ties"];
    let column = |key: &str| -> Vec<f64> {
        ties[key].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
    };
    let found = tuning::ranks::correlate("x", "y", &column("x"), &column("y"), 0.95).unwrap();
    close(found.spearman, &ties["spearman"], "rho with ties");
    close(found.p_value, &ties["p"], "p of rho with ties");
    close(found.kendall, &ties["kendall"], "tau with ties");
    close(found.kendall_p_value, &ties["kendall_p"], "p of tau with ties");
}

#[test]
fn distributions_equal_scipy() {
    let reference = reference();
    let rows = |key: &str| reference["distributions"][key].as_array().unwrap().clone();
    let number = |row: &Value, i: usize| row[i].as_f64().unwrap();
    for row in rows("t") {
        close(tuning::student_two_sided(number(&row, 0), number(&row, 1)), &row[2], "t");
    }
    for row in rows("t_quantile") {
        close(tuning::student_quantile(number(&row, 0), number(&row, 1)), &row[2], "t quantile");
    }
    for row in rows("f") {
        let found = tuning::f_upper_tail(number(&row, 0), number(&row, 1), number(&row, 2));
        close(found, &row[3], &format!("F {row}"));
    }
    for row in rows("f_quantile") {
        let found = tuning::f_quantile(number(&row, 0), number(&row, 1), number(&row, 2));
        close(found, &row[3], "F quantile");
    }
    for row in rows("chi2_quantile") {
        let found = tuning::chi_squared_quantile(number(&row, 0), number(&row, 1));
        close(found, &row[2], &format!("chi-squared quantile {row}"));
    }
}
