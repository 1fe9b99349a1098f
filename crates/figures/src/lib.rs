//! Draws a [`vocabulary::Figure`] as SVG, or writes the table behind it.
//!
//! The same figure and options always give the same bytes. The SVG stands alone: no script,
//! no font or image from elsewhere; it names itself and describes its series to a screen
//! reader. Series differ in colour *and* in pattern or shape, so that a grey print can be
//! read. Nothing that a figure can hold makes the drawing fail: what has no place on its
//! axis (not finite, or not positive on a logarithmic axis) is left out, and the figure
//! says how much was.
//!
//! ```
//! use vocabulary::figure::{Axis, Figure, Series};
//!
//! let figure = Figure::new("More steps leak more", "Lower is better.")
//!     .x(Axis::log("steps"))
//!     .y(Axis::log("epsilon"))
//!     .with(Series::line("composition", [(1.0, 0.2), (100.0, 2.0)]));
//! let svg = figures::to_svg(&figure, &figures::Options::default());
//! assert!(svg.starts_with("<svg ") && svg.contains("More steps leak more"));
//! assert_eq!(figures::to_csv(&figure).lines().next(), Some("series,mark,x,y"));
//! ```

mod css;
mod domain;
mod draw;
mod frame;
mod geometry;
mod label;
mod layout;
mod options;
mod palette;
mod placement;
mod ramp;
mod scale;
mod summary;
mod svg;
mod table;
mod text;
mod ticks;

pub use draw::to_svg;
pub use options::{Options, Theme};
pub use summary::omitted;
pub use table::to_csv;
// Figures as data, for who depends on this crate alone.
pub use vocabulary;
