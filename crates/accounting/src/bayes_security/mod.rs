//! Bayes security: what an attacker can infer about one record (Cherubin et al. 2024).
//!
//! beta = 1 - max over priors of the generalised advantage = 1 - TV of the two worst secrets; 1 is
//! no leakage. It is 1 - delta at epsilon 0, so the exact certified value comes from composition
//! ([`crate::pairs::Composed`]). Here are the formulas beside it, each with its direction
//! ([`closed_form_mu`]: errs on the unsafe side; [`central_limit_mu`]: an estimate;
//! [`certified_lower_bound`]: never above the truth), the data-dependent bound against attribute
//! inference ([`attribute`]), and translations to what people ask for ([`translate`]).

pub mod attribute;
mod certified;
mod formula;
mod inversion;
pub mod translate;

pub use certified::{certified_lower_bound, distance_from_mean};
pub use formula::{Formula, central_limit_mu, closed_form_mu, mu_of_security, security_of_mu};
pub use inversion::{Inversion, by_inversion};
