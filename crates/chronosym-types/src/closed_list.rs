//! Closed lists: enums whose members have one spelling each.

/// Declares an enum with a spelling for each member, which is its own name by default.
///
/// Gives it `ALL`, `as_str`, and implementations of `Display` and `FromStr` by the spellings.
#[macro_export]
macro_rules! closed_list {
    ($(#[$meta:meta])* $name:ident { $($(#[$of:meta])* $member:ident $(= $text:literal)?,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$of])* $member,)* }

        impl $name {
            /// Every member, in the order of the list.
            pub const ALL: [Self; [$(stringify!($member)),*].len()] = [$(Self::$member),*];

            /// Returns the spelling in options and outputs.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$member => $crate::closed_list!(@text $member $($text)?),)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = ();

            fn from_str(text: &str) -> Result<Self, ()> {
                Self::ALL.into_iter().find(|member| member.as_str() == text).ok_or(())
            }
        }
    };
    (@text $member:ident) => { stringify!($member) };
    (@text $member:ident $text:literal) => { $text };
}
