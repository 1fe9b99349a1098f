//! Programs that measure the other crates, in `examples/`: they are built when they are asked for,
//! and by the tests. `cargo run --release -p probes --example NAME`.
//!
//! | program | measures |
//! |---|---|
//! | `bench_probe` | one answer of `accounting` in one process, for `cargo xtask bench` |
//! | `timing` | the default questions, per lens and quantity |
//! | `domain_survey` | how much of the domain composition answers, and how narrowly |
//! | `certified_survey` | the certified closed form against the truth, on random runs |
//! | `audit_probe` | the estimators of `audit` on synthetic scores |
//! | `audit_tightness` | how much the bounds show, for the table of peers |
//! | `games` | random numbers and simulated games per second |
//! | `gallery` | one figure of each kind, to be looked at |
//! | `game_bars` | tests of simulated games, all settings and seeds |
//! | `speed` | training steps per second, for `cargo xtask bench training` |
//! | `lora_step`, `acr_passes` | fine-tuning and the shortest prompt, for `cargo xtask bench language` |
//! | `device_bench`, `device_lora` | training on an NVIDIA device; the peers are the Python files beside them |
