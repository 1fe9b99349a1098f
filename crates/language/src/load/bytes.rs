//! A cursor over foreign bytes: every read is checked.

use crate::LanguageError;

pub(super) struct Bytes<'a> {
    rest: &'a [u8],
    total: usize,
    place: &'a str,
}

impl<'a> Bytes<'a> {
    pub(super) fn new(bytes: &'a [u8], place: &'a str) -> Self {
        Self { rest: bytes, total: bytes.len(), place }
    }

    pub(super) fn at(&self) -> usize {
        self.total - self.rest.len()
    }

    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], LanguageError> {
        if count > self.rest.len() {
            return Err(LanguageError::file(
                self.place,
                format!(
                    "the file ends early: {count} bytes are needed at {}, {} are left",
                    self.at(),
                    self.rest.len()
                ),
            ));
        }
        let (taken, rest) = self.rest.split_at(count);
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], LanguageError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(super) fn u8(&mut self) -> Result<u8, LanguageError> {
        Ok(self.array::<1>()?[0])
    }

    pub(super) fn u16(&mut self) -> Result<u16, LanguageError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32, LanguageError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(super) fn i32(&mut self) -> Result<i32, LanguageError> {
        Ok(i32::from_le_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, LanguageError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(super) fn f32(&mut self) -> Result<f32, LanguageError> {
        Ok(f32::from_le_bytes(self.array()?))
    }

    pub(super) fn f64(&mut self) -> Result<f64, LanguageError> {
        Ok(f64::from_le_bytes(self.array()?))
    }

    /// `count` numbers.
    pub(super) fn floats(&mut self, count: usize) -> Result<Vec<f32>, LanguageError> {
        let size = count.checked_mul(4).ok_or_else(|| {
            LanguageError::file(
                self.place,
                format!("{count} numbers are more than a file can hold"),
            )
        })?;
        let bytes = self.take(size)?;
        Ok(bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
    }
}
