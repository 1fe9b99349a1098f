//! LiRA and RMIA against their formulas, on models whose signals are known, and against an independent
//! program (`golden/membership.py`), which was compared with Privacy Meter; records at risk under multiplicity.

use crate::common;

use audit::membership::{Membership, Signals, Variance, at_risk};
use audit::quality;
use common::Rng;

/// Each model is trained on half of the records; a member's logit is higher by the record's gain.
fn matrix(models: usize, records: usize, gain: impl Fn(usize) -> f64, rng: &mut Rng) -> Signals {
    let hardness: Vec<f64> = (0..records).map(|_| 3.0 * rng.normal()).collect();
    let (mut logits, mut inside) = (Vec::new(), Vec::new());
    for _ in 0..models {
        for (record, hardness) in hardness.iter().enumerate() {
            let member = rng.bernoulli(0.5);
            inside.push(member);
            logits.push(hardness + rng.normal() + if member { gain(record) } else { 0.0 });
        }
    }
    Signals::from_logits(models, records, logits, inside).unwrap()
}

#[test]
fn references_beat_a_global_threshold() {
    let signals = matrix(33, 2_000, |_| 2.0, &mut Rng::new(1));
    let area = |attack| quality::auroc(&signals.audit_scores(0, attack).unwrap(), 0.95).value;
    // The best attack on N(2, 1) against N(0, 1) has 0.921; hardness of spread 3 hides it from a
    // threshold on the signal itself, which has 0.67.
    for attack in [
        Membership::LiraOnline(Variance::Fixed),
        Membership::LiraOnline(Variance::PerRecord),
        Membership::LiraOffline(Variance::Fixed),
        Membership::LiraOffline(Variance::PerRecord),
    ] {
        let area = area(attack);
        assert!((0.88..0.94).contains(&area), "{attack:?}: {area}");
    }
    for attack in
        [Membership::RmiaOnline { gamma: 1.0 }, Membership::RmiaOffline { gamma: 1.0, a: 0.3 }]
    {
        let area = area(attack);
        assert!((0.75..0.94).contains(&area), "{attack:?}: {area}");
    }
}

/// The target's own membership is not read.
#[test]
fn scores_do_not_depend_on_the_targets_mask() {
    let (models, records) = (7, 40);
    let mut rng = Rng::new(2);
    let logits: Vec<f64> = (0..models * records).map(|_| rng.normal()).collect();
    let mut inside: Vec<bool> =
        (0..models * records).map(|place| (place / records + place) % 2 == 0).collect();
    let scores = |inside: &[bool], attack| {
        Signals::from_logits(models, records, logits.clone(), inside.to_vec())
            .unwrap()
            .scores(3, attack)
            .unwrap()
    };
    let attacks = [
        Membership::LiraOnline(Variance::PerRecord),
        Membership::LiraOffline(Variance::Fixed),
        Membership::RmiaOnline { gamma: 2.0 },
        Membership::RmiaOffline { gamma: 1.0, a: 0.5 },
    ];
    let before: Vec<Vec<f64>> = attacks.iter().map(|attack| scores(&inside, *attack)).collect();
    for entry in &mut inside[3 * records..4 * records] {
        *entry = !*entry;
    }
    for (attack, before) in attacks.iter().zip(before) {
        assert_eq!(before, scores(&inside, *attack), "{attack:?}");
    }
}

/// By hand: three records, one reference of each kind.
#[test]
fn formulas_by_hand() {
    let (p, losses): (Vec<f64>, Vec<f64>) =
        [0.9_f64, 0.5, 0.2, 0.8, 0.6, 0.4, 0.5, 0.3, 0.7].iter().map(|p| (*p, -p.ln())).unzip();
    // Model 1 was trained on all records, model 2 on none; model 0 is the target.
    let inside = vec![true, false, true, true, true, true, false, false, false];
    let signals = Signals::from_losses(3, 3, &losses, inside).unwrap();
    let ratios: Vec<f64> = (0..3).map(|x| p[x] / (0.5 * (p[3 + x] + p[6 + x]))).collect();
    for gamma in [0.5, 1.0, 1.2] {
        let expected: Vec<f64> = (0..3)
            .map(|x| {
                let beaten = (0..3).filter(|&z| z != x && ratios[x] >= gamma * ratios[z]);
                beaten.count() as f64 / 2.0
            })
            .collect();
        assert_eq!(signals.scores(0, Membership::RmiaOnline { gamma }).unwrap(), expected);
    }
    let logit = |p: f64| (p / (1.0 - p)).ln();
    let offline = signals.scores(0, Membership::LiraOffline(Variance::Fixed)).unwrap();
    // One reference leaves no freedom for a variance: the order is that of the distances.
    let distance: Vec<f64> = (0..3).map(|x| logit(p[x]) - logit(p[6 + x])).collect();
    for (a, b) in [(0, 1), (1, 2), (0, 2)] {
        assert_eq!(offline[a] > offline[b], distance[a] > distance[b]);
    }
    assert!(signals.scores(0, Membership::LiraOnline(Variance::PerRecord)).is_err());
    let refused = |target, attack| signals.scores(target, attack).unwrap_err().to_string();
    // Models are counted from 0 in questions and errors.
    let none = refused(3, Membership::RmiaOnline { gamma: 1.0 });
    assert!(none.contains("no model 3") && none.contains("the last of 3 is 2"), "{none}");
    for a in [50.0, 1.01, -0.1, f64::NAN] {
        let outside = refused(0, Membership::RmiaOffline { gamma: 1.0, a });
        assert!(outside.contains("[0, 1]") && outside.contains(&a.to_string()), "{outside}");
    }
}

/// Against the program of `golden/membership.py`: every attack, every record, to rounding.
#[test]
fn formulas_by_an_independent_program() {
    let text = include_str!("golden/membership.json");
    let golden: serde_json::Value = serde_json::from_str(text).unwrap();
    let numbers = |value: &serde_json::Value| -> Vec<f64> {
        value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
    };
    let matrix = |name: &str| -> Vec<Vec<f64>> {
        golden[name].as_array().unwrap().iter().map(&numbers).collect()
    };
    let (losses, members) = (matrix("losses"), matrix("members"));
    let (models, records) = (losses.len(), losses[0].len());
    let inside = members.concat().iter().map(|member| *member == 1.0).collect();
    let signals = Signals::from_losses(models, records, &losses.concat(), inside).unwrap();
    for (name, attack) in [
        ("lira_online", Membership::LiraOnline(Variance::PerRecord)),
        ("lira_online_fixed", Membership::LiraOnline(Variance::Fixed)),
        ("lira_offline", Membership::LiraOffline(Variance::PerRecord)),
        ("lira_offline_fixed", Membership::LiraOffline(Variance::Fixed)),
        ("rmia_online", Membership::RmiaOnline { gamma: 1.0 }),
        ("rmia_online_2", Membership::RmiaOnline { gamma: 2.0 }),
        ("rmia_offline", Membership::RmiaOffline { gamma: 1.0, a: 0.3 }),
        ("rmia_offline_2", Membership::RmiaOffline { gamma: 2.0, a: 0.7 }),
    ] {
        let (ours, theirs) = (signals.scores(0, attack).unwrap(), numbers(&golden[name]));
        assert_eq!(ours.len(), theirs.len());
        for (record, (a, b)) in ours.iter().zip(&theirs).enumerate() {
            // Some hundred roundings of numbers below a hundred.
            assert!((a - b).abs() <= 1e-11 * (1.0 + b.abs()), "{name}, record {record}: {a} {b}");
        }
    }
}

/// Without leakage no record of the table may be shown at risk, in 95 % of matrices; a record that leaks is
/// first.
#[test]
fn the_table_of_records_holds_together() {
    let trials = 60;
    let shown = (0..trials).filter(|trial| {
        let signals = matrix(64, 30, |_| 0.0, &mut Rng::new(100 + trial));
        let table = at_risk(&signals, 0.0, 0.95).unwrap();
        table.iter().any(|row| row.epsilon_lower > 0.0 || row.advantage.lower > 0.0)
    });
    let share = shown.count() as f64 / trials as f64;
    assert!(share <= common::allowed(trials as usize), "{share}");

    let signals = matrix(200, 50, |record| if record == 17 { 4.0 } else { 0.1 }, &mut Rng::new(7));
    let table = at_risk(&signals, 0.0, 0.95).unwrap();
    assert_eq!(table[0].record, 17);
    assert!(table[0].epsilon_lower > 1.0 && table[0].advantage.lower > 0.3, "{:?}", table[0]);
    assert_eq!(table[1].epsilon_lower, 0.0);
}
