//! The private module `dosimeter._core`: what the Python package needs of the core, and no logic
//! of its own. A question is a document, asked of [`answers`], and its answer is the text that
//! every door gives.
//!
//! Every function lets go of the interpreter while it computes and looks for Ctrl-C meanwhile
//! ([`interruptible`]). The public, typed API is in `python/dosimeter`.

mod ask;
mod command;
mod errors;
mod experiment;
mod figure;
mod interruptible;
mod listener;
mod run;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::ask::{
        account_seconds, ask, attack, audit, membership, memorize, prove, report, status, train,
        tune,
    };
    #[pymodule_export]
    use super::command::{command, main};
    #[pymodule_export]
    use super::experiment::{experiment, plan_name, training_seed};
    #[pymodule_export]
    use super::figure::{curve_figure, figure_svg};
    #[pymodule_export]
    use super::run::Run;

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
