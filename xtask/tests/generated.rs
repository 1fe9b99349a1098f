//! What is generated is not stale.

#[path = "../src/generate.rs"]
mod generate;

#[test]
fn generated_files_are_up_to_date() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for (path, text) in generate::files() {
        let found = std::fs::read_to_string(root.join(path)).unwrap_or_default();
        assert_eq!(found, text, "{path} is stale; run `cargo xtask generate`");
    }
}
