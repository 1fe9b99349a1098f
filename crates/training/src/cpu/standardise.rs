//! Weight standardisation (Qiao et al. 2019, with the scale of De et al. 2022): each column w of
//! a weight matrix with K rows is used as v = s (w - mean w), s = 1/sqrt(sum (w - mean w)^2 + e).
//! A gradient g of v becomes s (g - mean g - v (v.g)) of w. The map is the same for all examples,
//! so clipped gradients are summed first and mapped once; only the norms need it example by
//! example: |Pg|^2 = |g|^2 - K (mean g)^2 - (2 - |v|^2) (v.g)^2.

/// Keeps a constant column from being divided by zero.
const SMALLEST: f64 = 1e-5;

pub(crate) struct Standardised {
    columns: usize,
    rows: usize,
    weights: Vec<f32>,
    scales: Vec<f64>,
    /// |v|^2 of each column.
    lengths: Vec<f64>,
    sums: Vec<f64>,
}

impl Standardised {
    pub(crate) fn new(rows: usize, columns: usize) -> Self {
        Self {
            columns,
            rows,
            weights: vec![0.0; rows * columns],
            scales: vec![0.0; columns],
            lengths: vec![0.0; columns],
            sums: vec![0.0; 3 * columns],
        }
    }

    /// Takes over new parameters.
    pub(crate) fn prepare(&mut self, parameters: &[f32]) {
        let (columns, rows) = (self.columns, self.rows as f64);
        let mut means = vec![0.0; columns];
        for row in parameters.chunks_exact(columns) {
            for (mean, w) in means.iter_mut().zip(row) {
                *mean += f64::from(*w) / rows;
            }
        }
        let mut squares = vec![0.0; columns];
        for row in parameters.chunks_exact(columns) {
            for ((square, mean), w) in squares.iter_mut().zip(&means).zip(row) {
                *square += (f64::from(*w) - mean).powi(2);
            }
        }
        for ((scale, length), square) in self.scales.iter_mut().zip(&mut self.lengths).zip(&squares)
        {
            *scale = 1.0 / (square + SMALLEST).sqrt();
            *length = square * *scale * *scale;
        }
        for (row, out) in
            parameters.chunks_exact(columns).zip(self.weights.chunks_exact_mut(columns))
        {
            for (((out, w), mean), scale) in out.iter_mut().zip(row).zip(&means).zip(&self.scales) {
                *out = ((f64::from(*w) - mean) * scale) as f32;
            }
        }
    }

    /// The weights in use.
    pub(crate) fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// By how much the map can lengthen a gradient.
    pub(crate) fn largest_scale(&self) -> f64 {
        self.scales.iter().copied().fold(0.0, f64::max)
    }

    fn dot_products(weights: &[f32], gradient: &[f32], columns: usize, sums: &mut [f64]) {
        sums.fill(0.0);
        let (totals, rest) = sums.split_at_mut(columns);
        let (dots, squares) = rest.split_at_mut(columns);
        for (g, v) in gradient.chunks_exact(columns).zip(weights.chunks_exact(columns)) {
            for column in 0..columns {
                let (g, v) = (f64::from(g[column]), f64::from(v[column]));
                totals[column] += g;
                dots[column] += g * v;
                squares[column] += g * g;
            }
        }
    }

    /// Norm of the gradient of the parameters that belongs to a gradient of the weights in use,
    /// raised by the rounding of [`Standardised::pull_back`] and of the weights.
    pub(crate) fn raw_norm(&mut self, gradient: &[f32]) -> f64 {
        let columns = self.columns;
        Self::dot_products(&self.weights, gradient, columns, &mut self.sums);
        let mut total = 0.0;
        let mut unprojected = 0.0;
        for column in 0..columns {
            let (sum, dot) = (self.sums[column], self.sums[columns + column]);
            let square = self.sums[2 * columns + column];
            let scale = self.scales[column] * self.scales[column];
            let projected =
                square - sum * sum / self.rows as f64 - (2.0 - self.lengths[column]) * dot * dot;
            total += scale * projected.max(0.0);
            unprojected += scale * square;
        }
        total.sqrt() + 2f64.powi(-22) * unprojected.sqrt()
    }

    /// Maps a (summed) gradient in place.
    pub(crate) fn pull_back(&self, gradient: &mut [f32]) {
        let columns = self.columns;
        let mut sums = vec![0.0; 3 * columns];
        Self::dot_products(&self.weights, gradient, columns, &mut sums);
        for (g, v) in gradient.chunks_exact_mut(columns).zip(self.weights.chunks_exact(columns)) {
            for column in 0..columns {
                let mean = sums[column] / self.rows as f64;
                let along = f64::from(v[column]) * sums[columns + column];
                g[column] = (self.scales[column] * (f64::from(g[column]) - mean - along)) as f32;
            }
        }
    }
}
