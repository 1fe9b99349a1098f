//! How many files a change touches: what `CONTRIBUTING.md` promises, held against the code. Everything that is there
//! already stands for the next one of its kind: the files that name it are those that the next one will touch.

mod source;

use source::{code, named, root, sources};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use vocabulary::{LensName, Method};

/// Crates and packages that a user has. Papers, probes and fuzzing use what is there.
const HOUSE: &[&str] = &[
    "accounting",
    "answers",
    "attacks",
    "audit",
    "cli",
    "experiments",
    "figures",
    "formats",
    "games",
    "language",
    "numerics",
    "prover",
    "python",
    "random",
    "report",
    "server",
    "training",
    "tuning",
    "vocabulary",
];

/// Files of the house, by their paths in it; what is generated is not written by hand.
fn house(ending: &str) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for name in HOUSE {
        sources(&root().join("crates").join(name).join("src"), ending, &mut files);
    }
    sources(&root().join("python/dosimeter"), ending, &mut files);
    sources(&root().join("web/src"), ending, &mut files);
    let generated = ["python/dosimeter/_names.py", "web/src/names.ts"];
    let shown = |path: &Path| path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
    files
        .iter()
        .map(|path| (shown(path), std::fs::read_to_string(path).unwrap()))
        .filter(|(path, _)| !generated.contains(&path.as_str()) && !path.ends_with("tests.rs"))
        .collect()
}

/// The files that name a variant of a set.
fn naming(files: &[(String, String)], set: &str, variant: &str) -> BTreeSet<String> {
    let names =
        |text: &str| code(text).iter().any(|line| named(line, set).any(|name| name == variant));
    files.iter().filter(|(_, text)| names(text)).map(|(path, _)| path.clone()).collect()
}

/// A lens: its name and words, its file, a line in the table; and where its ends are proven again, the prover's model.
#[test]
fn a_lens_touches_four_files() {
    let rust = house("rs");
    let front: Vec<_> = ["py", "ts", "tsx"].into_iter().flat_map(house).collect();
    assert!(rust.len() > 500 && front.len() > 60, "{} and {} files", rust.len(), front.len());
    for lens in LensName::ALL {
        let mut touched = naming(&rust, "LensName", &format!("{lens:?}"));
        let own = touched.iter().filter(|path| path.contains("accounting/src/lenses/")).count();
        assert!(own >= 1, "{lens} has no file");
        touched.insert("crates/vocabulary/src/lens.rs".into());
        touched.insert("crates/accounting/src/lenses/mod.rs".into());
        let marks = [format!("\"{lens}\""), format!("'{lens}'")];
        for (path, text) in &front {
            // Other sets have members of the same names: what is released, and families of audits.
            let is_lens = |line: &&str| {
                let line = line.trim_start();
                marks.iter().any(|mark| line.contains(mark))
                    && !line.starts_with(['>', '#', '`', '(', '['])
                    && !line.starts_with("...")
                    && !line.contains("observe: ")
            };
            if text.lines().any(|line| is_lens(&line)) {
                touched.insert(path.clone());
            }
        }
        assert!(touched.len() <= 4, "{lens}: {touched:#?}");
    }
}

/// A method of audits: its name and words, its file, the line that declares it, and the call.
#[test]
fn an_estimator_touches_four_files() {
    let rust = house("rs");
    for method in Method::ALL {
        let mut touched = naming(&rust, "Method", &format!("{method:?}"));
        touched.insert("crates/vocabulary/src/method.rs".into());
        // What is not named: its own file, and the line that declares it.
        assert!(touched.len() <= 2, "{method}: {touched:#?}");
    }
}

/// Keys of a question that a front end writes again: where, and why.
const WRITTEN_AGAIN: &[(&str, &str, &str)] = &[
    ("cli/src/commands/compare.rs", "delta", "one flag of three questions"),
    ("python/src/ask.rs", "files", "the scores of an audit, not the files of a report"),
];

/// The keys of questions that are flags, each with its question.
fn keys() -> BTreeSet<(String, String)> {
    let mut files = Vec::new();
    sources(&root().join("crates/answers/src"), "rs", &mut files);
    let mut found = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        let (mut question, mut flag) = (None, false);
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("pub struct ") {
                let name = rest.split(' ').next().unwrap();
                question = name.ends_with("Question").then(|| name.to_owned());
            } else if line.starts_with('}') {
                question = None;
            } else if line.starts_with("    #[arg(") {
                flag = !line.contains("#[arg(skip)");
            } else if let Some(rest) = line.strip_prefix("    pub ") {
                let key = rest.split(':').next().unwrap();
                if let (Some(question), true) = (&question, flag) {
                    found.insert((key.to_owned(), question.clone()));
                }
                flag = false;
            }
        }
    }
    found
}

/// A key of a question: its field in `answers`, which is flag, JSON key and help, and the keyword in Python. No front
/// end that asks the question declares or copies the key.
#[test]
fn a_key_of_a_question_touches_two_files() {
    let keys = keys();
    assert!(keys.len() > 120, "only {} keys were found", keys.len());
    let mut used = vec![false; WRITTEN_AGAIN.len()];
    let fronts = ["crates/cli/", "crates/server/", "crates/python/"];
    for (path, text) in house("rs") {
        if !fronts.iter().any(|front| path.starts_with(front)) {
            continue;
        }
        for line in code(&text) {
            let line =
                line.trim_start().trim_start_matches("pub ").trim_start_matches("pub(crate) ");
            let Some((key, _)) = line.split_once(": ") else { continue };
            let mut questions =
                keys.iter().filter(|(own, _)| own == key).map(|(_, question)| question);
            if !questions.any(|question| text.contains(question.as_str())) {
                continue;
            }
            match WRITTEN_AGAIN.iter().position(|(at, own, _)| path.ends_with(at) && *own == key) {
                Some(one) => used[one] = true,
                None => panic!("{path} writes the key `{key}` again: {line}"),
            }
        }
    }
    assert!(used.iter().all(|used| *used), "an exception is not needed any more: {used:?}");
}

/// Files that name layers because they do several of them at once, faster. A new layer works without them.
const SHORT_CUTS: &[(&str, &str)] = &[
    ("cpu/executor.rs", "an addition of two buffers is no layer"),
    ("cpu/executor/gram.rs", "linear layers alone"),
    ("cpu/executor/load.rs", "a first linear layer reads the examples where they are"),
    ("cuda/plan.rs", "operations that are done together"),
    ("model/build.rs", "the branches of a residual block are added"),
    ("cuda/workspace.rs", "the net with one hidden layer, whose end is one kernel"),
    ("cuda/weights.rs", "standardised and packed weights of convolutions"),
];

/// A layer: `model/layers.rs` (data, cost, how it is appended), a file and a line in the table for the CPU and for
/// devices, and its kernels.
#[test]
fn a_layer_touches_six_files() {
    let mut files = house("rs");
    files.retain(|(path, _)| path.starts_with("crates/training/src/"));
    let all =
        ["Linear", "Relu", "Tanh", "Convolution", "GroupNorm", "MaxPool", "AveragePool", "Add"];
    let mut used = vec![false; SHORT_CUTS.len()];
    for kind in all {
        let mut touched = naming(&files, "Kind", kind);
        assert!(touched.contains("crates/training/src/cpu/mod.rs"), "{kind}");
        assert!(touched.contains("crates/training/src/cuda/mod.rs"), "{kind}");
        touched.insert("crates/training/src/model/layers.rs".into());
        touched.retain(|path| {
            let short_cut = SHORT_CUTS.iter().position(|(at, _)| path.ends_with(at));
            if let Some(one) = short_cut {
                used[one] = true;
            }
            short_cut.is_none()
        });
        // Its own file for devices may name it; that for the CPU and the kernels do not.
        let own =
            touched.iter().filter(|path| path.contains("/cuda/") && !path.ends_with("mod.rs"));
        let unnamed = 3 - own.count().min(1);
        assert!(touched.len() + unnamed <= 6, "{kind}: {touched:#?}");
    }
    assert!(used.iter().all(|used| *used), "an exception is not needed any more: {used:?}");
}

/// Every pair is in a contract suite: by its name, or in the list of those that a scheme makes.
#[test]
fn every_pair_is_in_a_contract_suite() {
    let suite = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let suites =
        suite("crates/accounting/tests/contract.rs") + &suite("crates/games/tests/contract.rs");
    let mut pairs = 0;
    for (path, text) in house("rs") {
        if path.starts_with("crates/prover/") {
            continue;
        }
        for line in code(&text).iter().filter(|line| line.starts_with("impl")) {
            let Some((_, rest)) = line.split_once(" Pair for ") else { continue };
            let name = rest.split(['<', ' ']).next().unwrap();
            let named = suites.split(|c: char| !c.is_alphanumeric()).any(|word| word == name);
            assert!(named, "{path}: the pair {name} is in no contract suite");
            pairs += 1;
        }
    }
    assert!(pairs > 12, "only {pairs} pairs were found");
}

/// Public types of different crates that share a name. The list may only become shorter.
const SHARED: &[&str] = &[
    "Accuracy",
    "Attack",
    "BatchSizes",
    "Binomial",
    "CanaryKind",
    "Cell",
    "Column",
    "Coordinate",
    "Curve",
    "Ends",
    "Errors",
    "Format",
    "Joint",
    "Kind",
    "Linear",
    "Matrix",
    "Measurement",
    "Obstacle",
    "Options",
    "Plan",
    "Played",
    "Precision",
    "Product",
    "Provenance",
    "Questions",
    "Recipe",
    "Record",
    "Rule",
    "Sampling",
    "SearchCost",
    "Settings",
    "Side",
    "Spread",
    "Start",
    "Target",
    "Trained",
    "Trainer",
    "Training",
    "Trial",
    "Value",
    "View",
];

/// One word for one thing: a public type has a name of its own. `prover` has its own words for the mathematics that it
/// does again; its crate shares nothing with the others.
#[test]
fn public_types_have_names_of_their_own() {
    let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in house("rs") {
        if path.starts_with("crates/prover/") {
            continue;
        }
        for line in code(&text) {
            let kinds = ["pub struct ", "pub enum ", "pub trait ", "pub type "];
            let Some(rest) = kinds.iter().find_map(|kind| line.strip_prefix(kind)) else {
                continue;
            };
            let name = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap();
            places.entry(name.to_owned()).or_default().insert(path.clone());
        }
    }
    assert!(places.len() > 500, "only {} names were found", places.len());
    let shared: Vec<&String> =
        places.iter().filter(|(_, files)| files.len() > 1).map(|(name, _)| name).collect();
    for name in &shared {
        let files = &places[*name];
        assert!(SHARED.contains(&name.as_str()), "{name} names several things: {files:#?}");
    }
    for name in SHARED {
        assert!(shared.iter().any(|own| own == name), "{name} is not shared any more");
    }
}
