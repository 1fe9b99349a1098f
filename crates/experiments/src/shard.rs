use crate::ExperimentError;
use std::str::FromStr;

/// Part K of N: the chunks whose number is K - 1 modulo N.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    part: u64,
    of: u64,
}

impl Shard {
    /// The whole experiment.
    pub const ALL: Self = Self { part: 1, of: 1 };

    /// Whether a chunk belongs to this shard.
    pub fn has(&self, chunk: u64) -> bool {
        chunk % self.of == self.part - 1
    }
}

impl FromStr for Shard {
    type Err = ExperimentError;

    /// ```
    /// use experiments::Shard;
    /// let shard: Shard = "2/3".parse()?;
    /// assert!(shard.has(1) && shard.has(4) && !shard.has(2));
    /// assert!("4/3".parse::<Shard>().is_err());
    /// # Ok::<(), experiments::ExperimentError>(())
    /// ```
    fn from_str(text: &str) -> Result<Self, ExperimentError> {
        let refuse = || ExperimentError::Shard(text.to_owned());
        let (part, of) = text.split_once('/').ok_or_else(refuse)?;
        let part: u64 = part.trim().parse().map_err(|_| refuse())?;
        let of: u64 = of.trim().parse().map_err(|_| refuse())?;
        if part == 0 || part > of { Err(refuse()) } else { Ok(Self { part, of }) }
    }
}
