//! The small build: what it leaves out says how to get it.
#![cfg(not(any(feature = "serve", feature = "language", feature = "papers", feature = "pdf")))]

use crate::support;

use support::Bench;

#[test]
fn commands_that_are_left_out_say_how_to_get_them() {
    let bench = Bench::new()
        .file("run.toml", "[run]\nnoise_multiplier = 1\nsample_rate = 0.01\nsteps = 100\n");
    for (line, feature) in [
        ("serve", "serve"),
        ("serve --port 80", "serve"),
        ("memorize vmr --model m", "language"),
        ("attack token run.toml", "language"),
        ("tune grid grid.toml", "language"),
        ("reproduce --list", "papers"),
        ("report run.toml --delta 1e-5 --out report.pdf", "pdf"),
    ] {
        let (code, _, stderr) = bench.run(line);
        assert_eq!(code, 2, "{line}: {stderr}");
        assert!(stderr.contains("not part of this build"), "{line}: {stderr}");
        assert!(stderr.contains(&format!("--features {feature}")), "{line}: {stderr}");
    }
}
