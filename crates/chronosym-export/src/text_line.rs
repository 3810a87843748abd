//! Lines of text for a terminal.

/// Writes one line like `writeln!`; its arguments cannot control the terminal.
#[macro_export]
macro_rules! text_line {
    ($out:expr, $($text:tt)*) => {
        writeln!($out, "{}", $crate::printable(&format!($($text)*)))
    };
}
