//! Gaps: unusable parts of a file, as all readers report damage.

use std::fmt;

/// A part of a file that could not be used, or not completely. Everything around it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Gap {
    /// Index of the file, from 0, if several are read as one.
    pub file: u32,
    /// Bytes from the start of the file, uncompressed if the whole file is compressed.
    pub offset: u64,
    /// Length in bytes. Covers all of a compressed part, even if some of its records were read.
    pub length: u64,
    /// Why.
    pub cause: GapCause,
}

impl Gap {
    /// Returns a gap in a single file.
    pub fn new(offset: u64, length: u64, cause: GapCause) -> Self {
        Self {
            file: 0,
            offset,
            length,
            cause,
        }
    }

    /// Returns the offset after its last byte.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}

macro_rules! causes {
    ($($(#[$meta:meta])* $cause:ident $word:literal $text:literal,)*) => {
        /// Why a part of a file could not be used (closed list).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum GapCause {
            $($(#[$meta])* $cause,)*
        }

        impl GapCause {
            /// Every member, in order.
            pub const ALL: [Self; [$($word),*].len()] = [$(Self::$cause),*];

            /// Returns the spelling in JSON.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$cause => $word,)* }
            }
        }

        impl fmt::Display for GapCause {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$cause => $text,)* })
            }
        }
    };
}

causes! {
    /// A record is invalid, and the rest of its block cannot be found.
    BadRecord "bad_record" "a record is invalid",
    /// The header, content or end of a block is invalid.
    BadBlock "bad_block" "a block is invalid",
    /// There is no block here, up to the next one that was found.
    NoBlock "no_block" "no block begins here",
    /// The bytes do not decompress.
    BadCompression "bad_compression" "it cannot be decompressed",
    /// The bytes decompress to more than a limit allows.
    TooLarge "too_large" "its decompressed size exceeds a limit",
    /// The source failed to return the bytes.
    Unreadable "unreadable" "reading the file failed",
    /// The bytes follow the end of the recording.
    AfterEnd "after_end" "it follows the end of the recording",
    /// The file ends inside a part; the gap is the existing rest of it, which may be empty.
    CutShort "cut_short" "the file is cut short",
}

/// The gaps of a recording: the first ones listed, all of them counted.
///
/// # Examples
///
/// ```
/// use chronosym_types::{Gap, GapCause, Gaps};
///
/// let mut gaps = Gaps::default();
/// gaps.add(Gap::new(100, 8, GapCause::BadRecord));
/// gaps.add(Gap::new(108, 8, GapCause::BadRecord)); // continues the gap before it
/// gaps.add(Gap::new(500, 4, GapCause::BadRecord));
/// assert_eq!(gaps.listed().len(), 2);
/// assert_eq!((gaps.total().count, gaps.total().bytes), (2, 20));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    listed: Vec<Gap>,
    totals: [GapTotal; GapCause::ALL.len()],
}

/// Number and size of gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GapTotal {
    /// Number of gaps.
    pub count: u64,
    /// Total length in bytes.
    pub bytes: u64,
}

impl GapTotal {
    fn add(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

impl Gaps {
    /// Largest number of listed gaps; further ones are only counted.
    pub const MOST_LISTED: usize = 1_000;

    /// Adds a gap, or extends the last one if it continues that one for the same cause.
    pub fn add(&mut self, gap: Gap) {
        let mut total = GapTotal {
            count: 1,
            bytes: gap.length,
        };
        let before = self.listed.last_mut().filter(|last| {
            (last.file, last.end(), last.cause) == (gap.file, gap.offset, gap.cause)
        });
        if let Some(last) = before {
            last.length = last.length.saturating_add(gap.length);
            total.count = 0;
        } else if self.listed.len() < Self::MOST_LISTED {
            self.listed.push(gap);
        }
        if let Some(of_cause) = self.totals.get_mut(gap.cause as usize) {
            of_cause.add(total);
        }
    }

    /// Appends the gaps of a reader whose files are numbered from `first_file` on.
    pub fn append(&mut self, other: &Self, first_file: u32) {
        let room = Self::MOST_LISTED.saturating_sub(self.listed.len());
        let listed = other.listed.iter().take(room).map(|gap| Gap {
            file: gap.file.saturating_add(first_file),
            ..*gap
        });
        self.listed.extend(listed);
        for (total, more) in self.totals.iter_mut().zip(other.totals) {
            total.add(more);
        }
    }

    /// Returns the first gaps in the order in which they were found.
    pub fn listed(&self) -> &[Gap] {
        &self.listed
    }

    /// Returns the total for a cause.
    pub fn of(&self, cause: GapCause) -> GapTotal {
        self.totals.get(cause as usize).copied().unwrap_or_default()
    }

    /// Returns the total of all causes.
    pub fn total(&self) -> GapTotal {
        self.totals
            .iter()
            .fold(GapTotal::default(), |mut all, total| {
                all.add(*total);
                all
            })
    }

    /// Returns whether there are no gaps.
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    /// Returns whether the recording is truncated.
    pub fn is_cut_short(&self) -> bool {
        self.of(GapCause::CutShort).count > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_that_touch_are_one_and_many_are_counted() {
        let mut gaps = Gaps::default();
        assert!(gaps.is_empty());
        gaps.add(Gap::new(10, 5, GapCause::NoBlock));
        gaps.add(Gap::new(15, 5, GapCause::NoBlock));
        gaps.add(Gap::new(20, 5, GapCause::BadBlock));
        assert_eq!(gaps.listed().len(), 2);
        assert_eq!(gaps.listed()[0], Gap::new(10, 10, GapCause::NoBlock));
        assert_eq!(
            gaps.total(),
            GapTotal {
                count: 2,
                bytes: 15
            }
        );
        for i in 0..2_000 {
            gaps.add(Gap::new(100 + 10 * i, 1, GapCause::BadRecord));
        }
        gaps.add(Gap::new(50_000, 0, GapCause::CutShort));
        assert_eq!(gaps.listed().len(), Gaps::MOST_LISTED);
        assert_eq!(gaps.of(GapCause::BadRecord).count, 2_000);
        assert!(gaps.is_cut_short());
        assert_eq!(gaps.total().count, 2_003);

        let mut both = Gaps::default();
        both.add(Gap::new(1, 1, GapCause::BadRecord));
        both.append(&gaps, 1);
        assert_eq!(both.total().count, 2_004);
        assert_eq!(both.listed()[1].file, 1);
        assert_eq!(both.listed().len(), Gaps::MOST_LISTED);
    }

    #[test]
    fn each_cause_has_its_offset_and_its_word() {
        let mut words: Vec<&str> = GapCause::ALL.map(GapCause::as_str).to_vec();
        for (place, cause) in GapCause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, place);
        }
        words.dedup();
        assert_eq!(words.len(), GapCause::ALL.len());
    }
}
