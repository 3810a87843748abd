//! The command line of chronosym.
fn main() {}
