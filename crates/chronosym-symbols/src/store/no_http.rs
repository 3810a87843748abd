//! The client of a build without the feature `http`: it sends no requests.

use std::path::Path;

use super::config::FetchLimits;
use super::driver::{Fetched, NotFetched};

/// Replaces the HTTP client.
#[derive(Debug)]
pub struct Client;

impl Client {
    pub fn new(_: &FetchLimits) -> Self {
        Self
    }

    pub fn download(&self, _url: &str, _to: &Path, _limit: u64) -> Fetched {
        Fetched::Unreachable("built without the feature `http`".into())
    }

    pub fn fetch(&self, _url: &str, _limit: u64) -> Result<Vec<u8>, NotFetched> {
        Err(NotFetched::Off)
    }
}
