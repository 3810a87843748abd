//! A portable reader of EventPipe traces: nettrace V4 to V6 and netperf.
#![deny(missing_docs)]
