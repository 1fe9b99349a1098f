//! Stored numbers to f32: plain and the quantised blocks of GGUF.
//!
//! Blocks of 32 numbers. Q4_0: scale d (f16), 16 bytes; number i < 16 is d (low nibble of byte i - 8),
//! number 16 + i the high nibble. Q4_1: scale d and minimum m, d nibble + m. Q8_0: d and 32 signed
//! bytes.

use half::{bf16, f16};

/// How numbers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    F32,
    F16,
    Bf16,
    Q4_0,
    Q4_1,
    Q8_0,
}

impl Stored {
    /// (numbers, bytes) of a block.
    pub(super) fn block(self) -> (usize, usize) {
        match self {
            Self::F32 => (1, 4),
            Self::F16 | Self::Bf16 => (1, 2),
            Self::Q4_0 => (32, 18),
            Self::Q4_1 => (32, 20),
            Self::Q8_0 => (32, 34),
        }
    }

    /// The numbers of whole blocks.
    pub(super) fn read(self, bytes: &[u8]) -> Vec<f32> {
        let (numbers, size) = self.block();
        let mut out = Vec::with_capacity(bytes.len() / size * numbers);
        let short = |b: &[u8], at: usize| f16::from_le_bytes([b[at], b[at + 1]]).to_f32();
        for block in bytes.chunks_exact(size) {
            match self {
                Self::F32 => out.push(f32::from_le_bytes([block[0], block[1], block[2], block[3]])),
                Self::F16 => out.push(short(block, 0)),
                Self::Bf16 => out.push(bf16::from_le_bytes([block[0], block[1]]).to_f32()),
                Self::Q4_0 => {
                    let scale = short(block, 0);
                    let number = |nibble: u8| scale * (f32::from(nibble) - 8.0);
                    out.extend(block[2..].iter().map(|byte| number(byte & 15)));
                    out.extend(block[2..].iter().map(|byte| number(byte >> 4)));
                }
                Self::Q4_1 => {
                    let (scale, least) = (short(block, 0), short(block, 2));
                    let number = |nibble: u8| scale * f32::from(nibble) + least;
                    out.extend(block[4..].iter().map(|byte| number(byte & 15)));
                    out.extend(block[4..].iter().map(|byte| number(byte >> 4)));
                }
                Self::Q8_0 => {
                    let scale = short(block, 0);
                    out.extend(block[2..].iter().map(|byte| scale * f32::from(*byte as i8)));
                }
            }
        }
        out
    }
}
