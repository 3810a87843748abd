//! Processes and threads.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "sizes of a count of 8 bits and of pointers"
)]

use std::fmt;

use crate::cursor::{Cursor, Form};
use crate::part::{Part, Style, payload, shape_part};
use crate::value::{FieldList, Value};
use crate::{AStr, Action, DecodeError, WStr};

/// The action of a process event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProcessAction {
    /// The process starts, ends, or is alive when a session starts or ends.
    Life(Action),
    /// The process has ended, but is still referenced.
    Defunct,
}

shape_part! {
    ProcessAction: shape => match shape.form {
        Form::Defunct => Self::Defunct,
        _ => Self::Life(shape.action),
    };
}

payload! {
    /// A process: Start, Stop, DCStart, DCStop, Defunct.
    Process<'a> {
        /// The action on the process.
        action: ProcessAction = "",
        /// The address of the kernel's process object, unique while the process is alive.
        unique_key: u64 = "UniqueProcessKey" as ptr,
        /// Its id.
        process_id: u32 = "ProcessId",
        /// The id of its parent.
        parent_id: u32 = "ParentId",
        /// The logon session.
        session_id: u32 = "SessionId",
        /// The exit status; 259 while the process runs.
        exit_status: i32 = "ExitStatus",
        /// The physical address of its page table.
        directory_table_base: u64 = "DirectoryTableBase" as ptr if since 3,
        /// Flags: 1 packaged, 2 WOW64, 4 protected, and others.
        flags: u32 = "Flags" as hex if since 4,
        /// The user.
        user_sid: Sid<'a> = "UserSID",
        /// The name of its image file, without a path.
        image_file_name: AStr<'a> = "ImageFileName",
        /// Its command line.
        command_line: WStr<'a> = "CommandLine" if since 2,
        /// The package that it belongs to.
        package_full_name: WStr<'a> = "PackageFullName" if since 4,
        /// Its id in that package.
        application_id: WStr<'a> = "ApplicationId" if since 4,
        /// When it ended, as a FILETIME (V5, Defunct).
        exit_time: u64 = "ExitTime" if ended,
    }
}

impl Process<'_> {
    /// Returns whether this is a 32-bit process on 64-bit Windows, if the event states it.
    pub fn is_wow64(&self) -> Option<bool> {
        self.flags.map(|f| f & 2 != 0)
    }
}

/// A security identifier, without the TOKEN_USER that the kernel writes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Sid<'a>(&'a [u8]);

impl<'a> Sid<'a> {
    /// Reads a SID without a TOKEN_USER: revision, count of sub-authorities, authority,
    /// sub-authorities.
    pub(crate) fn read_bare(c: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        let mut ahead = *c;
        ahead.u8()?;
        let count = ahead.u8()?;
        Ok(Self(c.take(8 + 4 * usize::from(count))?))
    }
}

impl fmt::Display for Sid<'_> {
    /// `S-1-5-…`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [revision, _, authority @ ..] = self.0 else {
            return Ok(());
        };
        let Some((authority, subs)) = authority.split_at_checked(6) else {
            return Ok(());
        };
        let authority = authority.iter().fold(0u64, |n, b| n << 8 | u64::from(*b));
        write!(f, "S-{revision}-{authority}")?;
        let subs = subs.chunks_exact(4).filter_map(|sub| sub.first_chunk());
        subs.map(|sub| u32::from_le_bytes(*sub))
            .try_for_each(|sub| write!(f, "-{sub}"))
    }
}

impl<'a> Part<'a> for Sid<'a> {
    /// Reads a TOKEN_USER of two pointers and a SID; four zero bytes mean no SID.
    fn read(c: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        let mut ahead = *c;
        if ahead.u32()? == 0 {
            *c = ahead;
            return Ok(Self::default());
        }
        let pointers = 2 * c.pointer_size.bytes();
        c.take(pointers)?;
        Self::read_bare(c)
    }

    fn list(&self, name: &'static str, _: Style, out: &mut FieldList<'a>) {
        out.push(name, Value::Text(self.to_string().into()));
    }
}

payload! {
    /// A thread: Start, Stop, DCStart, DCStop.
    Thread<'a> {
        /// The action on the thread.
        action: Action = "",
        /// The process that it belongs to (not the one that logs).
        process_id: u32 = "ProcessId",
        /// Its id.
        thread_id: u32 = "TThreadId",
        /// Stacks and start address.
        details: ThreadDetails = "" if since 2,
        /// Its priorities and flags.
        priorities: u32 = "Priorities" as hex if since 3,
        /// Its name (newer systems, without a version of its own).
        name: Option<WStr<'a>> = "ThreadName",
    }

    /// The stacks and the start address of a thread.
    ThreadDetails {
        /// The base of its kernel stack; stacks grow down.
        stack_base: u64 = "StackBase" as ptr,
        /// The limit of its kernel stack.
        stack_limit: u64 = "StackLimit" as ptr,
        /// The base of its user stack.
        user_stack_base: u64 = "UserStackBase" as ptr,
        /// The limit of its user stack.
        user_stack_limit: u64 = "UserStackLimit" as ptr,
        /// V2: the start address for the kernel. V3: the processors that it may run on.
        affinity: u64 = "Affinity" as ptr,
        /// The start address.
        win32_start_address: u64 = "Win32StartAddr" as ptr,
        /// Its thread environment block.
        teb_base: u64 = "TebBase" as ptr,
        /// The tag of its service.
        sub_process_tag: u32 = "SubProcessTag",
    }

    /// The name of a thread.
    ThreadName<'a> {
        /// The process that it belongs to.
        process_id: u32 = "ProcessId",
        /// The thread's id.
        thread_id: u32 = "ThreadId",
        /// The name.
        name: WStr<'a> = "ThreadName",
    }
}
