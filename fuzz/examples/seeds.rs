//! Writes the seeds of a target into a folder: `seeds TARGET FOLDER`. Without arguments: the names
//! of the targets.

use std::io;
use std::path::Path;

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [target, folder] = args.as_slice() else {
        for target in chronosym_fuzz::TARGETS {
            println!("{} {}", target.name, target.words);
        }
        return Ok(());
    };
    std::fs::create_dir_all(folder)?;
    for (name, bytes) in chronosym_fuzz::seeds::of(target) {
        std::fs::write(Path::new(folder).join(format!("seed-{name}")), bytes)?;
    }
    Ok(())
}
