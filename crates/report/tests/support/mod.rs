//! A report made by hand: its numbers are invented, its shape is that of a full one.

use report::{
    Assumption, AssumptionMark, Change, Fact, Input, Origin, Provenance, Report, SearchGroup,
    SearchSection, Seed, Shown, Training,
};
use vocabulary::figure::{Axis, Bar, ColourScale, Figure, Heat, Orientation, Rung, Series};
use vocabulary::{
    Account, Adjacency, At, Audit, Claim, Design, Direction, Ends, Finding, Hashes, Interval,
    LensName, Measured, Method, PlanDocument, PowerAt, Quantity, Release, Run, Sampling, Secret,
    Side, Standing, Status, Unsupported, Verdict, figure,
};

pub(crate) fn claim(lens: LensName, quantity: Quantity, at: At, value: f64) -> Claim {
    let (standing, release) = match lens {
        LensName::Composition => (Standing::Proven, Release::AllIterates),
        LensName::GaussianClt => (Standing::Estimate, Release::AllIterates),
        _ => (Standing::Heuristic, Release::LastIterate),
    };
    let width = 1e-9 * value;
    Claim {
        source: lens.into(),
        release,
        secret: Secret::Membership,
        direction: Direction::Both,
        adjacency: Adjacency::AddRemove,
        quantity,
        at,
        standing,
        side: match (standing, quantity.is_leakage()) {
            (Standing::Estimate, _) => Side::Neither,
            (_, true) => Side::Upper,
            _ => Side::Lower,
        },
        interval: Interval::new(value - width, value, value + width),
        at_least: None,
        confidence: None,
        certificate: None,
        reason: None,
        assumptions: vec!["invented <for> a test & nothing else".into()],
    }
}

pub(crate) fn account() -> Account {
    let run = Run::builder()
        .phase(0.8, 0.02, 1000)
        .sampling(Sampling::Poisson)
        .adjacency(Adjacency::AddRemove)
        .dataset_size(50_000)
        .build()
        .unwrap();
    let mut claims = Vec::new();
    for (lens, scale) in
        [(LensName::Composition, 1.0), (LensName::LastIterate, 0.5), (LensName::GaussianClt, 0.9)]
    {
        let delta = At { delta: Some(1e-5), ..At::default() };
        claims.push(claim(lens, Quantity::Epsilon, delta, 6.418_732_1 * scale));
        claims.push(claim(lens, Quantity::Advantage, At::default(), 0.428_371_2 * scale));
        claims.push(claim(lens, Quantity::BayesSecurity, At::default(), 1.0 - 0.428_371_2 * scale));
        claims.push(claim(lens, Quantity::Mu, delta, 1.386_543_2 * scale));
        for (fpr, tpr) in [(0.001, 0.033_018_7), (0.01, 0.132_654_1)] {
            let at = At { fpr: Some(fpr), ..At::default() };
            claims.push(claim(lens, Quantity::Tpr, at, tpr * scale));
        }
    }
    Account {
        schema: Account::SCHEMA.into(),
        sign: vocabulary::Sign::of(&run, &claims),
        run,
        claims,
        unsupported: vec![Unsupported {
            lens: LensName::ClosedForm,
            reason: "it holds for other runs".into(),
            field: None,
        }],
        asides: Vec::new(),
        warnings: vec!["delta 1e-5 is near 1/n".into()],
    }
}

/// One figure of each kind that a report holds.
pub(crate) fn figures() -> Vec<Shown> {
    let curve = Figure::new("At most 3.31 % are recognised", "Up and left leaks <more> & more.")
        .subtitle("invented")
        .x(Axis::log("false positive rate").domain(1e-5, 1.0))
        .y(Axis::log("true positive rate").domain(1e-5, 1.0))
        .with(Series::band("95 % interval", [(1e-3, 0.008, 0.014), (1e-2, 0.06, 0.07)]))
        .with(Series::line("composition (proven)", [(1e-3, 0.033), (1e-2, 0.133)]));
    let ladder = Figure::new("The audit shows 31 %", "Arrows point to where the truth may be.")
        .x(Axis::linear("epsilon"))
        .y(Axis::category("", ["composition", "Clopper\u{2013}Pearson"]))
        .with(Series::ladder("claims", [Rung::at_most(0, 6.4)]))
        .with(Series::ladder("measured", [Rung::at_least(1, 2.047_123)]));
    let scores = Figure::new("Members score higher", "Apart is worse.")
        .x(Axis::linear("score"))
        .y(Axis::linear("share").percent())
        .with(Series::histogram("without", [(0.0, 1.0, 0.75), (1.0, 2.0, 0.25)]))
        .with(Series::histogram("with", [(0.0, 1.0, 0.25), (1.0, 2.0, 0.75)]));
    let bar = Bar { from: -0.32, to: 0.32, base: 6.4, value: 9.1 };
    let changes = Figure::new("Twice the steps leak more", "From the claim.")
        .x(Axis::linear("epsilon"))
        .y(Axis::category("", ["twice the steps"]))
        .with(Series::new(
            "",
            figure::Mark::Bars { orientation: Orientation::Horizontal, bars: vec![bar] },
        ));
    let map = Figure::new("Half would take noise 1.11", "Blue leaks less.")
        .x(Axis::log("noise multiplier"))
        .y(Axis::log("steps"))
        .with(Series::new(
            "epsilon",
            figure::Mark::Heat(Heat {
                x_edges: vec![0.5, 0.7, 1.0],
                y_edges: vec![500.0, 2000.0],
                values: vec![vec![Some(12.5), None]],
                colours: ColourScale::default(),
                contours: vec![5.0],
                print_values: false,
            }),
        ))
        .with(Series::pin("this run", 0.8, 1000.0));
    let shown = |id: &str, not_private: bool, figure: &Figure| Shown {
        id: id.into(),
        not_private,
        figure: figure.clone(),
    };
    vec![
        shown("tradeoff", true, &curve),
        shown("accuracy", false, &curve),
        shown("profile", false, &curve),
        shown("steps", false, &curve),
        shown("changes", false, &changes),
        shown("map", false, &map),
        shown("ladder", true, &ladder),
        shown("scores", true, &scores),
    ]
}

pub(crate) fn audit() -> Audit {
    let finding = |method: Method, epsilon: f64, valid_for: &str| {
        Finding::new(method, Adjacency::AddRemove, 1e-5, epsilon, 0.95, valid_for)
    };
    let union = Some("union".to_owned());
    let measured = |value, lower, upper| Measured { value, lower, upper };
    Audit {
        schema: Audit::SCHEMA.into(),
        design: Design::Runs,
        members: 100_000,
        nonmembers: 100_000,
        bounds: vec![
            Finding {
                threshold_rule: union.clone(),
                primary: true,
                ..finding(Method::ClopperPearson, 2.047_123_4, "any mechanism")
            },
            Finding {
                threshold_rule: union,
                ..finding(Method::Gdp, f64::INFINITY, "Gaussian <curves>")
                    .because(Some("infinite".into()))
            },
            finding(Method::Grid, 3.9, "a family"),
        ],
        not_valid: Vec::new(),
        auroc: measured(0.71, 0.708, 0.713),
        advantage: measured(0.305, 0.295, 0.316),
        tpr: vec![PowerAt { fpr: 0.001, measured: measured(0.0112, 0.0085, 0.0137) }],
        bootstrap: None,
        verdict: None,
        joint: false,
        warnings: vec!["a warning of the audit".into()],
        plan: PlanDocument {
            schema: "dosimeter.audit-plan/1".into(),
            design: Design::Runs,
            methods: vec![Method::ClopperPearson, Method::Gdp, Method::Grid],
            deltas: vec![1e-5],
            confidence: 0.95,
            threshold_rule: "union".into(),
            direction: "both".into(),
            primary: Method::ClopperPearson,
            joint: false,
            seed: 0,
            sample_rate: None,
            steps: None,
            min_count: 5,
            fprs: vec![0.001],
            bootstrap: 0,
            claim: None,
            claim_epsilon: None,
        },
        hashes: Hashes { scores: "sha256:00".into(), plan: "sha256:01".into() },
    }
}

pub(crate) fn full() -> Report {
    let account = account();
    let find = |lens: LensName| account.claims.iter().find(|claim| claim.source == lens).cloned();
    let verdict = Verdict {
        headline: "The claim stands: epsilon is at most 6.419 at delta 1e-5".into(),
        claimed_epsilon: Some(6.418_732_1),
        could_show: Some(10.2),
        claim: find(LensName::Composition),
        heuristic: find(LensName::LastIterate),
        measured: audit().primary().cloned(),
        ..Verdict::new(Status::Consistent, "An attack that could have refuted it did not.")
    };
    let provenance = Provenance {
        commands: vec!["dosimeter report run.toml 'my scores.csv' --delta 1e-5".into()],
        inputs: vec![Input {
            name: "run.toml".into(),
            role: "run".into(),
            sha256: "00".repeat(32),
        }],
        seeds: vec![Seed { purpose: "the game".into(), seed: 7 }],
        notes: vec!["a note with <angles> & more".into()],
    };
    let mut report = Report::new("0.0.0", 1e-5, verdict, provenance);
    let origin = Origin { sampling_stated: true, ..Origin::default() };
    report.assumptions = report::assumptions(&account.run, origin);
    report.assumptions.push(Assumption {
        text: "A test".into(),
        mark: AssumptionMark::Verified,
        note: "by hand".into(),
    });
    report.statement = report::statement(&account, 1e-5);
    report.attack_accuracy = [0.5, 0.1]
        .map(|prior| {
            let at = At { prior: Some(prior), ..At::default() };
            claim(LensName::Composition, Quantity::AttackAccuracy, at, 1.0 - 0.57 * prior)
        })
        .to_vec();
    report.audit = Some(audit());
    let change = |name: &str, value: Option<f64>, reason: Option<&str>| Change {
        name: name.into(),
        label: name.into(),
        note: "a note".into(),
        standing: value.map(|_| Standing::Proven),
        side: Side::Upper,
        epsilon: value.map(|value| Ends::from(Interval::exact(value))),
        delta: 1e-5,
        factor: value.filter(|value| value.is_finite()).map(|value| value / 6.418_732_1),
        reason: reason.map(String::from),
    };
    report.changes = vec![
        change("twice the steps", Some(9.143_21), None),
        change("everything at once", Some(f64::INFINITY), None),
        change("shuffled batches", None, Some("no lens covers | that <run>")),
    ];
    report.training = Some(Training {
        facts: vec![Fact::words("noise", "ChaCha20 <keyed> & counted")],
        health: vec![Fact::number("gradients clipped", 0.973, "97.3 %").note("almost all")],
    });
    report.search = Some(SearchSection {
        score: "score_<acr>".into(),
        groups: vec![SearchGroup {
            epsilon: 4.0,
            delta: 1e-5,
            configurations: 12,
            runs: 48,
            smallest: 0.51,
            largest: 1.84,
            between: Some(0.31),
            seed_noise: Some(0.08),
            p_value: Some(1.3e-6),
            least: "batch 4096, steps 250".into(),
        }],
        statement: "the epsilon of the chosen run is not the epsilon of the search".into(),
    });
    report.figures = figures();
    report.left_out = vec!["something <else>".into()];
    report.run = Some(account.run.clone());
    report.account = Some(account);
    report
}
