//! Loops compiled once for each instruction set and chosen at run time.

/// Declares functions over slices whose bodies are compiled for AVX-512, AVX2 or the baseline.
/// A body must be straight loops: what is called inside has to be `#[inline(always)]`.
macro_rules! vectorised {
    ($($(#[$note:meta])* $access:vis fn $name:ident<$life:lifetime>(
        $($argument:ident: $kind:ty),* $(,)?
    ) $(-> $result:ty)? $body:block)*) => {$(
        $(#[$note])*
        $access fn $name<$life>($($argument: $kind),*) $(-> $result)? {
            struct Kernel<$life> { $($argument: $kind),* }
            impl<$life> pulp::WithSimd for Kernel<$life> {
                type Output = vectorised!(@result $($result)?);
                #[inline(always)]
                fn with_simd<S: pulp::Simd>(self, _instructions: S) -> Self::Output {
                    let Self { $($argument),* } = self;
                    $body
                }
            }
            pulp::Arch::new().dispatch(Kernel { $($argument),* })
        }
    )*};
    (@result) => { () };
    (@result $result:ty) => { $result };
}

pub(crate) use vectorised;
