//! Lines of text for a terminal.

/// As `writeln!`, but writes one line whose arguments cannot control the terminal.
#[macro_export]
macro_rules! text_line {
    ($out:expr, $($text:tt)*) => {
        writeln!($out, "{}", $crate::printable(&format!($($text)*)))
    };
}
