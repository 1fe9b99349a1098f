//! G (+)= x' d where many numbers of d are exactly zero, as behind a ReLU: for each output the
//! records whose d is not zero are added up, x_i d_ij, and the others are not touched. Half the
//! multiply-adds at a density of one half, and the same bits as the dense product of
//! [`super::tiles`], since adding 0 x changes no sum of finite numbers and the order stays.
//!
//! Thirty-two records by up to thirteen vectors of inputs are copied together, so that they stay
//! in the first-level cache while all outputs pass over them; a processor that loads one vector a
//! cycle feeds one multiply-add a cycle from it. The sums have a row for each output and are turned
//! into the gradient's rows of inputs, 16 by 16.

use super::product::wanted_soon;
use super::tiles::{self, Outer};
use super::vectorise::vectorised;

/// Records that are kept together: one bit each in a mask.
const RECORDS: usize = 32;
/// Vectors of inputs that are kept together.
const VECTORS: usize = 13;
const LANES: usize = 16;

/// What the product works in.
#[derive(Default)]
pub(crate) struct Active {
    /// For each group of records and output, which records count.
    masks: Vec<u32>,
    /// d with a row for each group of records and output.
    turned: Vec<f32>,
    /// Records by inputs, together.
    pack: Vec<f32>,
    /// Outputs by inputs.
    sums: Vec<f32>,
}

impl Active {
    /// Does the product and says so, or leaves it to the dense one: where too few numbers are zero,
    /// for small products, and without AVX-512.
    pub(crate) fn outer(&mut self, work: &mut Outer<'_>) -> bool {
        let Outer { x, outputs, .. } = *work;
        if x.len() < RECORDS || !tiles::suit(outputs) || work.gradient.len() < 64 * outputs {
            return false;
        }
        self.mark(work.d, outputs);
        // The copies cost as much as about a tenth of the dense product, and reading from the
        // cache what that one has in registers a fifth.
        let active: usize = self.masks.iter().map(|mask| mask.count_ones() as usize).sum();
        if active * 8 > x.len() * outputs * 5 {
            return false;
        }
        vectors::run(self, work)
    }

    /// Which numbers of d are not zero.
    fn mark(&mut self, d: &[f32], outputs: usize) {
        self.masks.clear();
        self.masks.resize(d.len().div_ceil(RECORDS * outputs) * outputs, 0);
        let groups = self.masks.chunks_exact_mut(outputs).zip(d.chunks(RECORDS * outputs));
        for (masks, d) in groups {
            for (record, d) in d.chunks_exact(outputs).enumerate() {
                bits(record as u32, d, masks);
            }
        }
    }
}

vectorised! {
    fn bits<'a>(place: u32, d: &'a [f32], masks: &'a mut [u32]) {
        for (mask, d) in masks.iter_mut().zip(d) {
            *mask |= u32::from(*d != 0.0) << (place % 32);
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod vectors {
    pub(super) fn run(_: &mut super::Active, _: &mut super::Outer<'_>) -> bool {
        false
    }
}

#[cfg(target_arch = "x86_64")]
mod vectors {
    use super::{Active, LANES, Outer, RECORDS, VECTORS, wanted_soon};
    use pulp::x86::V4;
    use pulp::{Simd, WithSimd, cast, f32x16};

    pub(super) fn run(active: &mut Active, work: &mut Outer<'_>) -> bool {
        let Some(simd) = V4::try_new() else { return false };
        Simd::vectorize(simd, Kernel { simd, active, work });
        true
    }

    struct Kernel<'a, 'b> {
        simd: V4,
        active: &'a mut Active,
        work: &'a mut Outer<'b>,
    }

    impl WithSimd for Kernel<'_, '_> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let Self { simd: v4, active: Active { masks, turned, pack, sums }, work } = self;
            let Outer { x, d, outputs, overwrite, .. } = *work;
            let inputs = work.gradient.len() / outputs;
            let width = inputs.div_ceil(LANES);
            let blocks = width.div_ceil(VECTORS);
            let groups = x.len().div_ceil(RECORDS);
            turned.resize(groups * outputs * RECORDS, 0.0);
            for (d, turned) in
                d.chunks(RECORDS * outputs).zip(turned.chunks_exact_mut(outputs * RECORDS))
            {
                turn_group(v4, d, outputs, turned);
            }
            // A vector more than needed, to begin where a line of the cache does.
            pack.resize((RECORDS * VECTORS + 1) * LANES, 0.0);
            sums.resize((outputs * VECTORS + 1) * LANES, 0.0);
            let shift = pack.as_ptr().align_offset(64);
            let pack = &mut pack[shift.min(LANES)..];
            let shift = sums.as_ptr().align_offset(64);
            let sums = &mut sums[shift.min(LANES)..];
            let bounds = |block: usize| (width * block / blocks, width * (block + 1) / blocks);
            let rows = |group: usize| &x[group * RECORDS..((group + 1) * RECORDS).min(x.len())];
            for block in 0..blocks {
                let (from, to) = bounds(block);
                let (vectors, end) = (to - from, (to * LANES).min(inputs));
                let pack = &mut pack[..RECORDS * vectors * LANES];
                let sums = &mut sums[..outputs * vectors * LANES];
                for group in 0..groups {
                    for (row, pack) in
                        rows(group).iter().zip(pack.chunks_exact_mut(vectors * LANES))
                    {
                        let own = &row[from * LANES..end];
                        pack[..own.len()].copy_from_slice(own);
                    }
                    // What is copied next is fetched meanwhile.
                    let (next, (first, last)) = match group + 1 {
                        next if next < groups => (rows(next), (from, to)),
                        _ if block + 1 < blocks => (rows(0), bounds(block + 1)),
                        _ => (&x[..0], (from, to)),
                    };
                    let next =
                        Next { rows: next, first: first * LANES, last: (last * LANES).min(inputs) };
                    let lists = group * outputs..(group + 1) * outputs;
                    let turned = &turned[lists.start * RECORDS..lists.end * RECORDS];
                    let (masks, fresh) = (&masks[lists], group == 0);
                    match vectors {
                        13 => tile::<S, 13>(simd, pack, masks, turned, sums, fresh, next),
                        12 => tile::<S, 12>(simd, pack, masks, turned, sums, fresh, next),
                        11 => tile::<S, 11>(simd, pack, masks, turned, sums, fresh, next),
                        10 => tile::<S, 10>(simd, pack, masks, turned, sums, fresh, next),
                        9 => tile::<S, 9>(simd, pack, masks, turned, sums, fresh, next),
                        8 => tile::<S, 8>(simd, pack, masks, turned, sums, fresh, next),
                        7 => tile::<S, 7>(simd, pack, masks, turned, sums, fresh, next),
                        6 => tile::<S, 6>(simd, pack, masks, turned, sums, fresh, next),
                        5 => tile::<S, 5>(simd, pack, masks, turned, sums, fresh, next),
                        _ => tile::<S, 4>(simd, pack, masks, turned, sums, fresh, next),
                    }
                }
                let out = &mut work.gradient[from * LANES * outputs..end * outputs];
                turn_sums(v4, sums, vectors * LANES, out, outputs, overwrite);
            }
        }
    }

    /// Rows that are wanted next, and which of their numbers.
    #[derive(Clone, Copy)]
    struct Next<'a> {
        rows: &'a [&'a [f32]],
        first: usize,
        last: usize,
    }

    #[inline(always)]
    fn tile<S: Simd, const V: usize>(
        simd: S,
        pack: &[f32],
        masks: &[u32],
        turned: &[f32],
        sums: &mut [f32],
        fresh: bool,
        next: Next<'_>,
    ) {
        let (pack, _) = S::as_simd_f32s(pack);
        let (pack, _) = pack.as_chunks::<V>();
        let (sums, _) = S::as_mut_simd_f32s(sums);
        let (sums, _) = sums.as_chunks_mut::<V>();
        let (turned, _) = turned.as_chunks::<RECORDS>();
        let Some(pack) = pack.first_chunk::<RECORDS>() else { return };
        // As many outputs for each row that is wanted next.
        let share = (masks.len() / RECORDS).max(1);
        for (output, ((mask, d), out)) in masks.iter().zip(turned).zip(sums).enumerate() {
            if let (Some(row), 0) = (next.rows.get(output / share), output % share) {
                wanted_soon(&row[next.first..next.last]);
            }
            let mut sum = if fresh { [simd.splat_f32s(0.0); V] } else { *out };
            let mut mask = *mask;
            while mask != 0 {
                let place = mask.trailing_zeros() as usize % RECORDS;
                mask &= mask - 1;
                let row = &pack[place];
                let factor = simd.splat_f32s(d[place]);
                for vector in 0..V {
                    sum[vector] = simd.mul_add_f32s(factor, row[vector], sum[vector]);
                }
            }
            *out = sum;
        }
    }

    const ZEROS: f32x16 = f32x16(0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0.);

    /// Up to 32 records by outputs become outputs by 32 records.
    #[inline(always)]
    fn turn_group(simd: V4, d: &[f32], outputs: usize, turned: &mut [f32]) {
        let records = d.len() / outputs;
        for first in (0..outputs).step_by(LANES) {
            for from in (0..RECORDS).step_by(LANES) {
                let mut square = [ZEROS; LANES];
                for (row, numbers) in square.iter_mut().enumerate() {
                    if from + row < records {
                        let at = (from + row) * outputs + first;
                        *numbers = load(&d[at..at + LANES]);
                    }
                }
                for (row, numbers) in transposed(simd, square).into_iter().enumerate() {
                    let at = (first + row) * RECORDS + from;
                    store(numbers, &mut turned[at..at + LANES]);
                }
            }
        }
    }

    /// Outputs by inputs become inputs by outputs.
    #[inline(always)]
    fn turn_sums(
        simd: V4,
        sums: &[f32],
        stride: usize,
        out: &mut [f32],
        outputs: usize,
        overwrite: bool,
    ) {
        for (from, out) in out.chunks_mut(LANES * outputs).enumerate() {
            let rows = out.len() / outputs;
            for first in (0..outputs).step_by(LANES) {
                let mut square = [ZEROS; LANES];
                for (row, numbers) in square.iter_mut().enumerate() {
                    let at = (first + row) * stride + from * LANES;
                    *numbers = load(&sums[at..at + LANES]);
                }
                for (row, sum) in transposed(simd, square).into_iter().enumerate() {
                    if row < rows {
                        let at = row * outputs + first;
                        let out = &mut out[at..at + LANES];
                        store(if overwrite { sum } else { simd.add_f32s(load(out), sum) }, out);
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn load(from: &[f32]) -> f32x16 {
        match from.first_chunk::<LANES>() {
            Some(numbers) => cast(*numbers),
            None => ZEROS,
        }
    }

    #[inline(always)]
    fn store(numbers: f32x16, out: &mut [f32]) {
        if let Some(out) = out.first_chunk_mut::<LANES>() {
            *out = cast(numbers);
        }
    }

    /// Sixteen rows of sixteen, turned: pairs, fours, then blocks of four.
    #[inline(always)]
    fn transposed(simd: V4, rows: [f32x16; LANES]) -> [f32x16; LANES] {
        let simd = simd.avx512f;
        let mut pairs = rows;
        for i in 0..8 {
            let (a, b) = (cast(rows[2 * i]), cast(rows[2 * i + 1]));
            pairs[2 * i] = cast(simd._mm512_unpacklo_ps(a, b));
            pairs[2 * i + 1] = cast(simd._mm512_unpackhi_ps(a, b));
        }
        let mut fours = pairs;
        for i in 0..4 {
            for half in 0..2 {
                let (a, b) = (cast(pairs[4 * i + half]), cast(pairs[4 * i + 2 + half]));
                fours[4 * i + 2 * half] = cast(simd._mm512_unpacklo_pd(a, b));
                fours[4 * i + 2 * half + 1] = cast(simd._mm512_unpackhi_pd(a, b));
            }
        }
        let mut eights = fours;
        for column in 0..4 {
            for half in 0..2 {
                let (a, b) = (cast(fours[8 * half + column]), cast(fours[8 * half + 4 + column]));
                eights[8 * half + column] = cast(simd._mm512_shuffle_f32x4::<0x88>(a, b));
                eights[8 * half + 4 + column] = cast(simd._mm512_shuffle_f32x4::<0xdd>(a, b));
            }
        }
        let mut turned = eights;
        for column in 0..4 {
            for half in 0..2 {
                let (a, b) = (cast(eights[4 * half + column]), cast(eights[8 + 4 * half + column]));
                turned[4 * half + column] = cast(simd._mm512_shuffle_f32x4::<0x88>(a, b));
                turned[8 + 4 * half + column] = cast(simd._mm512_shuffle_f32x4::<0xdd>(a, b));
            }
        }
        turned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same bits as the dense product, for records and inputs that fill their groups and not.
    #[test]
    fn zeros_are_left_out_and_no_bit_changes() {
        if !tiles::suit(64) {
            return;
        }
        let stream = random::Stream::new(4, random::Purpose::NOISE, 0);
        for (records, inputs, outputs) in
            [(32, 64, 64), (33, 65, 64), (95, 209, 128), (70, 784, 192)]
        {
            let mut x = vec![0.0; records * inputs];
            stream.fill_gaussians_f32(0, 0, &mut x);
            let mut d = vec![0.0; records * outputs];
            stream.fill_gaussians_f32(1, 0, &mut d);
            d.iter_mut().for_each(|d| *d = d.max(0.0));
            let x: Vec<&[f32]> = x.chunks(inputs).collect();
            let mut active = Active::default();
            let mut gradient = vec![f32::NAN; inputs * outputs];
            let mut expected = gradient.clone();
            for overwrite in [true, false] {
                Outer { x: &x, d: &d, outputs, gradient: &mut expected, overwrite }.run();
                let mut work = Outer { x: &x, d: &d, outputs, gradient: &mut gradient, overwrite };
                assert!(active.outer(&mut work));
                assert_eq!(gradient, expected);
            }
            d.iter_mut().step_by(2).for_each(|d| *d = 1.0);
            let mut work =
                Outer { x: &x, d: &d, outputs, gradient: &mut gradient, overwrite: true };
            assert!(!active.outer(&mut work), "too many are not zero");
        }
    }
}
