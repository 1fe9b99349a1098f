//! Figures as data, drawn as SVG.
