//! .NET processes that are recorded.

use std::collections::BTreeSet;

use anyhow::{Result, anyhow, bail};
use chronosym_record::{Config, Profile, Runtime, Session, Target, find, find_all};

use crate::args::Usage;
use crate::progress;

/// Finds a process by its id or its program's name.
pub fn target(pid: Option<u32>, name: Option<&str>) -> Result<Target> {
    let found = targets(pid.as_slice(), name, "")?;
    match found.as_slice() {
        [target] => Ok(target.clone()),
        _ => {
            let pids: Vec<String> = found.iter().map(|it| it.pid.to_string()).collect();
            let name = name.unwrap_or_default();
            bail!(
                "several processes are named '{name}': select one with --pid: {}",
                pids.join(", ")
            )
        }
    }
}

/// Finds processes by their ids, or all whose program has a name; one at least. `others` are
/// further ways to say which.
pub fn targets(pids: &[u32], name: Option<&str>, others: &str) -> Result<Vec<Target>> {
    if !pids.is_empty() {
        let pids: BTreeSet<u32> = pids.iter().copied().collect();
        let found = pids.into_iter().map(find);
        let found: Result<Vec<Target>, _> = found.collect();
        return found.map_err(|error| anyhow!("{error}; {}", listed(&find_all())));
    }
    let mut all = find_all();
    let Some(name) = name else {
        bail!(Usage(format!(
            "which process? Say --pid, --name{others}; {}",
            listed(&all)
        )));
    };
    let stem = |name: &str| name.strip_suffix(".dll").unwrap_or(name).to_lowercase();
    let is_it = |target: &Target| stem(&target.name) == stem(name);
    if !all.iter().any(is_it) {
        bail!("no .NET process is named '{name}'; {}", listed(&all));
    }
    all.retain(is_it);
    Ok(all)
}

/// The processes that can be recorded, for messages.
fn listed(all: &[Target]) -> String {
    const MOST: usize = 20;
    let names = all.iter().map(|it| format!("{} {}", it.pid, it.name));
    let mut names: Vec<String> = names.take(MOST).collect();
    match all.len() {
        0 => return "found no .NET process of this user".to_owned(),
        count if count > MOST => names.push(format!("{} more", count - MOST)),
        _ => (),
    }
    format!(".NET processes: {}", names.join(", "))
}

/// Starts a session for the list of the code that was compiled before. It is stopped once the
/// recording has begun, so that code compiled meanwhile is in one of them.
pub fn list_code(runtime: &Runtime) -> Option<Session> {
    // Sessions of .NET Core 3.1 hang now and then: one is enough.
    let list = match runtime.is_net5() {
        Ok(true) => runtime.collect(&Config::new(Profile::names())),
        Ok(false) => return None,
        Err(error) => Err(error),
    };
    if let Err(error) = &list {
        progress::note(&format!(
            "the code that was compiled before is not listed: {error}"
        ));
    }
    list.ok()
}
