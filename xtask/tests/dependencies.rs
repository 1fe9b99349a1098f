//! The walls between the crates, and what may come in from outside, held over `cargo metadata`.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Which workspace crates a crate may use directly (development dependencies left out). A
/// crate that is missing here fails the test: a new crate states its place first.
const WALLS: &[(&str, &[&str])] = &[
    // Words, and nothing else.
    ("vocabulary", &[]),
    // Mathematics that knows no privacy, and streams of random words.
    ("numerics", &["vocabulary"]),
    ("random", &["vocabulary"]),
    ("figures", &["vocabulary", "formats"]),
    // The engine takes plans; it never names who made them.
    ("experiments", &["vocabulary", "formats"]),
    ("accounting", &["vocabulary", "numerics"]),
    // Bytes of files that several crates read.
    ("formats", &[]),
    ("audit", &["vocabulary", "numerics", "accounting", "formats"]),
    ("games", &["vocabulary", "numerics", "random", "formats", "accounting", "experiments"]),
    ("training", &["vocabulary", "numerics", "random", "formats"]),
    (
        "attacks",
        &["vocabulary", "numerics", "random", "accounting", "experiments", "formats", "training"],
    ),
    ("language", &["vocabulary", "numerics", "random", "formats", "experiments", "training"]),
    ("tuning", &["vocabulary", "numerics", "accounting", "formats"]),
    // Claims and figures only.
    ("report", &["vocabulary", "figures", "formats"]),
    ("fuzzing", &["vocabulary", "numerics", "accounting", "audit"]),
    // Measures, and is used by nobody.
    (
        "probes",
        &[
            "vocabulary",
            "numerics",
            "random",
            "figures",
            "formats",
            "accounting",
            "audit",
            "games",
            "training",
            "language",
        ],
    ),
    // The application layer: the only crate that front ends ask.
    (
        "answers",
        &[
            "vocabulary",
            "accounting",
            "attacks",
            "audit",
            "experiments",
            "formats",
            "games",
            "language",
            "papers",
            "prover",
            "random",
            "report",
            "training",
            "tuning",
        ],
    ),
    // Proves ends from the definition of the pair; it shares no mathematics with the solver.
    ("prover", &["vocabulary"]),
    // The survey asks the solver and has its answers proven; names come from the vocabulary.
    ("xtask", &["vocabulary", "formats", "accounting", "prover"]),
];

/// These stand on top and may use everything below, but not one another's glue.
const ON_TOP: &[&str] = &["papers", "server", "dosimeter", "python"];

/// Crates of the outside world that only these workspace crates may use.
const RESERVED: &[(&str, &[&str])] = &[
    ("clap", &["dosimeter", "answers"]),
    ("clap_complete", &["dosimeter"]),
    ("clap_mangen", &["dosimeter"]),
    ("anyhow", &["dosimeter", "xtask"]),
    ("indicatif", &["dosimeter"]),
    ("tokio", &["server"]),
    ("axum", &["server"]),
];

struct Package {
    license: Option<String>,
    license_file: bool,
    source: Option<String>,
    /// Names of direct dependencies, development ones left out.
    uses: BTreeSet<String>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Crates that are published are called `dosimeter-…` there, and by their folder here.
fn short(name: &str) -> String {
    name.strip_prefix("dosimeter-").unwrap_or(name).to_owned()
}

fn packages() -> BTreeMap<String, Vec<Package>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut packages: BTreeMap<String, Vec<Package>> = BTreeMap::new();
    for package in metadata["packages"].as_array().unwrap() {
        let text = |key: &str| package[key].as_str().map(str::to_owned);
        let uses = package["dependencies"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|dependency| dependency["kind"] != "dev")
            .map(|dependency| short(dependency["name"].as_str().unwrap()))
            .collect();
        packages.entry(short(&text("name").unwrap())).or_default().push(Package {
            license: text("license"),
            license_file: text("license_file").is_some(),
            source: text("source"),
            uses,
        });
    }
    packages
}

fn ours(packages: &BTreeMap<String, Vec<Package>>) -> BTreeMap<&str, &Package> {
    packages
        .iter()
        .flat_map(|(name, versions)| versions.iter().map(move |package| (name.as_str(), package)))
        .filter(|(_, package)| package.source.is_none())
        .collect()
}

#[test]
fn crates_keep_to_their_walls() {
    let packages = packages();
    let ours = ours(&packages);
    assert!(ours.len() >= 5, "cargo metadata lists only {:?}", ours.keys());
    let walls: BTreeMap<_, _> = WALLS.iter().copied().collect();
    let mut breaches = Vec::new();
    for (name, package) in &ours {
        let on_top = ON_TOP.contains(name);
        if !on_top && !walls.contains_key(name) {
            breaches.push(format!("`{name}` has no entry in WALLS"));
        }
        for used in package.uses.iter().filter(|used| ours.contains_key(used.as_str())) {
            let allowed = match walls.get(name) {
                Some(allowed) => allowed.contains(&used.as_str()),
                None => on_top && !["fuzzing", "xtask", "python"].contains(&used.as_str()),
            };
            if !allowed {
                breaches.push(format!("`{name}` must not use `{used}`"));
            }
        }
    }
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}

/// The list in DESIGN.md is the workspace, no more and no less.
#[test]
fn the_design_lists_every_crate() {
    let packages = packages();
    let design = std::fs::read_to_string(root().join("DESIGN.md")).unwrap();
    let list = design.split("## Which crate may use which?").nth(1).unwrap();
    let list = list.split("```").nth(1).unwrap();
    let listed: BTreeSet<&str> = list
        .lines()
        .filter_map(|line| line.split("  ").next())
        .filter(|name| !name.is_empty())
        .collect();
    let names: BTreeSet<&str> = ours(&packages)
        .keys()
        .map(|name| if *name == "dosimeter" { "cli" } else { name })
        .collect();
    assert_eq!(listed, names);
}

/// What a crate is for stands at its head, within forty lines.
#[test]
fn every_crate_states_its_idea() {
    let mut crates = 0;
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let library = entry.unwrap().path().join("src/lib.rs");
        let text = std::fs::read_to_string(&library).unwrap();
        let head = text.lines().take_while(|line| line.starts_with("//!")).count();
        assert!((3..=40).contains(&head), "{}: {head} lines", library.display());
        crates += 1;
    }
    assert!(crates > 20, "only {crates} crates were found");
}

/// Whoever depends on one of these crates finds a program that uses it.
#[test]
fn crates_for_others_have_an_example() {
    for name in
        ["vocabulary", "formats", "numerics", "random", "accounting", "audit", "figures", "games"]
    {
        let folder = root().join("crates").join(name).join("examples");
        let found = std::fs::read_dir(&folder)
            .unwrap()
            .any(|entry| entry.unwrap().path().extension().is_some_and(|ending| ending == "rs"));
        assert!(found, "{}", folder.display());
    }
}

#[test]
fn reserved_crates_stay_where_they_belong() {
    let packages = packages();
    let mut breaches = Vec::new();
    for (name, package) in ours(&packages) {
        for (reserved, owners) in RESERVED {
            if package.uses.contains(*reserved) && !owners.contains(&name) {
                breaches.push(format!("`{name}` must not use `{reserved}`"));
            }
        }
    }
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}

#[test]
fn outside_crates_come_from_the_registry_under_an_allowed_licence() {
    let deny: toml::Value = std::fs::read_to_string(root().join("deny.toml"))
        .unwrap()
        .parse::<toml::Table>()
        .unwrap()
        .into();
    let allowed: BTreeSet<&str> = deny["licenses"]["allow"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    let mut breaches = Vec::new();
    for (name, versions) in &packages() {
        for package in versions {
            let Some(source) = &package.source else { continue };
            if !source.starts_with("registry+") {
                breaches.push(format!("`{name}` comes from {source}"));
            }
            match &package.license {
                Some(expression) if permitted(expression, &allowed) => {}
                None if package.license_file => {
                    breaches.push(format!("`{name}` names no licence expression"))
                }
                other => breaches.push(format!("`{name}` has licence {other:?}")),
            }
        }
    }
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}

/// An SPDX expression holds if one of its `OR` branches has only allowed `AND` terms.
/// Parentheses are flattened into the stricter reading: every branch inside must then hold.
fn permitted(expression: &str, allowed: &BTreeSet<&str>) -> bool {
    let all = |text: &str| text.split(" AND ").all(|term| allowed.contains(term.trim()));
    if let (Some(open), Some(close)) = (expression.find('('), expression.rfind(')')) {
        let inside = permitted(&expression[open + 1..close], allowed);
        let rest: Vec<&str> = [&expression[..open], &expression[close + 1..]]
            .into_iter()
            .flat_map(|part| part.split(" AND "))
            .map(str::trim)
            .filter(|term| !term.is_empty())
            .collect();
        return inside && rest.iter().all(|term| allowed.contains(term));
    }
    expression.replace('/', " OR ").split(" OR ").any(all)
}

#[test]
fn licence_expressions_are_read() {
    let allowed = BTreeSet::from(["MIT", "Apache-2.0", "Unicode-3.0"]);
    assert!(permitted("MIT OR Apache-2.0", &allowed));
    assert!(permitted("MIT/Apache-2.0", &allowed));
    assert!(permitted("GPL-3.0 OR MIT", &allowed));
    assert!(permitted("(MIT OR Apache-2.0) AND Unicode-3.0", &allowed));
    assert!(!permitted("(MIT OR Apache-2.0) AND NCSA", &allowed));
    assert!(!permitted("MIT AND GPL-3.0", &allowed));
    assert!(!permitted("GPL-3.0", &allowed));
}

/// Crates with one test program name each of their files in it: a file that is left out would never
/// run.
#[test]
fn every_file_of_tests_is_run() {
    let mut programs = 0;
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path().join("tests");
        let Ok(program) = std::fs::read_to_string(folder.join("all.rs")) else { continue };
        programs += 1;
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            if path.extension().is_some_and(|end| end == "rs") && name != "all" {
                let line = format!("mod {name};");
                let named = program.lines().any(|own| own == line);
                assert!(named, "{}: write `{line}` into all.rs", path.display());
            }
        }
    }
    assert!(programs >= 3, "only {programs} test programs were found");
}

/// The features of every package that a build of `what` compiles.
fn features(what: &[&str], edges: &str) -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--prefix", "none", "--format", "{p} [{f}]"])
        .args(what)
        .args(["--edges", edges])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        if let Some((package, features)) = line.trim_end_matches(" (*)").split_once(" [") {
            found.entry(package.to_owned()).or_default().insert(features.to_owned());
        }
    }
    found
}

const EVERYTHING: &[&str] = &["--workspace", "--features", "dosimeter/full,dosimeter/parquet"];

/// A test dependency that turns a feature of a shared crate on has that crate, and all that stands
/// on it, compiled a second time.
#[test]
fn tests_turn_no_features_on() {
    let (built, tested) =
        (features(EVERYTHING, "normal,build"), features(EVERYTHING, "normal,build,dev"));
    assert!(built.len() > 100, "only {} packages were found", built.len());
    for (package, features) in &built {
        assert_eq!(Some(features), tested.get(package), "{package}: features when built, in tests");
    }
}

/// What `cargo run` and `cargo xtask` compile of the mathematics, the gate does not compile again.
#[test]
fn the_first_builds_are_of_use_to_the_gate() {
    let mathematics = ["-p", "dosimeter-accounting", "-p", "prover"];
    let shared = features(&mathematics, "normal,build");
    let gate = features(EVERYTHING, "normal,build");
    assert!(shared.len() > 20, "only {} packages were found", shared.len());
    for first in ["dosimeter", "xtask"] {
        let built = features(&["-p", first], "normal,build");
        for package in shared.keys() {
            let (here, there) = (built.get(package), gate.get(package));
            assert_eq!(here, there, "{package}: features for `{first}` and for the gate");
        }
    }
}
