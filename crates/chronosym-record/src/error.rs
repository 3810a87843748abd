//! Why a process cannot be recorded.

use std::io;
use std::time::Duration;

/// Why a process cannot be recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The process does not exist.
    #[error("there is no process {0}")]
    NoProcess(u32),
    /// The process has no diagnostics socket, or the socket is not accessible.
    #[error(
        "process {pid} has no .NET diagnostics socket in {folder}: it runs no .NET, its diagnostics are switched off \
         (DOTNET_EnableDiagnostics=0), or it belongs to another user"
    )]
    NoSocket {
        /// The process.
        pid: u32,
        /// The folder in which it was searched.
        folder: String,
    },
    /// An operation of the system failed.
    #[error("cannot {what}: {error}")]
    Io {
        /// What was attempted.
        what: &'static str,
        /// Why it failed.
        error: io::Error,
    },
    /// The runtime did not answer in time.
    #[error("the runtime did not answer within {} s", .0.as_secs())]
    Silent(Duration),
    /// The peer does not speak the protocol of .NET.
    #[error("the peer does not speak the diagnostics protocol: {0}")]
    Protocol(&'static str),
    /// The runtime refused a command.
    #[error("the runtime refused to {what} (error {hresult:08x}{})", meaning(*.hresult))]
    Refused {
        /// The command.
        what: &'static str,
        /// The runtime's error.
        hresult: u32,
    },
    /// The program ended before its runtime was ready to be recorded.
    #[error(
        "the program ended ({0}) before a runtime of .NET 5 or later was ready in it; start one of .NET Core 3.1 by itself and record it with --pid"
    )]
    Ended(String),
    /// No runtime became ready in a program that was started.
    #[error("no .NET 5 or later became ready in the program within {} s", .0.as_secs())]
    NoRuntime(Duration),
}

impl RecordError {
    pub(crate) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| RecordError::Io { what, error }
    }

    /// Returns whether the runtime is too old for the command or for its version.
    pub(crate) fn is_unknown_command(&self) -> bool {
        matches!(
            self,
            RecordError::Refused {
                hresult: UNKNOWN_COMMAND | BAD_ENCODING,
                ..
            }
        )
    }
}

const BAD_ENCODING: u32 = 0x8013_1384;
const UNKNOWN_COMMAND: u32 = 0x8013_1385;

fn meaning(hresult: u32) -> &'static str {
    match hresult {
        UNKNOWN_COMMAND => ": unknown command",
        BAD_ENCODING => ": bad encoding",
        0x8000_4005 => ": no session is free, or it failed otherwise",
        0x8013_135b | 0x8013_1371 => ": the runtime is not initialized yet",
        _ => "",
    }
}
