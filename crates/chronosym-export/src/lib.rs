//! Writes resolved profiles: folded stacks, text trees and more.
#![deny(missing_docs)]
