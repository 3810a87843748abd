//! Queries a server: spellings, compressed files and pointers, redirects, retries, and the state of
//! servers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::disk::temp_path;
use super::driver::{Driver, Fetched};
use super::layout::{self, Form, Pointer};
use super::local::not_unpacked;
use super::outcome::{AttemptResult, LocatedFile, SearchLocation};
use super::search::{Search, Sink};
use super::url::{RedirectError, ServerUrl, redacted, redirect};

/// Maximum pause that a server's `Retry-After` causes.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The result for one URL, after redirects and retries.
enum Reply {
    Saved,
    NotThere,
    /// This URL failed; others of the server may work.
    Refused,
    /// The server failed: send no more requests.
    Trouble,
}

impl<'s, D: Driver> Search<'s, D> {
    /// Queries a debuginfod server, or a symbol server by keys.
    pub(super) async fn server(
        &mut self,
        server: &ServerUrl,
        debuginfod: bool,
        sinks: &[Sink<'s>],
    ) -> Option<LocatedFile> {
        let location = SearchLocation::Url(server.to_string());
        let id = server.join([]);
        let known_tier = self.memory.two_tier(&id);
        let urls = match debuginfod {
            true => layout::debuginfod_urls(server, &self.request.wanted),
            false => layout::symbol_urls(server, self.keys(), known_tier == Some(true)),
        };
        let what = redacted(&urls.first()?.0);
        if self.config.offline {
            return self.miss(location, AttemptResult::Offline);
        }
        if let Some(why) = self.memory.down(&id) {
            return self.miss(location, AttemptResult::ServerDown(why));
        }
        if self.memory.is_missing(&what) || self.recall(&what).await {
            return self.miss(location, AttemptResult::KnownMissing);
        }
        let sinks = self.ready_or_temporary(sinks).await;
        let Some(sink) = sinks.first() else {
            let why = "no folder to store it in".into();
            return self.miss(location, AttemptResult::Failed(why));
        };
        let mut visit = Visit {
            server: id,
            folder: sink.folder,
            sinks: &sinks,
            search: self,
            certain: true,
            in_trouble: false,
        };
        if let Some(file) = visit.ask_all(urls).await {
            return Some(file);
        }
        if !debuginfod
            && !visit.in_trouble
            && known_tier.is_none()
            && visit.probe_tiers(server).await
        {
            let urls = layout::symbol_urls(server, visit.search.keys(), true);
            if let Some(file) = visit.ask_all(urls).await {
                return Some(file);
            }
        }
        if visit.certain && !visit.in_trouble {
            self.note(location, AttemptResult::NotFound);
            if let Some(cache) = &self.config.cache {
                self.driver.note_missing(cache, &what).await;
            }
            self.memory.note_missing(what);
        }
        None
    }

    async fn recall(&self, what: &str) -> bool {
        let age = self.config.fetch.missing_age;
        match &self.config.cache {
            Some(cache) => self.driver.recall_missing(cache, what, age).await,
            None => false,
        }
    }
}

struct Visit<'v, 's, D> {
    search: &'v mut Search<'s, D>,
    /// Its full URL, which identifies it in the state of servers.
    server: String,
    /// The folder of the first sink, which receives its files.
    folder: &'s Path,
    sinks: &'v [Sink<'s>],
    /// Every response so far was a plain "not found".
    certain: bool,
    in_trouble: bool,
}

impl<D: Driver> Visit<'_, '_, D> {
    async fn ask_all(&mut self, urls: Vec<(String, Form)>) -> Option<LocatedFile> {
        for (url, form) in urls {
            let temp = temp_path(self.folder);
            let file = match (self.get(&url, &temp).await, form) {
                (Reply::Saved, Form::Plain | Form::Packed) => self.take(&url, temp).await,
                (Reply::Saved, Form::Pointer) => self.follow(&url, temp).await,
                (Reply::NotThere, _) => continue,
                (Reply::Refused, _) => None,
                (Reply::Trouble, _) => {
                    self.in_trouble = true;
                    return None;
                }
            };
            if file.is_some() {
                return file;
            }
            self.certain = false;
        }
        None
    }

    /// Installs a downloaded file: decompresses it if necessary, verifies it, and moves it to its
    /// location.
    async fn take(&mut self, url: &str, temp: PathBuf) -> Option<LocatedFile> {
        let location = SearchLocation::Url(redacted(url));
        let limit = self.search.config.fetch.max_bytes;
        let unpacked = temp_path(self.folder);
        let driver = self.search.driver;
        let file = match driver.unpack(&temp, &unpacked, limit).await {
            Ok(false) => temp,
            Ok(true) => {
                driver.remove(&temp).await;
                unpacked
            }
            Err(error) => {
                self.search.note(location, not_unpacked(&error, limit));
                driver.remove(&temp).await;
                return None;
            }
        };
        self.search.store(file, location, self.sinks).await
    }

    /// Follows a server's pointer file, to a web address only: a server must not choose a local
    /// file to be read.
    async fn follow(&mut self, url: &str, temp: PathBuf) -> Option<LocatedFile> {
        let text = self.search.driver.read_text(&temp).await;
        self.search.driver.remove(&temp).await;
        let target = match Pointer::parse(&text.ok()?) {
            Some(Pointer::Path(target)) if target.contains("://") => {
                redirect(url, &target).map_err(|why| AttemptResult::Refused(why.to_string()))
            }
            Some(Pointer::Path(target)) => {
                Err(AttemptResult::Refused(format!("it points to {target}")))
            }
            Some(Pointer::Message(message)) => {
                Err(AttemptResult::Failed(format!("the server says: {message}")))
            }
            None => Err(AttemptResult::Failed("it has no target".into())),
        };
        let target = match target {
            Ok(target) => target,
            Err(result) => return self.search.miss(SearchLocation::Url(redacted(url)), result),
        };
        let temp = temp_path(self.folder);
        match self.get(&target, &temp).await {
            Reply::Saved => self.take(&target, temp).await,
            Reply::NotThere => {
                let location = SearchLocation::Url(redacted(&target));
                self.search.miss(location, AttemptResult::NotFound)
            }
            Reply::Refused | Reply::Trouble => None,
        }
    }

    /// Returns whether the server has two tiers; queried once per run, after the first miss.
    async fn probe_tiers(&mut self, server: &ServerUrl) -> bool {
        let url = server.join([layout::TWO_TIER]);
        let temp = temp_path(self.folder);
        let two_tier = match self.get(&url, &temp).await {
            Reply::Saved => {
                self.search.driver.remove(&temp).await;
                true
            }
            Reply::NotThere | Reply::Refused => false,
            Reply::Trouble => return false,
        };
        self.search.memory.set_two_tier(&self.server, two_tier);
        two_tier
    }

    /// Requests one URL, follows redirects and retries failures.
    async fn get(&mut self, url: &str, to: &Path) -> Reply {
        let (memory, driver) = (self.search.memory, self.search.driver);
        let limits = &self.search.config.fetch;
        let mut ended = |result, reply| {
            self.search.note(SearchLocation::Url(redacted(url)), result);
            reply
        };
        let mut url = url.to_owned();
        let mut redirects = 0_u32;
        let mut retries = 0;
        loop {
            let (why, at_once, pause) = match driver.download(&url, to, limits.max_bytes).await {
                Fetched::Saved => {
                    memory.answered(&self.server);
                    return Reply::Saved;
                }
                Fetched::Status {
                    code: 404 | 410, ..
                } => {
                    memory.answered(&self.server);
                    return Reply::NotThere;
                }
                Fetched::Status {
                    code: 301 | 302 | 303 | 307 | 308,
                    location,
                    ..
                } => {
                    redirects = redirects.saturating_add(1);
                    let target = if redirects > limits.max_redirects {
                        Err(RedirectError::TooMany(limits.max_redirects))
                    } else {
                        redirect(&url, location.as_deref().unwrap_or_default())
                    };
                    url = match target {
                        Ok(target) => target,
                        Err(why) => {
                            return ended(AttemptResult::Refused(why.to_string()), Reply::Refused);
                        }
                    };
                    continue;
                }
                Fetched::Status {
                    code: code @ (429 | 500..=599),
                    retry_after,
                    ..
                } => (format!("status {code}"), false, retry_after),
                Fetched::Status { code, .. } => {
                    memory.answered(&self.server);
                    return ended(
                        AttemptResult::Failed(format!("status {code}")),
                        Reply::Refused,
                    );
                }
                Fetched::TooLarge => {
                    return ended(AttemptResult::TooLarge(limits.max_bytes), Reply::Refused);
                }
                Fetched::NotSaved(why) => return ended(AttemptResult::Failed(why), Reply::Trouble),
                Fetched::TimedOut => {
                    // It has cost enough time: no retry, and no more requests in this run.
                    memory.failed(&self.server, "timed out", true);
                    return ended(AttemptResult::TimedOut, Reply::Trouble);
                }
                Fetched::Unreachable(why) => (why, true, None),
                Fetched::Broken(why) => (why, false, None),
            };
            if retries >= limits.retries {
                memory.failed(&self.server, &why, at_once);
                return ended(AttemptResult::Failed(why), Reply::Trouble);
            }
            let back_off = limits.back_off.saturating_mul(1 << retries.min(16));
            retries = retries.saturating_add(1);
            let pause = pause.map_or(back_off, |requested| requested.max(back_off));
            driver.wait(pause.min(LONGEST_PAUSE)).await;
        }
    }
}
