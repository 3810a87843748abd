//! The choices of an export.

/// Version of the schema, stored in every file under the key `chronosym.version`.
pub const FORMAT_VERSION: &str = "1";

/// The format of the files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Parquet, compressed by gzip.
    #[default]
    Parquet,
    /// Arrow's file format (IPC), not compressed.
    Arrow,
}

impl Format {
    /// Returns the extension of its files.
    pub const fn extension(self) -> &'static str {
        match self {
            Format::Parquet => "parquet",
            Format::Arrow => "arrow",
        }
    }
}

/// The columns of frames that are filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameNames {
    /// Names and lines, as far as they are known.
    #[default]
    Named,
    /// Addresses only: those in an image with its identity and the bytes from its base.
    Addresses,
}

/// How much is kept of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Detail {
    /// Each sample with its time, in the table `samples`, beside the other tables.
    #[default]
    Samples,
    /// The sums of samples that differ in time and weight only, with the labels of their stacks, in
    /// the table `profiles`. Beside it is `diagnostics` only.
    Sums,
}
