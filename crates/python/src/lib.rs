//! The private module `dosimeter._core`: what the Python package needs of the core, and no logic
//! of its own. `account` and the curves are direct calls (a question costs microseconds more
//! than in Rust); everything else is a command of the command line, run in this process, so
//! that both front ends give the same numbers by construction.
//!
//! Every function lets go of the interpreter while it computes and looks for Ctrl-C meanwhile
//! ([`interruptible`]). The public, typed API is in `python/dosimeter`.

mod account;
mod command;
mod curve;
mod errors;
mod experiment;
mod interruptible;
mod run;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::account::{account, account_seconds};
    #[pymodule_export]
    use super::command::{command, main};
    #[pymodule_export]
    use super::curve::{curve, curve_figure, figure_svg};
    #[pymodule_export]
    use super::experiment::{experiment, plan_name, training_seed};
    #[pymodule_export]
    use super::run::Run;

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
