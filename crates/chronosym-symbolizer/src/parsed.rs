//! What is parsed over bytes that it holds itself.

/// Declares a file of such bytes, and how its parts are asked.
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
