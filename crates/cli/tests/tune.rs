//! `tune` through the binary, on the table of the crate's reference tests.

use crate::support;

use support::Bench;

const TABLE: &str = include_str!("../../tuning/tests/reference/table.csv");

fn bench() -> Bench {
    Bench::new().file("results.csv", TABLE)
}

#[test]
fn every_answer_says_that_the_search_costs_more() {
    // What solves for noise gets the configurations of one number of steps.
    let some = |line: &&str| matches!(line.split(',').nth(1), Some("steps" | "125"));
    let few = TABLE.lines().filter(some).collect::<Vec<_>>().join("\n");
    let bench = bench().file("few.csv", &few);
    for line in [
        "tune regress results.csv",
        "tune rank results.csv",
        "tune select results.csv --epsilon 8",
        "tune profiles few.csv --epsilon 8 --dataset-size 33508",
        "tune search few.csv --epsilon 8 --dataset-size 33508 --expected-trials 2",
    ] {
        let (code, stdout, stderr) = bench.run(line);
        assert_eq!(code, 0, "{line}: {stderr}");
        let text = stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("is not the epsilon of the search"), "{line}: {stdout}");
        let document = bench.json(&format!("{line} --format json"));
        assert!(
            document["statement"].as_str().unwrap().contains("is not the epsilon of the search")
        );
        assert!(document["schema"].as_str().unwrap().starts_with("dosimeter.tune-"));
    }
}

#[test]
fn what_a_person_reads() {
    let bench = bench();
    insta::assert_snapshot!("tune_regress", bench.show("tune regress results.csv --epsilon 8"));
    insta::assert_snapshot!("tune_rank", bench.show("tune rank results.csv --epsilon 8"));
    insta::assert_snapshot!(
        "tune_select",
        bench.show("tune select results.csv --epsilon 8 --min-utility 0.55")
    );
    insta::assert_snapshot!(
        "tune_profiles",
        bench.show("tune profiles results.csv --epsilon 8 --dataset-size 33508")
    );
}

#[test]
fn a_search_costs_more_than_a_run_and_less_than_releasing_everything() {
    let bench = bench();
    let line = "tune search results.csv --epsilon 8 --dataset-size 33508 --expected-trials 20";
    let found = bench.json(&format!("{line} --format json"));
    let number = |key: &str| found[key].as_f64().unwrap();
    assert!((number("one_run") / 8.0 - 1.0).abs() < 1e-6);
    assert!(number("one_run") < number("search") && number("search") < number("all_released"));
    // Theorem 2 of Papernot and Steinke: about one run plus twice its Renyi part.
    assert!(number("search") > 16.0 && number("search") < 20.0, "{found}");
    assert_eq!(found["parameter"], 0.05);
}

#[test]
fn figures_and_tables() {
    let bench = bench();
    for question in [
        "regress results.csv",
        "rank results.csv",
        "select results.csv --epsilon 2",
        "profiles results.csv --epsilon 2 --dataset-size 33508",
    ] {
        let (code, svg, stderr) = bench.run(&format!("tune {question} --format svg"));
        assert_eq!(code, 0, "{question}: {stderr}");
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{question}");
        let (code, csv, _) = bench.run(&format!("tune {question} --format csv"));
        let columns = csv.lines().next().unwrap().split(',').count();
        assert!(code == 0 && columns >= 7 && csv.lines().count() > 4, "{question}: {csv}");
    }
    let (code, _, stderr) = bench.run("tune select results.csv --format svg");
    assert!(code == 2 && stderr.contains("--epsilon: 2, 8"), "{stderr}");
}

#[test]
fn bad_input_is_refused_with_a_sentence() {
    let bench = bench()
        .file("two.csv", "batch_size,steps,learning_rate,epsilon,delta,score_a,score_b\n1,1,1,8,1e-5,1,1\n")
        .file("few.csv", "batch_size,steps,learning_rate,epsilon,delta,score_a\n1,1,1,8,1e-5,1\n2,1,1,8,1e-5,2\n")
        .file("typo.csv", "batch_size,steps,learning_rate,epsilon,delta,score_a,utilty\n1,1,1,8,1e-5,1,1\n");
    for (line, code, part) in [
        ("tune rank missing.csv", 2, "cannot read missing.csv"),
        ("tune rank two.csv", 2, "choose one with --score: a, b"),
        ("tune rank two.csv --score c", 2, "it has a, b"),
        ("tune rank results.csv --epsilon 3", 2, "the table has 2, 8"),
        ("tune rank results.csv --confidence 2", 2, "confidence 2 is outside"),
        ("tune regress few.csv", 5, "2 observations do not determine 2 coefficients"),
        ("tune select typo.csv", 2, "has no utility"),
        ("tune select results.csv --min-utility 9", 2, "no configuration at epsilon"),
        ("tune profiles results.csv --dataset-size 100", 2, "larger than the data set of 100"),
        (
            "tune search results.csv --epsilon 8 --dataset-size 33508 --expected-trials 0",
            2,
            "expected trials 0",
        ),
    ] {
        let (got, _, stderr) = bench.run(line);
        assert_eq!(got, code, "{line}: {stderr}");
        assert!(stderr.contains(part), "{line}: {stderr}");
    }
    let (_, _, stderr) = bench.run("tune rank typo.csv");
    assert!(stderr.contains("columns that are not read: utilty"), "{stderr}");
}
