//! Messages of the diagnostics protocol.
//!
//! A message is a header of 20 bytes and a payload: `DOTNET_IPC_V1` and a zero, the size with the
//! header (u16), command set, command, and a zero (u16). A connection carries one command; its
//! reply has the command set 0xFF.

use crate::error::RecordError;

pub(crate) const HEADER: usize = 20;
const MAGIC: &[u8; 14] = b"DOTNET_IPC_V1\0";
const SERVER: u8 = 0xff;
const OK: u8 = 0;

/// A command: its description, its set and its number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    pub what: &'static str,
    pub set: u8,
    pub id: u8,
}

pub(crate) const STOP: Command = Command {
    what: "stop the session",
    set: 2,
    id: 1,
};
/// CollectTracing, CollectTracing2 and CollectTracing4.
pub(crate) const COLLECT: Command = Command {
    what: "start a session",
    set: 2,
    id: 2,
};
pub(crate) const COLLECT_2: Command = Command { id: 3, ..COLLECT };
pub(crate) const COLLECT_4: Command = Command { id: 5, ..COLLECT };
pub(crate) const PROCESS_INFO: Command = Command {
    what: "describe the process",
    set: 4,
    id: 0,
};
pub(crate) const RESUME: Command = Command {
    what: "resume the program",
    set: 4,
    id: 1,
};

/// Returns a command as bytes; `None` if its payload is too long.
pub(crate) fn message(command: Command, payload: &[u8]) -> Option<Vec<u8>> {
    let size = u16::try_from(HEADER + payload.len()).ok()?;
    let mut message = MAGIC.to_vec();
    message.extend(size.to_le_bytes());
    message.extend([command.set, command.id, 0, 0]);
    message.extend(payload);
    Some(message)
}

/// The length of the payload that follows the header of a reply.
pub(crate) fn reply_length(header: &[u8; HEADER]) -> Result<usize, RecordError> {
    if !header.starts_with(MAGIC) {
        return Err(RecordError::Protocol("its reply has another signature"));
    }
    let size = usize::from(u16::from_le_bytes([header[14], header[15]]));
    let length = size.checked_sub(HEADER);
    length.ok_or(RecordError::Protocol("its reply is shorter than a header"))
}

/// Checks the result of the command in a reply.
pub(crate) fn check(
    command: Command,
    header: &[u8; HEADER],
    payload: &[u8],
) -> Result<(), RecordError> {
    if header[16] != SERVER {
        return Err(RecordError::Protocol("its reply is none"));
    }
    if header[17] == OK {
        return Ok(());
    }
    let code = payload.first_chunk::<4>();
    let hresult = code.map_or(0, |code| u32::from_le_bytes(*code));
    let what = command.what;
    Err(RecordError::Refused { what, hresult })
}

/// Appends a string: the number of UTF-16 units with a zero, and the units.
pub(crate) fn put_string(out: &mut Vec<u8>, text: &str) {
    let units: Vec<u16> = text.encode_utf16().chain([0]).collect();
    out.extend((units.len() as u32).to_le_bytes());
    out.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
}
