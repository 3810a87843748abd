//! The parts of payloads: scalars, strings, arrays, and the structs that [`payload!`] declares.
//!
//! One declaration makes the struct, its decoder and its published field names, so they cannot
//! differ.

use crate::cursor::{Action, Cursor};
use crate::value::{FieldList, Value};
use crate::{AStr, DecodeError, Guid, WStr};

/// How a number is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Hex,
}

/// A part of a payload: it is read from bytes and listed as named values.
pub(crate) trait Part<'a>: Sized {
    fn read(c: &mut Cursor<'a>) -> Result<Self, DecodeError>;
    fn list(&self, name: &'static str, style: Style, out: &mut FieldList<'a>);
}

/// A part whose element count is stated elsewhere in the payload.
pub(crate) trait Counted<'a>: Sized {
    fn read_counted(c: &mut Cursor<'a>, count: usize) -> Result<Self, DecodeError>;
}

macro_rules! unsigned {
    ($($ty:ident)*) => {$(
        impl<'a> Part<'a> for $ty {
            #[inline]
            fn read(c: &mut Cursor<'a>) -> Result<Self, DecodeError> {
                Ok($ty::from_le_bytes(c.array()?))
            }
            fn list(&self, name: &'static str, style: Style, out: &mut FieldList<'a>) {
                let n = u64::from(*self);
                out.push(name, if style == Style::Hex { Value::Hex(n) } else { Value::U64(n) });
            }
        }
    )*};
}
unsigned!(u8 u16 u32 u64);

macro_rules! signed {
    ($($ty:ident)*) => {$(
        impl<'a> Part<'a> for $ty {
            #[inline]
            fn read(c: &mut Cursor<'a>) -> Result<Self, DecodeError> {
                Ok($ty::from_le_bytes(c.array()?))
            }
            fn list(&self, name: &'static str, _: Style, out: &mut FieldList<'a>) {
                out.push(name, Value::I64(i64::from(*self)));
            }
        }
    )*};
}
signed!(i8 i32 i64);

macro_rules! scalars {
    ($($ty:ty, $c:ident => $read:expr, $value:ident;)+) => {$(
        impl<'a> Part<'a> for $ty {
            #[inline]
            fn read($c: &mut Cursor<'a>) -> Result<Self, DecodeError> {
                Ok($read)
            }
            fn list(&self, name: &'static str, _: Style, out: &mut FieldList<'a>) {
                out.push(name, Value::$value(*self));
            }
        }
    )+};
}
scalars! {
    // A Windows BOOL has four bytes.
    bool, c => c.u32()? != 0, Bool;
    Guid, c => c.guid()?, Guid;
    WStr<'a>, c => c.wide()?, Wide;
    AStr<'a>, c => c.narrow()?, Narrow;
    // The rest of the payload.
    &'a [u8], c => { let rest = c.remaining(); c.take(rest)? }, Bytes;
}

/// A part at the end of the payload that may be absent in any version.
impl<'a, T: Part<'a>> Part<'a> for Option<T> {
    fn read(c: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        if c.rest().is_empty() {
            Ok(None)
        } else {
            T::read(c).map(Some)
        }
    }
    fn list(&self, name: &'static str, style: Style, out: &mut FieldList<'a>) {
        if let Some(value) = self {
            value.list(name, style, out);
        }
    }
}

impl<'a> Counted<'a> for &'a [u8] {
    fn read_counted(c: &mut Cursor<'a>, count: usize) -> Result<Self, DecodeError> {
        Ok(c.take(count)?)
    }
}

/// Declares payloads: structs with their decoders and published field names.
///
/// A field is `name: Type = "PublishedName"`, then
/// * `as hex` shows the number in hex, `as ptr` reads a pointer of the payload's pointer size (and
///   shows hex), `as list(count)` reads as many elements as the earlier field `count` or a number
///   states;
/// * `if since N` reads it from version N on, `if verbose` in that form only, `if ended` in Defunct
///   events from V5 on: its type becomes an `Option`.
macro_rules! payload {
    ($(
        $(#[$meta:meta])*
        $name:ident $(<$life:lifetime>)? {
            $(
                $(#[$fmeta:meta])*
                $field:ident : $ty:ty = $label:literal
                    $(as $style:ident $(($count:tt))?)?
                    $(if $cond:ident $($arg:literal)?)?
            ),* $(,)?
        }
    )+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name $(<$life>)? {
            $(
                $(#[$fmeta])*
                pub $field: $crate::part::payload!(@type [$ty] $($cond)?),
            )*
        }

        impl<'a> $crate::part::Part<'a> for $name $(<$life>)? {
            #[inline]
            fn read(c: &mut $crate::cursor::Cursor<'a>) -> Result<Self, $crate::DecodeError> {
                $(
                    let $field = $crate::part::payload!(
                        @when c [$($cond $($arg)?)?] $crate::part::payload!(@read c [$ty] $($style $(($count))?)?)
                    );
                )*
                Ok(Self { $($field),* })
            }

            fn list(
                &self,
                _: &'static str,
                _: $crate::part::Style,
                #[allow(unused_variables)] out: &mut $crate::value::FieldList<'a>,
            ) {
                $(
                    $crate::part::payload!(
                        @list self.$field, $label, out, $crate::part::payload!(@style $($style)?), $($cond)?
                    );
                )*
            }
        }
    )+};

    (@type [$ty:ty]) => { $ty };
    (@type [$ty:ty] $cond:ident) => { Option<$ty> };

    (@read $c:ident [$ty:ty]) => { <$ty as $crate::part::Part<'_>>::read($c)? };
    (@read $c:ident [$ty:ty] hex) => { <$ty as $crate::part::Part<'_>>::read($c)? };
    (@read $c:ident [$ty:ty] ptr) => { $c.pointer()? };
    (@read $c:ident [$ty:ty] ptr_since_1) => {
        if $c.version >= 1 { $c.pointer()? } else { u64::from($c.u32()?) }
    };
    (@read $c:ident [$ty:ty] list($count:tt)) => {
        <$ty as $crate::part::Counted<'_>>::read_counted($c, $count as usize)?
    };

    (@when $c:ident [] $read:expr) => { $read };
    (@when $c:ident [since $v:literal] $read:expr) => { if $c.version >= $v { Some($read) } else { None } };
    (@when $c:ident [ended] $read:expr) => {
        if $c.shape.form == $crate::cursor::Form::Defunct && $c.version >= 5 { Some($read) } else { None }
    };
    (@when $c:ident [verbose] $read:expr) => {
        if $c.shape.form == $crate::cursor::Form::Verbose { Some($read) } else { None }
    };

    (@style) => { $crate::part::Style::Plain };
    (@style list) => { $crate::part::Style::Plain };
    (@style $style:ident) => { $crate::part::Style::Hex };

    (@list $value:expr, $label:literal, $out:ident, $style:expr, ) => {
        $crate::part::Part::list(&$value, $label, $style, $out);
    };
    (@list $value:expr, $label:literal, $out:ident, $style:expr, $cond:ident) => {
        if let Some(value) = &$value {
            $crate::part::Part::list(value, $label, $style, $out);
        }
    };
}
pub(crate) use payload;

/// Declares parts that the shape determines; they take no bytes.
macro_rules! shape_part {
    ($($ty:ident: $shape:ident => $value:expr;)+) => {$(
        impl<'a> $crate::part::Part<'a> for $ty {
            #[inline]
            fn read(c: &mut $crate::cursor::Cursor<'a>) -> Result<Self, $crate::DecodeError> {
                let $shape = c.shape;
                Ok($value)
            }
            fn list(&self, _: &'static str, _: $crate::part::Style, _: &mut $crate::value::FieldList<'a>) {}
        }
    )+};
}
pub(crate) use shape_part;

shape_part! { Action: shape => shape.action; }

/// Declares an enum of payloads, or of such enums.
macro_rules! events {
    ($(#[$meta:meta])* $name:ident { $($variant:ident($ty:ident $(<$life:lifetime>)?),)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum $name<'a> {
            $(#[doc = concat!("See [`", stringify!($ty), "`].")] $variant($ty $(<$life>)?),)*
        }

        impl<'a> $name<'a> {
            pub(crate) fn list(
                &self,
                name: &'static str,
                style: $crate::part::Style,
                out: &mut $crate::value::FieldList<'a>,
            ) {
                #[allow(unused_imports)]
                use $crate::part::Part as _;
                match self {
                    $(Self::$variant(event) => event.list(name, style, out),)*
                }
            }
        }
    };
}
pub(crate) use events;
