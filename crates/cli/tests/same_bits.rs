//! The same bytes on every machine: certified numbers do not depend on which processor the C library
//! thinks it runs on. On other systems than Linux with glibc the variable does nothing, and the test says little.

use std::process::Command;

/// What the command answers, with the C library's own choice of functions or with its oldest.
fn answer(line: &str, plain: bool) -> String {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("dosimeter"));
    command.args(line.split_whitespace()).args(["--format", "json"]).env("NO_COLOR", "1");
    if plain {
        let without = "glibc.cpu.hwcaps=-FMA,-FMA4,-AVX,-AVX2,-AVX2_Usable,-AVX512F,-FMA_Usable";
        command.env("GLIBC_TUNABLES", without);
    } else {
        command.env_remove("GLIBC_TUNABLES");
    }
    let output = command.output().expect("the binary runs");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn certified_numbers_do_not_depend_on_the_processor() {
    for line in [
        "account -s 1 -q 0.01 -T 1000 -d 1e-5 --lens composition,last-iterate,full-batch,renyi",
        "account -s 1 -q 0.01 -T 1000 -d 1e-5 --sampling balls-and-bins --lens composition",
        "account -s 0.3874 -q 8.07e-6 -T 2 -d 1e-10 --lens composition",
        "account -s 2 -q 0.01 -T 500 -d 1e-5 --sampling fixed-size --adjacency substitute",
        "account -s 5 -q 0.3 -T 10 -d 1e-20 --adjacency substitute --lens composition",
        "calibrate --target-epsilon 2 -d 1e-5 -q 0.01 -T 1000",
    ] {
        let here = answer(line, false);
        assert!(here.contains("\"schema\""), "{line}: {here}");
        assert_eq!(here, answer(line, true), "{line}");
    }
}
