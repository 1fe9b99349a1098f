//! `data`: what is known, what is built in, and whether files are the published ones.

use crate::support;

use support::Bench;

#[test]
fn known_data_sets_have_licence_source_and_checksums() {
    let bench = Bench::new();
    let document = bench.json("data --format json");
    assert_eq!(document["schema"], "dosimeter.data/1");
    let sets = document["datasets"].as_array().unwrap();
    let names: Vec<_> = sets.iter().map(|set| set["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["adult", "mnist", "fashion-mnist", "cifar-10", "location"]);
    for set in sets {
        assert!(!set["licence"].as_str().unwrap().is_empty(), "{set}");
        assert!(set["source"].as_str().unwrap().starts_with("https://"), "{set}");
        assert!(!set["files"].as_array().unwrap().is_empty(), "{set}");
    }
    assert_eq!(sets[0]["built_in"], true);
    let (code, text, _) = bench.run("data");
    assert_eq!(code, 0);
    assert!(text.contains("CC BY 4.0") && text.contains("built in"), "{text}");
    let (_, text, _) = bench.run("data adult");
    assert!(text.contains("5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"));
    assert!(text.contains("verified just now"), "{text}");
}

#[test]
fn files_are_verified() {
    let bench = Bench::new().file("adult.data", "39, State-gov").file("mine.csv", "a,b");
    let (code, text, _) = bench.run("data adult.data mine.csv");
    assert_eq!(code, 3);
    assert!(text.contains("NOT the adult.data of adult"), "{text}");
    assert!(text.contains("mine.csv: not a file of a data set known here"), "{text}");
    let (code, text, _) = bench.run("data . --format json");
    assert_eq!(code, 3);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["files"][0]["status"], "different");
    let (code, _, error) = bench.run("data imagenet");
    assert_eq!(code, 2);
    assert!(error.contains("imagenet is neither") && error.contains("fashion-mnist"), "{error}");
}

#[test]
fn a_file_of_one_s_own_begins_its_table() {
    let csv = "age,\"job, now\",sex,y\n31,clerk,F,low\n52,\"a \"\"b\"\"\",M,high\n23,clerk,F,low\n";
    let bench = Bench::new().file("people.csv", csv);
    let (code, text, stderr) = bench.run("data describe people.csv");
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("public"), "{stderr}");
    // What is printed is a table that training reads.
    let table: toml::Table = text.parse().unwrap();
    let source: training::data::DataSource = table["data"].clone().try_into().unwrap();
    assert_eq!(source.label.as_deref(), Some("y"));
    assert_eq!(source.column[1].categories, ["a \"b\"", "clerk"]);
    let split = source.load(bench.path()).unwrap();
    assert_eq!((split.train.len(), split.train.shape.len()), (3, 5));
    let document = bench.json("data describe people.csv --format json");
    assert_eq!(document["columns"][2]["values"][1], "M");
    let (_, text, _) = bench.file("one.csv", "a,b\n1,2\n").run("data describe one.csv");
    assert!(text.starts_with("# one.csv: 1 row, 2 columns\n"), "{text}");
    let bench = Bench::new();
    let (code, _, stderr) = bench.run("data describe missing.csv");
    assert!(code == 2 && stderr.contains("missing.csv"), "{stderr}");
}
