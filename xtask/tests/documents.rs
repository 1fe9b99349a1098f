//! What is written about the project is held to the project.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Every file under the root with one of these endings, build outputs left out.
fn files(endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                let skipped =
                    ["target", ".git", "node_modules", ".dosimeter", "corpus", "artifacts"];
                if !skipped.contains(&name.as_str()) && !name.starts_with(".venv") {
                    folders.push(path);
                }
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                found.push(path);
            }
        }
    }
    assert!(!found.is_empty(), "no file ends with {endings:?}");
    found
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut broken = Vec::new();
    for page in files(&[".md"]) {
        let text = read(&page);
        for part in text.split("](").skip(1) {
            let target = part.split([')', ' ']).next().unwrap_or("");
            let file = target.split('#').next().unwrap_or("");
            if file.is_empty() || file.contains("://") || file.starts_with("mailto:") {
                continue;
            }
            if !page.parent().unwrap().join(file).exists() {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// The last column of the table names tests as `crate::name`; each has to exist in that crate.
#[test]
fn every_pitfall_names_a_test_that_exists() {
    let sources: Vec<(PathBuf, String)> =
        files(&[".rs"]).into_iter().map(|path| (path.clone(), read(&path))).collect();
    let mut missing = Vec::new();
    let mut rows = 0;
    for row in read(&root().join("PITFALLS.md")).lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        let guards = cells.last().unwrap();
        if cells[0].trim() == "misuse" {
            continue;
        }
        rows += 1;
        assert_eq!(cells.len(), 4, "a row has four cells: {row}");
        let tests: BTreeSet<&str> = guards.split('`').skip(1).step_by(2).collect();
        if tests.is_empty() {
            missing.push(format!("no test guards: {}", cells[0]));
        }
        for test in tests {
            let (folder, name) = test.split_once("::").unwrap_or_else(|| panic!("`{test}`"));
            let folder = root().join("crates").join(folder);
            let function = format!("fn {}(", name.rsplit("::").next().unwrap());
            let exists = sources
                .iter()
                .any(|(path, text)| path.starts_with(&folder) && text.contains(&function));
            if !exists {
                missing.push(format!("`{test}` does not exist"));
            }
        }
    }
    assert!(rows >= 10, "only {rows} rows were read");
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn nothing_is_left_unfinished() {
    // Spelled in two parts, so that this file does not find itself.
    let words = [
        concat!("to", "do!("),
        concat!("unimplemen", "ted!("),
        concat!("#[ig", "nore"),
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("TB", "D "),
        concat!("lorem ", "ipsum"),
    ];
    let mut found = Vec::new();
    for path in files(&[".rs", ".md", ".py", ".toml"]) {
        let text = read(&path);
        for word in words.iter().filter(|word| text.contains(**word)) {
            found.push(format!("{}: {word}", path.display()));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn no_file_names_a_path_of_one_machine() {
    let prefixes = [concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/wo", "rk/")];
    let mut found = Vec::new();
    for path in files(&[".rs", ".md", ".py", ".toml", ".csv", ".json", ".snap"]) {
        let text = read(&path);
        for prefix in prefixes.iter().filter(|prefix| text.contains(**prefix)) {
            found.push(format!("{}: {prefix}", path.display()));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// One version: the workspace's, that of the crates that are published, how to cite it, the log.
#[test]
fn the_version_is_the_same_everywhere() {
    let manifest = read(&root().join("Cargo.toml"));
    let stated = |text: &str| text.split('"').nth(1).map(str::to_owned);
    let version = manifest.lines().find(|line| line.starts_with("version = ")).and_then(stated);
    let version = version.expect("the workspace has a version");
    let published = manifest.lines().filter(|line| line.contains("package = \"dosimeter-"));
    for line in published {
        assert!(line.contains(&format!("version = \"{version}\"")), "{line}");
    }
    assert!(read(&root().join("CITATION.cff")).contains(&format!("\nversion: {version}\n")));
    assert!(read(&root().join("CHANGELOG.md")).contains(&format!("\n## [{version}]")));
}
