//! A front end turns its input into a question and shows the answer; it decides nothing. So it
//! does not compute with privacy numbers, does not compare lenses, and has no words of its own
//! about standings.

use std::path::{Path, PathBuf};

/// Folders and files of front ends. What plays and trains makes numbers of its own and is not among
/// them.
const FRONT_ENDS: &[&str] = &[
    "crates/server/src",
    "crates/python/src",
    "crates/cli/src/args",
    "crates/cli/src/commands/account.rs",
    "crates/cli/src/commands/audit.rs",
    "crates/cli/src/commands/calibrate.rs",
    "crates/cli/src/commands/check.rs",
    "crates/cli/src/commands/compare.rs",
    "crates/cli/src/commands/curve.rs",
    "crates/cli/src/commands/memorize.rs",
    "crates/cli/src/commands/plan.rs",
    "crates/cli/src/commands/report.rs",
    "crates/cli/src/commands/report_format.rs",
    "crates/cli/src/commands/status.rs",
    "crates/cli/src/commands/translate.rs",
    "crates/cli/src/commands/tune/csv.rs",
    "crates/cli/src/commands/tune/human.rs",
    "crates/cli/src/commands/tune/mod.rs",
];

/// What stands in none of them, and why.
const FORBIDDEN: &[(&str, &str)] = &[
    ("accounting::account", "numbers come from `answers`"),
    ("accounting::calibrate", "numbers come from `answers`"),
    ("accounting::curve::curve", "numbers come from `answers`"),
    ("Lens::named", "a lens is asked by `answers`"),
    ("== LensName::", "lenses are not compared"),
    ("LensName::Composition", "no lens has a special case"),
    ("interval.upper", "ends are quoted by `shown`"),
    ("interval.lower", "ends are quoted by `shown`"),
    ("Standing::", "words about standings are in `vocabulary`"),
    ("analyse(", "scores are audited by `answers`"),
    (".exp()", "no arithmetic on privacy numbers"),
    (".ln()", "no arithmetic on privacy numbers"),
];

fn sources(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_file() {
        found.push(path.to_owned());
        return;
    }
    for entry in std::fs::read_dir(path).unwrap() {
        sources(&entry.unwrap().path(), found);
    }
}

#[test]
fn front_ends_decide_nothing() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for place in FRONT_ENDS {
        sources(&root.join(place), &mut files);
    }
    assert!(files.len() > 25, "only {} files were found", files.len());
    let mut breaches = Vec::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|kind| kind == "rs")) {
        let text = std::fs::read_to_string(file).unwrap();
        for (pattern, why) in FORBIDDEN {
            if text.contains(pattern) {
                breaches.push(format!("{}: `{pattern}` ({why})", file.display()));
            }
        }
    }
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}

/// One function rounds what a claim shows; the package and the page show its text.
#[test]
fn python_rounds_nothing() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for name in ["claims", "calibration", "auditing", "checking", "_values", "_html"] {
        let text =
            std::fs::read_to_string(root.join(format!("python/dosimeter/{name}.py"))).unwrap();
        for pattern in ["decimal", "ROUND_", "log10"] {
            assert!(!text.contains(pattern), "{name}.py rounds by itself: `{pattern}`");
        }
    }
}
