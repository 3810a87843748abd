//! Closed lists of things that are spelled in options and outputs.

macro_rules! named {
    ($(#[$meta:meta])* $name:ident { $($(#[$of:meta])* $member:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$of])* $member,)* }

        impl $name {
            /// Every member.
            pub const ALL: [$name; [$($text),*].len()] = [$($name::$member,)*];

            /// The spelling in options and outputs.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$member => $text,)* }
            }
        }

        impl std::str::FromStr for $name {
            type Err = ();

            fn from_str(text: &str) -> Result<Self, ()> {
                Self::ALL.into_iter().find(|member| member.as_str() == text).ok_or(())
            }
        }
    };
}
pub(crate) use named;
