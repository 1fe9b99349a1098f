//! Where a claim is from: a lens that looked at a run, or a method that read scores.

use crate::{LensName, Method};

/// Who makes a claim. Documents spell it as the key `lens` or the key `method`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A lens, from the description of a run.
    Lens(LensName),
    /// A method, from scores.
    Method(Method),
    /// Whoever asks: a number that was stated, to be tested.
    Stated,
}

impl Source {
    /// The name, whichever kind it is of.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lens(lens) => lens.as_str(),
            Self::Method(method) => method.as_str(),
            Self::Stated => "stated",
        }
    }

    /// The name in words.
    pub fn label(self) -> &'static str {
        match self {
            Self::Lens(lens) => lens.label(),
            other => other.as_str(),
        }
    }

    /// The lens, unless it is something else.
    pub fn lens(self) -> Option<LensName> {
        match self {
            Self::Lens(lens) => Some(lens),
            _ => None,
        }
    }
}

impl From<LensName> for Source {
    fn from(lens: LensName) -> Self {
        Self::Lens(lens)
    }
}

impl From<Method> for Source {
    fn from(method: Method) -> Self {
        Self::Method(method)
    }
}

impl PartialEq<LensName> for Source {
    fn eq(&self, lens: &LensName) -> bool {
        *self == Self::Lens(*lens)
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(self.as_str())
    }
}
