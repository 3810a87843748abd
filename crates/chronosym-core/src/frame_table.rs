//! Distinct frames in columns, with each text stored once.

use chronosym_events::OptimizationTier;
use chronosym_types::hash::HashMap;

use crate::evidence::{Certainty, Evidence, LineReason, NameReason};
use crate::frame::{Code, Frame};
use crate::ids::{BodyIndex, ProcessIndex};
use crate::strings::{StringId, Strings};

/// Identifies a frame of one [`FrameTable`]: its position in each column. Has the layout of a
/// `u32`.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableFrame(u32);

impl TableFrame {
    /// Returns the position in the columns, dense from 0.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Identifies a text of one [`FrameTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextId(u32);

impl TextId {
    /// The empty text, which represents an absent one.
    pub const EMPTY: TextId = TextId(0);

    /// Returns the position among all texts, dense from 0.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

macro_rules! frame_table {
    ($($(#[$meta:meta])* $name:ident: $type:ty,)*) => {
        /// All properties of a frame except its address: frames at several addresses share them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        struct Columns {
            $($name: $type,)*
        }

        /// Distinct frames in columns: values of one index belong to one frame ([`TableFrame`]).
        ///
        /// Frames are only ever added. Memory follows the number of distinct frames; a new
        /// [`Resolver`](crate::Resolver) has a new table.
        #[derive(Debug, Default)]
        pub struct FrameTable {
            index: HashMap<Columns, TableFrame>,
            texts: Strings,
            $($name: Vec<$type>,)*
        }

        impl FrameTable {
            $($(#[$meta])*
            pub fn $name(&self) -> &[$type] {
                &self.$name
            })*

            fn push(&mut self, columns: Columns) {
                $(self.$name.push(columns.$name);)*
            }
        }
    };
}

frame_table! {
    /// Returns the simple names of modules and images: no folder, no extension.
    module: TextId,
    /// Returns the methods with namespace and type; for native code demangled symbols.
    method: TextId,
    /// Returns the signatures as the runtime spells them.
    signature: TextId,
    /// Returns the source files.
    file: TextId,
    /// Returns the source lines from 1; 0 if unknown.
    line: u32,
    /// Returns the columns in source lines from 1; 0 if unknown.
    column: u32,
    /// Returns whether the frames are inlined into the next one that is not.
    inlined: bool,
    /// Returns the tiers of the code.
    tier: Option<OptimizationTier>,
    /// Returns the strongest evidence.
    evidence: Option<Evidence>,
    /// Returns the certainty of the answers.
    certainty: Option<Certainty>,
    /// Returns why the name is missing or incomplete.
    reason: Option<NameReason>,
    /// Returns why a frame with a name has no line.
    line_reason: Option<LineReason>,
    /// Returns the code bodies; for inlinees, the bodies that contain them.
    body: Option<(ProcessIndex, BodyIndex)>,
}

impl FrameTable {
    /// Returns the number of frames.
    pub fn len(&self) -> usize {
        self.line.len()
    }

    /// Returns whether there is no frame.
    pub fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    /// Returns a text; an empty one for an id of another table.
    pub fn text(&self, id: TextId) -> &str {
        self.texts.get(StringId(id.0))
    }

    /// Returns all texts, by [`TextId`].
    pub fn texts(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.texts.count()).map(|index| self.texts.get(StringId(index as u32)))
    }

    /// Returns the position of a frame, which is added if it is new.
    pub(crate) fn insert(&mut self, frame: &Frame) -> TableFrame {
        let mut text = |text: Option<&str>| {
            let id = text.map_or(StringId::EMPTY, |text| self.texts.intern(text));
            TextId(id.0)
        };
        let line = frame.line.as_ref().ok();
        let columns = Columns {
            module: text(frame.module()),
            method: text(frame.name().ok()),
            signature: text(frame.signature()),
            file: text(line.map(|line| &*line.file)),
            line: line.map_or(0, |line| line.line),
            column: line.and_then(|line| line.column).unwrap_or(0),
            inlined: frame.inlined,
            tier: frame.tier,
            evidence: frame.evidence,
            certainty: frame.certainty,
            reason: frame.name_reason(),
            line_reason: frame.line_reason(),
            body: match frame.code {
                Code::Body(process, body) => Some((process, body)),
                _ => None,
            },
        };
        let next = TableFrame(self.len() as u32);
        let frame = *self.index.entry(columns).or_insert(next);
        if frame == next {
            self.push(columns);
        }
        frame
    }
}
