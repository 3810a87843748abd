//! Numbers of what is kept in a table, each kind a type of its own.

macro_rules! index_type {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub(crate) u32);

        impl $name {
            /// The position in its table, dense from 0.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index_type! {
    /// Names an event type of a session.
    EventTypeId
}

index_type! {
    /// Names one process incarnation: a process id between its start and its stop.
    ProcessIndex
}

index_type! {
    /// Names one thread of one process incarnation.
    ThreadIndex
}

index_type! {
    /// Names a code body of one process, dense from 0 in the order in which events stated them.
    BodyIndex
}

index_type! {
    /// Names a CLR module of one process.
    ModuleIndex
}

index_type! {
    /// Names an image of one process, dense from 0 in the order in which events stated them.
    ImageIndex
}

index_type! {
    /// A stack of a [`StackTable`](crate::StackTable): the node of its innermost frame.
    /// Its callers are reached through [`StackTable::caller`](crate::StackTable::caller).
    StackId
}

index_type! {
    /// Names a function of one [`Resolver`](crate::Resolver).
    FunctionId
}

index_type! {
    /// Names a binary of one [`Resolver`](crate::Resolver).
    BinaryId
}

index_type! {
    /// A frame of one [`Resolver`](crate::Resolver).
    FrameId
}

impl StackId {
    /// Stands for a stack that is not known yet.
    pub const PENDING: StackId = StackId(u32::MAX);
}

/// Names a method name of one [`Names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NameId(pub(crate) u32);

impl NameId {
    /// No name is known.
    pub(crate) const NONE: NameId = NameId(u32::MAX);
}
