//! Every entry computes and writes what it promises, on few games; the index lists them.

mod common;

use common::reproduce;
use experiments::Silent;
use papers::{Context, entries, entry, write, write_index};
use std::sync::atomic::AtomicBool;

/// Entries that play games are tried with a few hundred of them; the long ones are left to the
/// command itself.
#[test]
fn entries_write_their_files() {
    let root = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let mut written = Vec::new();
    for id in ["last-iterate-section-4.2", "last-iterate-table-2", "last-iterate-figure-3"] {
        let entry = entry(id).unwrap();
        let folder = root.path().join(id);
        let context = Context {
            folder: &folder,
            threads: 2,
            trials: Some(500),
            seed: 5,
            data: None,
            reporter: &Silent,
            stop: &stop,
        };
        let found = entry.reproduce(&context).unwrap();
        let files = write(&entry, &found, &folder).unwrap();
        assert!(files.iter().any(|name| name.ends_with(".svg")), "{id}: {files:?}");
        assert!(files.iter().any(|name| name.ends_with(".csv")), "{id}: {files:?}");
        let data = std::fs::read_to_string(folder.join("data.json")).unwrap();
        let data: serde_json::Value = serde_json::from_str(&data).unwrap();
        assert_eq!(data["id"], id);
        for key in ["paper_shows", "we_get", "differs"] {
            assert!(data[key].as_str().is_some_and(|text| text.len() > 3), "{id}: {key}");
        }
        written.push(entry);
    }
    write_index(&entries(), root.path()).unwrap();
    let index = std::fs::read_to_string(root.path().join("index.html")).unwrap();
    for entry in written {
        assert!(index.contains(&format!("id=\"{}\"", entry.id)));
        assert!(index.contains(&format!("href=\"#{}\"", entry.id)), "{} is not listed", entry.id);
    }
    assert!(!index.contains("id=\"our-loss-figure-2\""));
    // Parameters and tables are on the page too.
    assert!(index.contains("<dt>Parameters</dt><dd>confidence 0.95, delta 1e-5"), "{index}");
    assert!(index.contains("<td class=\"number\">2.2749</td>"), "{index}");
}

#[test]
fn section_4_2_to_all_digits() {
    let found = reproduce("last-iterate-section-4.2");
    assert_eq!(found.we_get, "2.22241 at alpha = 0, 2.27487 at alpha = 0.5, 2.18169 at alpha = 1.");
}

#[test]
fn a_stop_is_honoured_and_unknown_names_are_named() {
    let root = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(true);
    let context = Context {
        folder: root.path(),
        threads: 1,
        trials: None,
        seed: 0,
        data: None,
        reporter: &Silent,
        stop: &stop,
    };
    assert!(matches!(
        entry("last-iterate-figure-3").unwrap().reproduce(&context),
        Err(papers::PaperError::Interrupted)
    ));
    let error = entry("p9-figure-1").unwrap_err().to_string();
    assert!(error.contains("p9-figure-1") && error.contains("our-loss-figure-1"), "{error}");
    // Those that train are names as well.
    assert!(error.contains("last-iterate-table-2-trained"), "{error}");
}
