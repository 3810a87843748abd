//! Asking a server: spellings, packed files and pointers, redirects, repetition, and what is remembered.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::acquisition::{Search, failure};
use super::layout::{self, Form, Pointer};
use super::outcome::{LocatedFile, Origin, Place, Trial};
use super::step::{Answer, Fetched, Step};
use super::store_in::{Sink, temp_path};
use super::url::{RedirectError, ServerUrl, redacted, redirect};

/// The longest that a server's `Retry-After` is heeded.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// What came of asking for one URL, redirects and repetitions included.
enum Reply {
    Saved,
    NotThere,
    /// This URL is not to be had; others of the server may be.
    Refused,
    /// The server is in trouble: ask it for nothing more.
    Trouble,
}

/// Asks a server for the file of a search. `urls`: of a debuginfod server; `None`: a symbol server, asked by keys.
pub(super) async fn search(
    search: &mut Search,
    server: &ServerUrl,
    urls: Option<Vec<(String, Form)>>,
    sinks: &[Sink],
) -> Option<LocatedFile> {
    let place = Place::Url(server.to_string());
    let id = server.join([]);
    let symbol_server = urls.is_none();
    let known_tier = search.memory.two_tier(&id);
    let urls =
        urls.unwrap_or_else(|| layout::symbol_urls(server, &search.keys, known_tier == Some(true)));
    let what = redacted(&urls.first()?.0);
    if search.config.offline {
        search.note(place, Trial::Offline);
        return None;
    }
    if let Some(why) = search.memory.down(&id) {
        search.note(place, Trial::ServerDown(why));
        return None;
    }
    if search.memory.is_missing(&what) || recall(search, &what).await {
        search.note(place, Trial::KnownMissing);
        return None;
    }
    let Some((sink, others)) = search.ready(sinks).await else {
        search.note(place, Trial::Failed("no folder to store it in".into()));
        return None;
    };
    let mut visit = Visit {
        server: id,
        sink,
        others,
        certain: true,
        in_trouble: false,
    };
    if let Some(file) = visit.ask_all(search, urls).await {
        return Some(file);
    }
    if symbol_server && !visit.in_trouble && known_tier.is_none() {
        let two_tier = visit.probe_tiers(search, server).await;
        if two_tier {
            let urls = layout::symbol_urls(server, &search.keys, true);
            if let Some(file) = visit.ask_all(search, urls).await {
                return Some(file);
            }
        }
    }
    if visit.certain && !visit.in_trouble {
        search.note(place, Trial::NotFound);
        search.memory.note_missing(what.clone());
        if let Some(cache) = search.config.cache.clone() {
            search.ask(Step::NoteMissing { cache, what }).await;
        }
    }
    None
}

async fn recall(search: &Search, what: &str) -> bool {
    let Some(cache) = search.config.cache.clone() else {
        return false;
    };
    let recall = Step::RecallMissing {
        cache,
        what: what.to_owned(),
        max_age: search.config.fetch.missing_age,
    };
    search.ask(recall).await == Answer::Known(true)
}

struct Visit {
    /// Its full URL: what the run remembers it by.
    server: String,
    sink: Sink,
    others: Vec<Sink>,
    /// Every answer so far was a plain "not found".
    certain: bool,
    in_trouble: bool,
}

impl Visit {
    async fn ask_all(
        &mut self,
        search: &mut Search,
        urls: Vec<(String, Form)>,
    ) -> Option<LocatedFile> {
        for (url, form) in urls {
            let temp = temp_path(&self.sink.folder);
            match self.get(search, &url, &temp).await {
                Reply::Saved => {}
                Reply::NotThere => continue,
                Reply::Refused => {
                    self.certain = false;
                    continue;
                }
                Reply::Trouble => {
                    self.in_trouble = true;
                    return None;
                }
            }
            let found = match form {
                Form::Plain | Form::Packed => self.take(search, &url, temp).await,
                Form::Pointer => self.follow(search, &url, temp).await,
            };
            if found.is_some() {
                return found;
            }
            self.certain = false;
        }
        None
    }

    /// Takes a downloaded file: unpacked if need be, verified, and put in its place.
    async fn take(&self, search: &mut Search, url: &str, temp: PathBuf) -> Option<LocatedFile> {
        let place = Place::Url(redacted(url));
        let limit = search.config.fetch.max_bytes;
        let unpacked = temp_path(&self.sink.folder);
        let unpack = Step::Unpack {
            from: temp.clone(),
            to: unpacked.clone(),
            limit,
        };
        let trial = match search.ask(unpack).await {
            Answer::Known(false) => {
                let origin = Origin::Server(redacted(url));
                return search
                    .settle(temp, place, &self.sink, &self.others, origin)
                    .await;
            }
            Answer::Done => {
                search.ask(Step::Remove { path: temp }).await;
                let origin = Origin::Server(redacted(url));
                return search
                    .settle(unpacked, place, &self.sink, &self.others, origin)
                    .await;
            }
            Answer::TooLarge => Trial::TooLarge(limit),
            answer => Trial::Damaged(failure(answer)),
        };
        search.note(place, trial);
        search.ask(Step::Remove { path: temp }).await;
        None
    }

    /// Follows a server's pointer file, to a web address only: a server does not tell which local file is read.
    async fn follow(&self, search: &mut Search, url: &str, temp: PathBuf) -> Option<LocatedFile> {
        let place = Place::Url(redacted(url));
        let answer = search.ask(Step::ReadText { path: temp.clone() }).await;
        search.ask(Step::Remove { path: temp }).await;
        let Answer::Text(Some(text)) = answer else {
            return None;
        };
        let target = match Pointer::parse(&text) {
            Some(Pointer::Path(target)) if target.contains("://") => target,
            Some(Pointer::Path(target)) => {
                search.note(place, Trial::Refused(format!("it points to {target}")));
                return None;
            }
            Some(Pointer::Message(message)) => {
                let why = format!("the server says: {message}");
                search.note(place, Trial::Failed(why));
                return None;
            }
            None => {
                search.note(place, Trial::Failed("it points nowhere".into()));
                return None;
            }
        };
        let target = match redirect(url, &target) {
            Ok(target) => target,
            Err(why) => {
                search.note(place, Trial::Refused(why.to_string()));
                return None;
            }
        };
        let temp = temp_path(&self.sink.folder);
        match self.get(search, &target, &temp).await {
            Reply::Saved => self.take(search, &target, temp).await,
            Reply::NotThere => {
                search.note(Place::Url(redacted(&target)), Trial::NotFound);
                None
            }
            Reply::Refused | Reply::Trouble => None,
        }
    }

    /// Whether the server is laid out in two tiers; asked once a run, after the first miss.
    async fn probe_tiers(&self, search: &mut Search, server: &ServerUrl) -> bool {
        let url = server.join([layout::TWO_TIER]);
        let temp = temp_path(&self.sink.folder);
        let two_tier = match self.get(search, &url, &temp).await {
            Reply::Saved => {
                search.ask(Step::Remove { path: temp }).await;
                true
            }
            Reply::NotThere | Reply::Refused => false,
            Reply::Trouble => return false,
        };
        search.memory.set_two_tier(&self.server, two_tier);
        two_tier
    }

    /// One URL, with redirects followed and failures repeated.
    async fn get(&self, search: &mut Search, url: &str, to: &Path) -> Reply {
        let limits = search.config.fetch.clone();
        let place = Place::Url(redacted(url));
        let mut url = url.to_owned();
        let mut redirects = 0;
        let mut retries = 0;
        loop {
            let download = Step::Download {
                url: url.clone(),
                to: to.to_path_buf(),
                limit: limits.max_bytes,
            };
            let fetched = match search.ask(download).await {
                Answer::Fetched(fetched) => fetched,
                answer => Fetched::NotSaved(failure(answer)),
            };
            let (why, at_once, pause) = match fetched {
                Fetched::Saved => {
                    search.memory.answered(&self.server);
                    return Reply::Saved;
                }
                Fetched::Status {
                    code: 404 | 410, ..
                } => {
                    search.memory.answered(&self.server);
                    return Reply::NotThere;
                }
                Fetched::Status {
                    code: 301 | 302 | 303 | 307 | 308,
                    location,
                    ..
                } => {
                    redirects += 1;
                    let target = if redirects > limits.max_redirects {
                        Err(RedirectError::TooMany(limits.max_redirects))
                    } else {
                        redirect(&url, location.as_deref().unwrap_or_default())
                    };
                    match target {
                        Ok(target) => url = target,
                        Err(why) => {
                            search.note(place, Trial::Refused(why.to_string()));
                            return Reply::Refused;
                        }
                    }
                    continue;
                }
                Fetched::Status {
                    code: code @ (429 | 500..=599),
                    retry_after,
                    ..
                } => (format!("status {code}"), false, retry_after),
                Fetched::Status { code, .. } => {
                    search.memory.answered(&self.server);
                    search.note(place, Trial::Failed(format!("status {code}")));
                    return Reply::Refused;
                }
                Fetched::TooLarge => {
                    search.note(place, Trial::TooLarge(limits.max_bytes));
                    return Reply::Refused;
                }
                Fetched::NotSaved(why) => {
                    search.note(place, Trial::Failed(why));
                    return Reply::Trouble;
                }
                Fetched::TimedOut => {
                    // Enough time has been lost on it: no repetition, and nothing more in this run.
                    search.memory.failed(&self.server, "timed out", true);
                    search.note(place, Trial::TimedOut);
                    return Reply::Trouble;
                }
                Fetched::Unreachable(why) => (why, true, None),
                Fetched::Broken(why) => (why, false, None),
            };
            if retries >= limits.retries {
                search.memory.failed(&self.server, &why, at_once);
                search.note(place, Trial::Failed(why));
                return Reply::Trouble;
            }
            let back_off = limits.back_off.saturating_mul(1 << retries.min(16));
            retries += 1;
            let pause = pause.map_or(back_off, |asked| asked.max(back_off));
            search.ask(Step::Wait(pause.min(LONGEST_PAUSE))).await;
        }
    }
}
