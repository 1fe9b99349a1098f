//! Ball arithmetic: a number is a midpoint and a radius, and every operation returns a ball that
//! contains every result of members of its arguments. Nothing here knows privacy.
//!
//! [`float`] cuts off and says by how much at most; [`ball`] adds that to the radius;
//! [`elementary`] and [`erfc`] add the remainder of the series they cut off.

mod ball;
mod complex;
mod elementary;
mod erfc;
mod fixed;
mod float;
mod magnitude;

pub use ball::Ball;
pub use complex::Complex;
pub use erfc::{erfc, normal_tail};
pub use fixed::{Fixed, Rotor};
pub use float::Float;
pub use magnitude::Magnitude;
