//! `chronosym top`.

use anyhow::{Result, bail};
use chronosym::Profile;
use chronosym_export::{
    Butterfly, By, TopObject, hotspots, user_methods, write_butterfly, write_top,
};

use crate::args::{Top, Usage};
use crate::output;
use crate::profiled::{note_no_activities, profile_of, shown, write_note};

pub fn run(args: &Top) -> Result<()> {
    let mut selection = args.of.selection.with_async(args.async_chains);
    selection.samples.activity_ids = args.by == By::Activity;
    let (profile, _, note) = profile_of(&args.of, &selection)?;
    if args.by == By::Activity && profile.entries.iter().all(|it| it.activity_id.is_none()) {
        note_no_activities();
    }
    let path = args.of.input.output.as_deref();
    let (format, options) = (args.of.format, shown(args.of.max_lines, path));
    if let Some(butterfly) = butterfly(args, &profile)? {
        return output::write(format, output::open(path), &butterfly, |out| {
            write_butterfly(&profile, &butterfly, options, out)
        });
    }
    let addresses = args.of.selection.samples.addresses;
    let mut rows = hotspots(&profile, args.by, args.sort, addresses);
    if let Some(matching) = &args.matching {
        rows.retain(|row| matching.is_match(&row.label.name));
    }
    let user_code = match args.by {
        By::Method if !args.all && args.matching.is_none() => user_methods(&profile),
        _ => Vec::new(),
    };
    let object = TopObject::new(&profile, args.by, &rows, &user_code, options.max_lines);
    output::write(format, output::open(path), &object, |out| {
        let order = (args.by, args.sort);
        write_top(&profile, order, &rows, &user_code, options, out)?;
        write_note(note.as_deref(), options.width, out)
    })
}

/// Returns the callers and callees of a method, as far as they are requested.
fn butterfly(args: &Top, profile: &Profile) -> Result<Option<Butterfly>> {
    let (callers, callees) = (args.callers.as_ref(), args.callees.as_ref());
    let Some(method) = callers.or(callees) else {
        return Ok(None);
    };
    if callees.is_some_and(|another| another.to_string() != method.to_string()) {
        bail!(Usage(
            "--callers and --callees must have the same pattern".to_owned()
        ));
    }
    let Some(mut butterfly) = Butterfly::new(profile, method) else {
        bail!("no method on any stack matches '{method}'; `chronosym top` lists the methods");
    };
    if callers.is_none() {
        butterfly.callers.clear();
    }
    if callees.is_none() {
        butterfly.callees.clear();
    }
    Ok(Some(butterfly))
}
