//! The rules and Algorithm 1 on tables small enough to decide by hand, and tables that are wrong.

use tuning::heuristics::Rule;
use tuning::regression::{RegressionOptions, regress};
use tuning::selection::{Better, Chooser, select};
use tuning::{TrainingTable, groups};

const HEAD: &str = "batch_size,steps,learning_rate,epsilon,delta,score_a,utility\n";

fn table(rows: &str) -> TrainingTable {
    TrainingTable::from_csv(&format!("{HEAD}{rows}"), "t.csv").unwrap()
}

#[test]
fn each_rule_calls_the_right_one_safer() {
    let table = table(
        "256,1000,0.001,8,1e-5,0.1,1\n\
         256,2000,0.0005,8,1e-5,0.2,1\n\
         512,500,0.001,8,1e-5,0.3,1\n\
         128,500,0.001,8,1e-5,0.4,1\n",
    );
    let group = &groups(&table, 0).unwrap()[0];
    let c = &group.configurations;
    // Equal U = bT eta: 0 and 1 and 2; the smaller learning rate is 1's.
    assert!(Rule::Updates.safer(&c[1], &c[0]) && !Rule::Updates.safer(&c[0], &c[1]));
    assert!(Rule::Updates.safer(&c[1], &c[2]));
    // Equal U and C: 0 and 2; the larger batch is 2's.
    assert!(Rule::Compute.safer(&c[2], &c[0]) && !Rule::Compute.safer(&c[0], &c[2]));
    assert!(!Rule::Compute.safer(&c[2], &c[1]));
    // Componentwise smaller: 3 below 0 and below 2.
    assert!(Rule::Individual.safer(&c[3], &c[0]) && Rule::Individual.safer(&c[3], &c[2]));
    assert!(!Rule::Individual.safer(&c[3], &c[1]) && !Rule::Individual.safer(&c[3], &c[3]));
    let ranking = tuning::rank(&groups(&table, 0).unwrap(), "a", 0.95).unwrap();
    let accuracy: Vec<_> =
        ranking.heuristics.iter().map(|a| (a.pairs, a.accuracy.unwrap())).collect();
    // Updates: (1,0) wrong, (1,2) right. Compute: (2,0) wrong. Individual: both wrong.
    assert_eq!(accuracy, [(2, 0.5), (1, 0.0), (2, 0.0)]);
    assert!(ranking.heuristics.iter().all(|a| a.lower.unwrap() <= a.accuracy.unwrap()));
}

#[test]
fn equal_scores_count_one_half() {
    let table = table("1,1,1,8,1e-5,0.5,1\n2,1,1,8,1e-5,0.5,1\n");
    let ranking = tuning::rank(&groups(&table, 0).unwrap(), "a", 0.95).unwrap();
    let individual = &ranking.heuristics[2];
    assert_eq!((individual.pairs, individual.ties, individual.accuracy), (1, 1, Some(0.5)));
}

#[test]
fn algorithm_1_by_hand() {
    let table = table(
        "256,1000,0.001,8,1e-5,0.5,0.90\n\
         256,2000,0.0005,8,1e-5,0.2,0.80\n\
         512,500,0.001,8,1e-5,0.3,0.85\n\
         1024,1000,0.0005,8,1e-5,0.4,0.95\n\
         64,100,0.0001,8,1e-5,0.1,0.10\n",
    );
    let all = groups(&table, 0).unwrap();
    // At threshold 0.8 the last is no candidate. The first three share U = 0.256: the second has
    // the least learning rate. The fourth is above it componentwise. The second is left.
    let selection = select(&all, "a", &[0.8], Better::Higher).unwrap();
    let at = &selection.groups[0].at[0];
    let choice = |chooser| at.choices.iter().find(|c| c.chooser == chooser).unwrap();
    assert_eq!(at.candidates, 4);
    assert_eq!(choice(Chooser::Algorithm1).configuration, Some(1));
    assert_eq!(choice(Chooser::BestUtility).configuration, Some(3));
    assert_eq!(choice(Chooser::WorstUtility).configuration, Some(1));
    assert_eq!(choice(Chooser::Oracle).configuration, Some(1));
    assert!((choice(Chooser::BestUtility).excess.unwrap() - 1.0).abs() < 1e-12);
    assert!((choice(Chooser::BestUtility).normalised - 2.0 / 3.0).abs() < 1e-12);
    // A loss as utility: the other way round.
    let losses = select(&all, "a", &[0.85], Better::Lower).unwrap();
    let best = losses.groups[0].at[0].choices.iter().find(|c| c.chooser == Chooser::BestUtility);
    assert_eq!(best.unwrap().utility, Some(0.1));
    assert!(select(&all, "a", &[0.99], Better::Higher).unwrap_err().to_string().contains("0.95"));
}

#[test]
fn a_grid_with_fixed_products_has_no_regression() {
    let rows: String =
        (0..8).map(|i| format!("{},{},0.1,8,1e-5,{},1\n", 1 << i, 1 << (8 - i), i % 3)).collect();
    let error = regress(&groups(&table(&rows), 0).unwrap(), "a", &RegressionOptions::default())
        .unwrap_err();
    assert!(error.to_string().contains("determine one another"), "{error}");
}

#[test]
fn wrong_tables_are_refused_with_their_place() {
    for (text, part) in [
        ("", "is empty"),
        ("a,b\n1,2\n", "no column `batch_size`"),
        (HEAD, "has no rows"),
        ("batch_size,steps,learning_rate,epsilon,delta\n", "there is no score"),
        ("batch_size,steps,learning_rate,epsilon,delta,score_a\n1,1,1,8,1e-5\n", "5 cells"),
        ("batch_size,steps,learning_rate,epsilon,delta,score_a\n1,1.5,1,8,1e-5,1\n", "steps 1.5"),
        (
            "batch_size,steps,learning_rate,epsilon,delta,score_a\n1,1,-1,8,1e-5,1\n",
            "learning_rate -1",
        ),
        ("batch_size,steps,learning_rate,epsilon,delta,score_a\n1,1,1,8,2,1\n", "delta 2"),
        (
            "batch_size,steps,learning_rate,epsilon,delta,score_a\n1,1,1,8,1e-5,nan\n",
            "t.csv, row 2: score_a NaN",
        ),
        ("batch_size,steps,learning_rate,epsilon,delta,score_a\n1,1,1,8,1e-5,x\n", "score_a `x`"),
        ("batch_size,batch_size\n", "appears twice"),
        ("batchsize,steps,learning_rate,epsilon,delta,score_a\n", "is it `batchsize`"),
    ] {
        let error = TrainingTable::from_csv(text, "t.csv").unwrap_err().to_string();
        assert!(error.contains(part), "{text:?}: {error}");
    }
    for (text, part) in
        [("{\"a\":1}", "no column"), ("[1]", "not a JSON object"), ("{", "is not JSON")]
    {
        let error = TrainingTable::from_jsonl(text, "t.jsonl").unwrap_err().to_string();
        assert!(error.contains(part), "{text:?}: {error}");
    }
}

#[test]
fn jsonl_and_csv_are_the_same_table() {
    let json = r#"{"batch_size":256,"steps":10,"learning_rate":0.1,"epsilon":8,"delta":1e-5,"seed":1,"score_a":0.5}
{"batch_size":128,"steps":10,"learning_rate":0.1,"epsilon":8,"delta":1e-5,"seed":2,"score_a":null,"model":"x"}"#;
    let csv = "batch_size,delta,epsilon,learning_rate,model,score_a,seed,steps\n\
               256,1e-5,8,0.1,,0.5,1,10\n128,1e-5,8,0.1,\"x\",,2,10\n";
    let (a, b) =
        (TrainingTable::from_jsonl(json, "t").unwrap(), TrainingTable::from_csv(csv, "t").unwrap());
    assert_eq!(a.rows, b.rows);
    assert_eq!((a.ignored, b.ignored), (vec!["model".to_owned()], vec!["model".to_owned()]));
}

#[test]
fn profiles_agree_where_they_were_calibrated_and_nowhere_else() {
    let rows = "50,100,0.1,4,1e-5,0.1,1\n100,400,0.1,4,1e-5,0.2,1\n500,1000,0.1,4,1e-5,0.3,1\n\
                500,1000,0.2,4,1e-5,0.5,1\n";
    let all = groups(&table(rows), 0).unwrap();
    let found = tuning::profiles::profiles(&all, "a", 5000).unwrap();
    let group = &found.groups[0];
    // The learning rate is not part of the mechanism.
    assert_eq!((group.mechanisms.len(), group.pairs), (3, 3));
    for mechanism in &group.mechanisms {
        assert!(mechanism.epsilon <= 4.0 && mechanism.epsilon > 4.0 - 1e-6, "{mechanism:?}");
        assert!(mechanism.last_iterate < mechanism.epsilon);
        let calibrated = mechanism.profile[16];
        assert_eq!(calibrated.0, 4.0);
        assert!((calibrated.1 / 1e-5 - 1.0).abs() < 1e-6);
    }
    assert!(group.crossing_pairs >= 2 && group.largest_gap > 0.01, "{group:?}");
    assert!(group.largest_last_iterate > 1.2 * group.smallest_last_iterate);
    // Releasing all four runs costs more than one of them.
    assert!(found.search[0].epsilon.unwrap() > 6.0);
    assert!(tuning::profiles::profiles(&all, "a", 100).is_err());
}
