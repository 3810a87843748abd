//! A trace in a file: the stacks of its samples, resolved.
//!
//! `cargo run -p chronosym --example offline -- app.nettrace`

use chronosym::{Filter, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which trace?")?;
    let (timeline, diagnostics) = chronosym::open(path)?.timeline(Options::default())?;
    diagnostics.list.iter().for_each(|it| eprintln!("{it}"));

    let profile = timeline.profile(&Filter::default(), None);
    for entry in &profile.entries {
        let frames = profile.resolver.stack(entry.stack);
        let labels: Vec<&str> = frames
            .map(|id| profile.resolver.frame(id).label())
            .collect();
        println!("{} samples: {}", entry.samples, labels.join(" < "));
    }
    Ok(())
}
