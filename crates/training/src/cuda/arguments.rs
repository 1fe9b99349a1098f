//! What kernels take: numbers, addresses, and the small structures of `kernels.cu`.

use std::ffi::c_void;

/// Pointers to what a step notes about records; zero where nothing is kept.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Notes {
    pub(super) norms: u64,
    pub(super) losses: u64,
    pub(super) correct: u64,
    pub(super) failed: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Update {
    pub(super) deviation: f32,
    pub(super) share: f32,
    pub(super) decay: f32,
    pub(super) rate: f32,
    pub(super) momentum: f32,
    pub(super) beta1: f32,
    pub(super) beta2: f32,
    pub(super) correction: f32,
    pub(super) epsilon: f32,
    pub(super) shrink: f32,
    pub(super) kind: i32,
    pub(super) parameters: i32,
    pub(super) row: u64,
    pub(super) stride: u64,
}

/// One argument of a kernel.
#[derive(Clone, Copy)]
pub(super) enum Argument {
    Address(u64),
    Int(i32),
    Long(u64),
    Float(f32),
    Double(f64),
    Layer([i32; 9]),
    Pool([i32; 7]),
    Groups([i32; 8]),
    Norms([i32; 14]),
    Notes(Notes),
    Update(Update),
}

impl Argument {
    /// Where the payload lies; valid as long as `self` is not moved.
    pub(super) fn place(&mut self) -> *mut c_void {
        match self {
            Self::Address(value) | Self::Long(value) => std::ptr::from_mut(value).cast(),
            Self::Int(value) => std::ptr::from_mut(value).cast(),
            Self::Float(value) => std::ptr::from_mut(value).cast(),
            Self::Double(value) => std::ptr::from_mut(value).cast(),
            Self::Layer(value) => std::ptr::from_mut(value).cast(),
            Self::Pool(value) => std::ptr::from_mut(value).cast(),
            Self::Groups(value) => std::ptr::from_mut(value).cast(),
            Self::Norms(value) => std::ptr::from_mut(value).cast(),
            Self::Notes(value) => std::ptr::from_mut(value).cast(),
            Self::Update(value) => std::ptr::from_mut(value).cast(),
        }
    }
}
