//! Parsed files that own their bytes.

/// Declares a type that owns the bytes of a file and the parts parsed from them, with an accessor
/// for the parts.
macro_rules! parsed {
    ($(#[$meta:meta])* $file:ident, $cell:ident: $owner:ty => $parts:ident) => {
        self_cell::self_cell! {
            struct $cell {
                owner: $owner,
                #[not_covariant]
                dependent: $parts,
            }
        }

        $(#[$meta])*
        pub(super) struct $file($cell);

        impl $file {
            pub(super) fn with<R>(&self, ask: impl FnOnce(&$parts<'_>) -> R) -> R {
                self.0.with_dependent(|_, parts| ask(parts))
            }
        }
    };
}
pub(super) use parsed;
