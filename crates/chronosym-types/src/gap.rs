//! Parts of a file that could not be used: what every reader says of damage.

use std::fmt;

/// A part of a file of which nothing, or not everything, could be used. What stands before and after it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Gap {
    /// Which of the files that are read as one, from 0.
    pub file: u32,
    /// Where it begins: bytes from the start of the file, unpacked if the file is packed as a whole.
    pub offset: u64,
    /// Bytes of the file. Of a packed part it is the whole part, of which some records may have been read.
    pub length: u64,
    /// Why.
    pub cause: GapCause,
}

impl Gap {
    /// A gap in the only file there is.
    pub fn new(offset: u64, length: u64, cause: GapCause) -> Self {
        Self {
            file: 0,
            offset,
            length,
            cause,
        }
    }

    /// Offset after its last byte.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}

macro_rules! causes {
    ($($(#[$meta:meta])* $cause:ident $word:literal $text:literal,)*) => {
        /// Why a part of a file could not be used.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum GapCause {
            $($(#[$meta])* $cause,)*
        }

        impl GapCause {
            /// All there are, in order.
            pub const ALL: [Self; [$($word),*].len()] = [$(Self::$cause),*];

            /// A word for programs.
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
    /// A record makes no sense, and what follows it in its block cannot be found.
    BadRecord "bad_record" "a record makes no sense",
    /// The header, the content or the end of a block makes no sense.
    BadBlock "bad_block" "a block makes no sense",
    /// No block begins here, up to the next one that could be found.
    NoBlock "no_block" "no block begins here",
    /// The bytes do not unpack to what they should.
    BadCompression "bad_compression" "it does not unpack",
    /// They unpack to more than a limit allows.
    TooLarge "too_large" "it unpacks to more than a limit allows",
    /// The source failed when it was asked for them.
    Unreadable "unreadable" "reading the file failed",
    /// They follow the end of the recording.
    AfterEnd "after_end" "it follows the end of the recording",
    /// The file ends inside something; the gap is what there is of it, which may be nothing.
    CutShort "cut_short" "the file is cut short",
}

/// The gaps of a recording: all of them counted, the first ones listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    listed: Vec<Gap>,
    totals: [GapTotal; GapCause::ALL.len()],
}

/// What gaps come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GapTotal {
    /// How many.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl GapTotal {
    fn add(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

impl Gaps {
    /// How many are listed at most, 1,000: more of them say nothing to anybody. What comes after is only counted.
    pub const MOST_LISTED: usize = 1_000;

    /// Adds one. Where it goes on from the one before for the same cause, that one grows.
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

    /// Adds those of a reader whose files become the files from `first_file` on.
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

    /// The first ones that were found, in the order in which they were.
    pub fn listed(&self) -> &[Gap] {
        &self.listed
    }

    /// Those for a cause.
    pub fn of(&self, cause: GapCause) -> GapTotal {
        self.totals.get(cause as usize).copied().unwrap_or_default()
    }

    /// All of them.
    pub fn total(&self) -> GapTotal {
        self.totals
            .iter()
            .fold(GapTotal::default(), |mut all, total| {
                all.add(*total);
                all
            })
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    /// Whether the recording ends too early.
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
    fn each_cause_has_its_place_and_its_word() {
        let mut words: Vec<&str> = GapCause::ALL.map(GapCause::as_str).to_vec();
        for (place, cause) in GapCause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, place);
        }
        words.dedup();
        assert_eq!(words.len(), GapCause::ALL.len());
    }
}
