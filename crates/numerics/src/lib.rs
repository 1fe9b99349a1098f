//! Special functions, contour inversion, lattices and roots that return the safe side. Knows no privacy.
