//! Typed indices into tables.

macro_rules! index_type {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub(crate) u32);

        impl $name {
            /// Returns the position in its table, dense from 0.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index_type! {
    /// An event type of a session.
    EventTypeId
}

index_type! {
    /// One process incarnation: a process id from start to stop.
    #[derive(Default)]
    ProcessIndex
}

index_type! {
    /// One thread of one process incarnation.
    ThreadIndex
}

index_type! {
    /// A resolved stack of one [`Resolver`](crate::Resolver), identified by its innermost node. A
    /// caller precedes its callees.
    ResolvedStack
}

index_type! {
    /// An activity that events state by its id.
    ActivityIdIndex
}

index_type! {
    /// A code body of one process, dense from 0 in the order of first events.
    BodyIndex
}

index_type! {
    /// A CLR module of one process.
    ModuleIndex
}

index_type! {
    /// An image of one process, dense from 0 in the order of first events.
    ImageIndex
}

index_type! {
    /// A stack of a [`StackTable`](crate::StackTable): the node of its innermost frame.
    /// Its callers are reached through [`StackTable::caller`](crate::StackTable::caller).
    StackId
}

index_type! {
    /// A function of one [`Resolver`](crate::Resolver).
    FunctionId
}

index_type! {
    /// A binary of one [`Resolver`](crate::Resolver).
    BinaryId
}

index_type! {
    /// A frame of one [`Resolver`](crate::Resolver).
    FrameId
}

impl StackId {
    /// The id of a stack that is not yet known.
    pub const PENDING: StackId = StackId(u32::MAX);
}

/// A method name of one [`NameTable`](crate::names::NameTable).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NameId(pub(crate) u32);

impl NameId {
    /// The id of an unknown name.
    pub(crate) const NONE: NameId = NameId(u32::MAX);
}

impl Default for NameId {
    fn default() -> Self {
        NameId::NONE
    }
}
