//! `chronosym resolve`: names for a stream of bare addresses.

mod answers;
#[cfg(feature = "fleet")]
mod arrow;
mod input;
mod names;
mod open;
mod pool;
mod row_binary;
mod rows;

use std::io::Write;

use anyhow::{Result, bail};

use self::input::Input;
use self::names::Names;
use crate::args::{AddressFormat, Resolve, Usage};
use crate::output;

pub fn run(args: &Resolve) -> Result<()> {
    if !args.timelines.is_dir() {
        let folder = args.timelines.display();
        bail!(Usage(format!(
            "--timelines {folder}: there is no such folder"
        )));
    }
    let names = Names::new(args)?;
    let mut out = output::open_binary()?;
    match args.stdin {
        AddressFormat::Rowbinary => row_binary::resolve(Input::start()?, names, &mut out)?,
        #[cfg(feature = "fleet")]
        AddressFormat::Arrow => arrow::resolve(names, &mut out)?,
        #[cfg(not(feature = "fleet"))]
        AddressFormat::Arrow => bail!(output::WITHOUT_FLEET),
    }
    out.flush()?;
    Ok(())
}
