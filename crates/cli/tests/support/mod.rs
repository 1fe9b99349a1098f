//! Runs the real binary in a fresh folder and shows everything a user sees.

// Shared by several test binaries, each of which uses a part.
#![allow(dead_code, unreachable_pub)]

pub mod schema;

use std::path::Path;
use std::process::Command;

/// Runs the binary in a folder: exit code, stdout and stderr, without colours.
pub fn dosimeter(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let output = Command::new(assert_cmd::cargo::cargo_bin!("dosimeter"))
        .current_dir(folder)
        .args(args)
        .env("NO_COLOR", "1")
        .output()
        .expect("the binary runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// A folder for files of one test; the binary runs in it.
pub struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    pub fn file(self, name: &str, text: &str) -> Self {
        std::fs::write(self.folder.path().join(name), text).expect("a file in it");
        self
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Arguments, exit code, stdout and stderr as one text.
    pub fn show(&self, line: &str) -> String {
        let (code, stdout, stderr) = self.run(line);
        let mut text = format!("$ dosimeter {line}\nexit code {code}\n");
        for (name, stream) in [("stdout", stdout), ("stderr", stderr)] {
            if !stream.is_empty() {
                text.push_str(&format!("----- {name} -----\n{stream}"));
            }
        }
        text
    }

    pub fn run(&self, line: &str) -> (i32, String, String) {
        let binary = assert_cmd::cargo::cargo_bin!("dosimeter");
        let output = Command::new(binary)
            .args(line.split_whitespace())
            .current_dir(self.folder.path())
            .env_remove("NO_COLOR")
            .output()
            .expect("the binary runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
    }

    /// The one document of an answer, which has to fit the schema that it names.
    pub fn json(&self, line: &str) -> serde_json::Value {
        let (code, stdout, stderr) = self.run(line);
        assert_eq!(code, 0, "{line}: {stderr}");
        let document: serde_json::Value = serde_json::from_str(&stdout).expect("one JSON document");
        if let Some(name) = document["schema"].as_str() {
            let faults = schema::faults(&document, &self.schema(name));
            assert!(faults.is_empty(), "{line} does not fit {name}:\n{}", faults.join("\n"));
        }
        document
    }

    /// The schema of a document, by its name.
    pub fn schema(&self, name: &str) -> serde_json::Value {
        let (code, stdout, stderr) = self.run(&format!("schema {name}"));
        assert_eq!(code, 0, "{stderr}");
        serde_json::from_str(&stdout).expect("a JSON schema")
    }
}
