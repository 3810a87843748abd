//! Compares portable PDBs, our own and those of others, with another reader.

use std::path::Path;
use std::process::ExitCode;

use chronosym::IlOffset;
use chronosym::symbols::{ManagedModule, StoreConfig, SymbolOptions};
use chronosym_conformance::{CORPUS, case};
use chronosym_pdb::pe::PeImage;
use chronosym_pdb::portable::PortablePdb;
use libtest_mimic::{Arguments, Failed, Trial};

const OWN: [&str; 14] = [
    "clr10/workload/Workload.pdb",
    "clr10/workload/PluginA.pdb",
    "clr10/workload/PluginB.dll",
    "clr10/workload/memory/Workload.pdb",
    "clr10/workload/memory/PluginA.pdb",
    "clr10/workload/net9/Workload.pdb",
    "clr10/workload/net9/PluginA.pdb",
    "clr10/workload/net9/PluginB.dll",
    "clr31/workload/Workload.pdb",
    "clr31/workload/PluginA.pdb",
    "clr31/workload/PluginB.pdb",
    "clr31/live/Live.pdb",
    "clr31/live/Plugin.pdb",
    "clr10/r2r/linux-x64/Workload.dll",
];

/// Files without a PDB of their own: the precompiled image names one.
const WITHOUT: &str = "clr10/r2r/linux-x64/Workload.dll";

/// Images whose PDB is next to them or embedded.
const MODULES: [&str; 3] = [
    "clr10/workload/Workload.dll",
    "clr10/workload/PluginB.dll",
    "clr31/workload/PluginA.dll",
];

const FOREIGN: [&str; 3] = [
    "pdb/portable.pdb",
    "pdb/Sentry.Samples.Console.Basic.pdb",
    "pdb/ppdb-sourcelink-sample.pdb",
];

fn main() -> ExitCode {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata");
    let mut cases = Vec::new();
    for name in OWN {
        let path = testdata.join(name);
        cases.push(Trial::test(
            format!("{name}_equals_symbolic"),
            move || match pdb_of(&path)? {
                Some(pdb) if name != WITHOUT => equals_symbolic(&pdb),
                None if name == WITHOUT => Ok(()),
                _ => Err("a PDB where none should be, or none".into()),
            },
        ));
    }
    for name in MODULES {
        let path = testdata.join(name);
        cases.push(Trial::test(
            format!("{name}_answers_as_symbolic_does"),
            move || module_equals_symbolic(&path),
        ));
    }
    for name in FOREIGN {
        cases.push(case(
            CORPUS,
            format!("{name}_equals_symbolic"),
            move |corpus| equals_symbolic(&pdb_of(&corpus.join(name))?.ok_or("no PDB")?),
        ));
    }
    cases.push(case(CORPUS, "classic_pdb_knows_tokens", |corpus| {
        let path = corpus.join("pdb/CsDesktopWithSourceLink.pdb");
        let module = ManagedModule::of_pdb(&path, &SymbolOptions::default())?;
        let name = module.method_name(0x0600_0001);
        equal("name", name, Some((String::new(), "Main".to_owned())))?;
        let line = module.line(0x0600_0001, IlOffset::mapped(0));
        let line = line.map(|line| (line.line, line.file.ends_with("Program.cs")));
        equal("line", line, Ok((13, true)))
    }));
    cases.push(case(
        CORPUS,
        "classic_pdb_is_not_taken_for_portable",
        |corpus| {
            let classic = std::fs::read(corpus.join("pdb/CsDesktopWithSourceLink.pdb"))?;
            match PortablePdb::parse(&classic) {
                Err(chronosym_pdb::Error::NotA { .. }) => Ok(()),
                other => Err(format!("{:?}", other.map(|pdb| pdb.id())).into()),
            }
        },
    ));
    libtest_mimic::run(&Arguments::from_args(), cases).exit_code()
}

/// A `.pdb` file's bytes, or the PDB inside of a `.dll`.
fn pdb_of(path: &Path) -> Result<Option<Vec<u8>>, Failed> {
    let bytes = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    if path.extension().is_some_and(|extension| extension == "dll") {
        return Ok(PeImage::parse(&bytes)?.embedded_portable_pdb(1 << 20)?);
    }
    Ok(Some(bytes))
}

/// Identity, documents, Source Link URLs, and the line of every IL offset of every method.
fn equals_symbolic(bytes: &[u8]) -> Result<(), Failed> {
    let ours = PortablePdb::parse(bytes)?;
    let theirs = symbolic_ppdb::PortablePdb::parse(bytes)?;
    let id = theirs.pdb_id().ok_or("the peer finds no id")?;
    equal(
        "id",
        format!("{}-{:x}", ours.id().guid, ours.id().stamp),
        id.to_string(),
    )?;
    equal(
        "documents",
        ours.documents().count(),
        theirs.get_documents_count()?,
    )?;
    for row in ours.documents() {
        let name = ours.document(row).ok_or("no document")?.name;
        let document = theirs.get_document(row as usize)?;
        let link = theirs
            .get_source_link(&document)
            .map(|url| url.into_owned());
        // The other reader leaves the path as it is; .NET's own reader escapes it, as we do.
        let url = ours.source_link_url(row);
        let url = url.map(|url| url.replace("%2C", ",").replace("%3D", "="));
        equal("Source Link", url, link)?;
        equal("document", name, document.name)?;
    }
    for source in theirs.get_embedded_sources()? {
        let source = source?;
        let row = ours
            .documents()
            .find(|&row| {
                ours.document(row)
                    .is_some_and(|document| document.name == source.get_path())
            })
            .ok_or("embedded source of no document")?;
        let text = ours.embedded_source(row, 1 << 24)?;
        equal(
            "embedded source",
            text.as_deref(),
            Some(&*source.get_contents()?),
        )?;
    }
    let cache = cache_of(&theirs)?;
    let cache = symbolic_ppdb::PortablePdbCache::parse(&cache)?;
    let mut with_line = 0;
    for method in 1..=ours.method_count() {
        let end = ours
            .sequence_points(method)
            .last()
            .map_or(0, |point| point.il_offset)
            + 3;
        for il_offset in 0..end {
            let found = ours
                .line_at(method, il_offset)
                .and_then(|answer| Some((answer.start_line, ours.document(answer.document)?.name)));
            let wanted = cache
                .lookup(method, il_offset)
                .map(|line| (line.line, line.file_name.to_owned()));
            with_line += usize::from(wanted.is_some());
            equal(&format!("method {method} IL {il_offset}"), found, wanted)?;
        }
    }
    if with_line == 0 {
        Err("no line was compared".into())
    } else {
        Ok(())
    }
}

/// Looks up the line of every sequence point, in the module as a user names it.
fn module_equals_symbolic(image: &Path) -> Result<(), Failed> {
    let mut config = StoreConfig::new();
    config.folders.extend(image.parent().map(Path::to_owned));
    let module = ManagedModule::of_image(image, None, config, &SymbolOptions::default())?;
    let pdb = match pdb_of(image)? {
        Some(embedded) => embedded,
        None => std::fs::read(image.with_extension("pdb"))?,
    };
    let cache = cache_of(&symbolic_ppdb::PortablePdb::parse(&pdb)?)?;
    let cache = symbolic_ppdb::PortablePdbCache::parse(&cache)?;
    let ours = PortablePdb::parse(&pdb)?;
    let mut compared = 0;
    for method in 1..=ours.method_count() {
        for point in ours
            .sequence_points(method)
            .filter(|point| !point.is_hidden())
        {
            let token = 0x0600_0000 | method;
            let line = module.line(token, IlOffset::mapped(point.il_offset)).ok();
            let line = line.map(|line| (line.line, line.file.to_string()));
            let wanted = cache.lookup(method, point.il_offset);
            let wanted = wanted.map(|line| (line.line, line.file_name.to_owned()));
            let place = format!("method {method} IL {}", point.il_offset);
            equal(&place, line, wanted)?;
            compared += 1;
        }
    }
    match compared {
        0 => Err("no line was compared".into()),
        _ => Ok(()),
    }
}

fn cache_of(pdb: &symbolic_ppdb::PortablePdb<'_>) -> Result<Vec<u8>, Failed> {
    let mut converter = symbolic_ppdb::PortablePdbCacheConverter::new();
    converter.process_portable_pdb(pdb)?;
    let mut cache = Vec::new();
    converter.serialize(&mut cache)?;
    Ok(cache)
}

fn equal<T: PartialEq + std::fmt::Debug>(what: &str, ours: T, theirs: T) -> Result<(), Failed> {
    if ours == theirs {
        Ok(())
    } else {
        Err(format!("{what}: {ours:?}, the peer {theirs:?}").into())
    }
}
