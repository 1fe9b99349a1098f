//! Special functions that keep relative accuracy in their tails.
//!
//! Each function states its error bound. `ROUND` is the unit those bounds are counted in.

mod binomial;
mod binomial_sum;
mod gamma;
mod logarithms;
#[doc(hidden)]
pub mod mills_table;
mod normal;
mod quantile;

pub use binomial::{Binomial, relative_entropy_term};
pub use binomial_sum::BinomialSum;
pub use gamma::{HALF_LN_TWO_PI, ln_gamma, stirling_remainder};
pub use logarithms::{log_add_exp, log_sub_exp, log_sum_exp, log1mexp};
pub use normal::{
    LOG_TAIL_ERROR, MILLS_ERROR, SERIES_ERROR, erfc, gaussian_kernel, log_normal_cdf,
    log_normal_sf, mills_moments, mills_ratio, normal_cdf, normal_density, normal_sf,
};
pub use quantile::{inverse_log_normal_sf, inverse_normal_cdf, inverse_normal_sf};

/// The relative error of one rounded operation, 2^-53 (stated a little larger).
pub const ROUND: f64 = 1.12e-16;
