//! A runner for tests that need an NVIDIA device: without one they are skipped, and said to be,
//! where the standard runner would count them as passed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use training::cuda::CudaDevice;

/// A test that needs a device, or one that runs everywhere; a file may have one kind only.
#[allow(dead_code)]
pub(crate) enum Test {
    OnDevice(&'static str, fn(Arc<CudaDevice>)),
    Everywhere(&'static str, fn()),
}

impl Test {
    fn name(&self) -> &'static str {
        match self {
            Self::OnDevice(name, _) | Self::Everywhere(name, _) => name,
        }
    }
}

/// Runs what the arguments ask for, which are a filter, `--exact` and `--list`.
pub(crate) fn run(tests: &[Test]) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let flag = |name: &str| arguments.iter().any(|argument| argument == name);
    let filter = arguments.iter().find(|argument| !argument.starts_with('-'));
    let device = CudaDevice::open(0);
    if flag("--list") {
        // Runners that ask for the ignored tests alone show what is skipped.
        let ignored = |test: &Test| device.is_err() && matches!(test, Test::OnDevice(..));
        for test in tests.iter().filter(|test| !flag("--ignored") || ignored(test)) {
            println!("{}: test", test.name());
        }
        return ExitCode::SUCCESS;
    }
    let wanted = |test: &&Test| match filter {
        Some(name) if flag("--exact") => test.name() == name,
        Some(name) => test.name().contains(name.as_str()),
        None => true,
    };
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for test in tests.iter().filter(wanted) {
        let outcome = match (test, &device) {
            (Test::OnDevice(name, _), Err(error)) => {
                println!("test {name} ... skipped: no device ({error})");
                skipped += 1;
                continue;
            }
            (Test::OnDevice(_, body), Ok(device)) => {
                catch_unwind(AssertUnwindSafe(|| body(Arc::clone(device))))
            }
            (Test::Everywhere(_, body), _) => catch_unwind(body),
        };
        let word = if outcome.is_ok() { "ok" } else { "FAILED" };
        println!("test {} ... {word}", test.name());
        if outcome.is_ok() {
            passed += 1;
        } else {
            failed += 1;
        }
    }
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!("test result: {word}. {passed} passed; {failed} failed; {skipped} skipped: no device");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
