//! A front end turns its input into a question and shows the answer; it decides nothing. So it
//! does not compute with privacy numbers, does not compare lenses, and has no words of its own
//! about standings.

mod source;

use source::{code, named, root, sources};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The front ends in Rust, whole.
const FRONT_ENDS: &[&str] = &["crates/cli/src", "crates/server/src", "crates/python/src"];

/// What stands in none of them, and why.
const FORBIDDEN: &[(&str, &str)] = &[
    ("accounting::account", "numbers come from `answers`"),
    ("accounting::calibrate", "numbers come from `answers`"),
    ("accounting::curve::curve", "numbers come from `answers`"),
    ("calibrate(&", "numbers come from `answers`"),
    ("accuracy_bound", "numbers come from `answers`"),
    ("analyse(", "scores are audited by `answers`"),
    ("Scores::new", "scores are audited by `answers`"),
    ("Lens::named", "a lens is asked by `answers`"),
    ("== LensName::", "lenses are not compared"),
    ("LensName::Composition", "no lens has a special case"),
    ("interval.upper", "ends are quoted by `shown`"),
    ("interval.lower", "ends are quoted by `shown`"),
    ("Standing::", "words about standings are in `vocabulary`"),
    (".exp()", "no arithmetic on privacy numbers"),
    (".ln()", "no arithmetic on privacy numbers"),
    (".powf(", "no arithmetic on privacy numbers"),
    (".powi(", "no arithmetic on privacy numbers"),
    (".sqrt()", "no arithmetic on privacy numbers"),
    (".floor()", "no arithmetic on privacy numbers"),
    ("is_leakage()", "the side of a quantity is its own"),
    ("prover::certify", "ends are proven again by `answers`"),
    ("games::Attack", "games are played by `answers`"),
    ("attacks::", "games are played by `answers`"),
    ("carry_out(", "games are played by `answers`"),
    ("Grid::new", "grids are trained by `answers`"),
    ("papers::", "papers are computed again by `answers`"),
    ("training::data", "data sets are looked at by `answers`"),
    ("with_precision(", "devices are opened by `answers`"),
];

/// What is there all the same: a file, a pattern, and why it decides nothing.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("cli/src/print/claims.rs", "interval.lower", "a column of CSV, every digit as it is"),
    ("cli/src/print/claims.rs", "interval.upper", "a column of CSV, every digit as it is"),
    ("cli/src/commands/train.rs", ".floor()", "the digits of a gradient norm, which is no claim"),
];

/// Words about standings; in a text of a front end they would be a sentence of its own.
const STANDINGS: &[&str] = &["proven", "heuristic", "measured", "certified", "guarantee"];

/// Texts with such a word that are about something else: a file, what its line has, and what it is.
const NOT_STANDINGS: &[(&str, &str, &str)] = &[
    ("cli/src/commands/tune/human.rs", "the heuristics", "rules of thumb for a grid of trainings"),
    ("cli/src/commands/prove.rs", "claims proven in ball arithmetic", "what `prove` has just done"),
    ("cli/src/commands/prove.rs", "a certified end is wrong", "the head of a report of a bug"),
    ("cli/src/commands/compare.rs", "--heuristic-epsilon belongs", "the name of a flag"),
    ("cli/src/commands/compare.rs", "\"heuristic", "names of columns of CSV, as in the document"),
];

/// The texts in quotation marks on a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('"').skip(1).step_by(2)
}

#[test]
fn front_ends_decide_nothing() {
    let mut files = Vec::new();
    for place in FRONT_ENDS {
        sources(&root().join(place), "rs", &mut files);
    }
    assert!(files.len() > 60, "only {} files were found", files.len());
    let (mut breaches, mut used) = (Vec::new(), vec![false; ALLOWED.len() + NOT_STANDINGS.len()]);
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        let lines = code(&text);
        for (pattern, why) in FORBIDDEN {
            let found = lines.iter().any(|line| line.contains(pattern));
            let allowed =
                ALLOWED.iter().position(|(at, what, _)| file.ends_with(at) && what == pattern);
            match allowed {
                Some(one) => used[one] |= found,
                None if found => {
                    breaches.push(format!("{}: `{pattern}` ({why})", file.display()));
                }
                None => {}
            }
        }
        for line in lines {
            let about = |text: &str| STANDINGS.iter().any(|word| text.contains(word));
            if !quoted(line).any(about) {
                continue;
            }
            let other = NOT_STANDINGS
                .iter()
                .position(|(at, what, _)| file.ends_with(at) && line.contains(what));
            match other {
                Some(one) => used[ALLOWED.len() + one] = true,
                None => breaches.push(format!("{}: {}", file.display(), line.trim())),
            }
        }
    }
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
    assert!(used.iter().all(|used| *used), "an exception is not needed any more: {used:?}");
}

/// Whoever shows numbers: the front ends, and the report.
const PRINTERS: &[&str] =
    &["crates/cli/src", "crates/server/src", "crates/python/src", "crates/report/src"];

/// An end is made by whoever has bounded a number, and rounds itself. A printer that makes one, or names a side, could
/// show an upper end as a lower one.
#[test]
fn printers_choose_no_ends() {
    let mut files = Vec::new();
    for place in PRINTERS {
        sources(&root().join(place), "rs", &mut files);
    }
    assert!(files.len() > 90, "only {} files were found", files.len());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for line in code(&text) {
            for pattern in ["Side::", "AtMost::new", "AtLeast::new", "AtMost(", "AtLeast("] {
                assert!(!line.contains(pattern), "{}: {}", file.display(), line.trim());
            }
            // Ends that are made from numbers at hand would be the same by another way.
            for pattern in ["Interval::", "Interval {", "Quoted::from("] {
                assert!(!line.contains(pattern), "{}: {}", file.display(), line.trim());
            }
        }
    }
}

/// What is particular to a lens stands in its file. Whoever asks lenses asks for a role (`SIGNED`, `BESIDE`) or for
/// all of them, and none by its name.
#[test]
fn no_lens_has_a_special_case() {
    let mut files = Vec::new();
    for name in [
        "accounting",
        "answers",
        "report",
        "audit",
        "tuning",
        "attacks",
        "language",
        "training",
        "games",
        "server",
        "cli",
        "python",
    ] {
        sources(&root().join("crates").join(name).join("src"), "rs", &mut files);
    }
    assert!(files.len() > 400, "only {} files were found", files.len());
    let lenses = root().join("crates/accounting/src/lenses");
    for file in files.iter().filter(|file| !file.starts_with(&lenses)) {
        let text = std::fs::read_to_string(file).unwrap();
        for line in code(&text) {
            assert_eq!(named(line, "LensName").next(), None, "{}: {line}", file.display());
        }
    }
}

/// Files that name methods of audits, beside `vocabulary/src/method.rs`: where they are called, and what is about one of
/// them alone.
const NAME_METHODS: &[(&str, &str)] = &[
    ("audit/src/analysis/many_runs.rs", "calls them"),
    ("audit/src/analysis/one_run.rs", "calls them"),
    ("audit/src/sequential.rs", "its own"),
];

/// A method of audits is a file in `audit`, its name and what it is in `vocabulary`, and a call. Whoever shows or plans
/// it asks what it is and not which.
#[test]
fn methods_are_named_where_they_are_called() {
    let mut files = Vec::new();
    for name in ["vocabulary", "audit", "answers", "report", "server", "cli", "python", "fuzzing"] {
        sources(&root().join("crates").join(name).join("src"), "rs", &mut files);
    }
    assert!(files.len() > 200, "only {} files were found", files.len());
    let mut used = vec![false; NAME_METHODS.len()];
    for file in files.iter().filter(|file| !file.ends_with("vocabulary/src/method.rs")) {
        let text = std::fs::read_to_string(file).unwrap();
        // The server knows methods of requests; the laws that are fuzzed ask for some by name.
        if text.contains("axum")
            || text.contains("http::")
            || file.ends_with("fuzzing/src/scores.rs")
        {
            continue;
        }
        for line in code(&text) {
            let Some(name) = named(line, "Method").next() else { continue };
            match NAME_METHODS.iter().position(|(at, _)| file.ends_with(at)) {
                Some(one) => used[one] = true,
                None => panic!("{}: Method::{name}: {}", file.display(), line.trim()),
            }
        }
    }
    assert!(used.iter().all(|used| *used), "an exception is not needed any more: {used:?}");
}

/// Files of the package that compute: with what a training really did, or with what another library
/// states. None of them computes a number of ours.
const COMPUTING: &[(&str, &str)] = &[
    ("_evidence.py", "tests whether a training did what it says"),
    ("_directions.py", "directions of canaries"),
    ("_torch_gradients.py", "gradients and scores of canaries"),
    ("_torch_recorder.py", "gradients of a training"),
    ("recording.py", "the noise that a training really had"),
    ("jax.py", "directions and scores of canaries"),
    ("opacus.py", "whether the batches that were seen can be those that are stated"),
];

/// The lines of a Python file that are code: neither comments nor the texts of functions with their examples.
fn python_code(text: &str) -> Vec<&str> {
    let mut inside = false;
    let code = |line: &&str| {
        let marks = line.matches("\"\"\"").count();
        let was = inside;
        inside ^= marks % 2 == 1;
        !was && marks == 0 && !line.trim_start().starts_with('#')
    };
    text.lines().filter(code).collect()
}

/// One function rounds what a claim shows, and one crate computes it; the package shows its text.
#[test]
fn python_decides_nothing() {
    let mut files = Vec::new();
    sources(&root().join("python/dosimeter"), "py", &mut files);
    assert!(files.len() > 40, "only {} files were found", files.len());
    let mut breaches = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let computes = COMPUTING.iter().any(|(name, _)| file.ends_with(name));
        let mut forbidden = vec![
            "decimal",
            "ROUND_",
            "log10",
            "lens == \"",
            "standing == \"",
            ".lens in (",
            ".adjacency == \"",
        ];
        if !computes {
            forbidden.extend(["math.exp", "math.log", "math.sqrt", "numpy.exp", "numpy.log"]);
        }
        // Another library's events are chosen by the names of neighbours.
        if file.ends_with("dp_accounting.py") {
            forbidden.retain(|pattern| !pattern.contains("adjacency"));
        }
        let code = python_code(&text);
        for line in &code {
            let about =
                |text: &str| text.contains(' ') && STANDINGS.iter().any(|word| text.contains(word));
            // What a recorder saw of a training's noise is no claim.
            let recorded = file.ends_with("recording.py") && line.contains("measured in");
            if quoted(line).any(about) && !recorded {
                breaches.push(format!("{}: {}", file.display(), line.trim()));
            }
        }
        for pattern in forbidden {
            if code.iter().any(|line| line.contains(pattern)) {
                breaches.push(format!("{}: `{pattern}`", file.display()));
            }
        }
    }
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}

/// What stands in no file of the page, with the files that have it all the same and why they decide nothing.
const NOT_ON_THE_PAGE: &[(&str, &[(&str, &str)])] = &[
    (".adjacency === \"", &[]),
    ("standing === \"", &[]),
    ("lens === \"", &[]),
    (
        "quantity === \"",
        &[
            ("panel/target.tsx", "which keys a target has"),
            ("views/panel.tsx", "a target that is an epsilon is drawn on the map of epsilon"),
            ("panel/charts.tsx", "a target that is an epsilon is drawn in the chart of epsilon"),
        ],
    ),
    ("Math.exp(", &[("panel/controls.tsx", "a slider is logarithmic")]),
    (
        "Math.log(",
        &[
            ("panel/controls.tsx", "a slider is logarithmic"),
            ("charts/contours.ts", "lines of equal epsilon are drawn in the logarithm"),
            ("charts/map.tsx", "an axis is logarithmic"),
        ],
    ),
    ("Math.pow(", &[]),
    (
        "rounded(",
        &[
            ("numbers.ts", "its definition, and readings off a drawn curve"),
            ("charts/plot.tsx", "readings off a drawn curve"),
            ("charts/map.tsx", "readings off the map"),
            ("views/audit.tsx", "AUROC and power of scores, which are no claims"),
        ],
    ),
    (
        "percent(",
        &[("numbers.ts", "its definition"), ("views/audit.tsx", "a confidence, which is an input")],
    ),
];

/// The page shows what a document says: it holds no theorem, rounds no claim, and says nothing of its own about
/// standings.
#[test]
fn the_page_decides_nothing() {
    let page = root().join("web/src");
    let mut files = Vec::new();
    for ending in ["ts", "tsx"] {
        sources(&page, ending, &mut files);
    }
    files.retain(|file| !file.ends_with("names.ts"));
    assert!(files.len() > 25, "only {} files were found", files.len());
    let mut used = BTreeSet::new();
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        let lines: Vec<&str> =
            text.lines().filter(|line| !line.trim_start().starts_with(['/', '*'])).collect();
        for (pattern, exceptions) in NOT_ON_THE_PAGE {
            if !lines.iter().any(|line| line.contains(pattern)) {
                continue;
            }
            let known = exceptions.iter().find(|(at, _)| file.ends_with(at));
            let (at, _) = known.unwrap_or_else(|| panic!("{}: `{pattern}`", file.display()));
            used.insert((*pattern, *at));
        }
        for line in lines {
            // A word alone is a name, as of a colour; with others it is a sentence. Text between tags stands on lines
            // that assign nothing.
            let sentence =
                |text: &str| text.contains(' ') && STANDINGS.iter().any(|word| text.contains(word));
            let mut texts: Vec<&str> = quoted(line).collect();
            texts.extend(line.split('`').skip(1).step_by(2));
            if !line.contains(['=', ';', '(', ':']) {
                texts.extend(line.split(['>', '<', '{', '}']));
            }
            assert!(!texts.into_iter().any(sentence), "{}: {line}", file.display());
        }
    }
    for (pattern, exceptions) in NOT_ON_THE_PAGE {
        for (at, _) in *exceptions {
            assert!(used.contains(&(*pattern, *at)), "{at} does not have `{pattern}` any more");
        }
    }
}

/// A way to draw batches stands in six files at most, tests, docs and generated files apart: `CONTRIBUTING.md` has
/// their list. Counted for the newest way, which has no key of its own.
#[test]
fn a_way_to_draw_batches_is_known_to_six_files() {
    let mut files = Vec::new();
    for part in std::fs::read_dir(root().join("crates")).unwrap() {
        sources(&part.unwrap().path().join("src"), "rs", &mut files);
    }
    for (folder, ending) in [("xtask/src", "rs"), ("python/dosimeter", "py")] {
        sources(&root().join(folder), ending, &mut files);
    }
    for ending in ["ts", "tsx"] {
        sources(&root().join("web/src"), ending, &mut files);
    }
    let names = ["Sampling::InOrder", "in_order::SCHEME", "\"in-order\"", "``in-order``"];
    let knows = |file: &PathBuf| {
        let text = std::fs::read_to_string(file).unwrap();
        let generated = text.lines().take(5).any(|line| line.contains("cargo xtask generate"));
        !generated && names.iter().any(|name| text.contains(name))
    };
    files.retain(knows);
    assert!((4..=6).contains(&files.len()), "{files:#?}");
}
