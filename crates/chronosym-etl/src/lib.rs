//! A portable reader of Windows ETW traces (.etl).
#![deny(missing_docs)]
