//! One symbolizer for any number of timelines: its caches are keyed by modules and files, not by
//! their addresses.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chronosym::facts::At;
use chronosym::symbols::{StoreConfig, SymbolOptions, Symbolizer};
use chronosym::{
    EventKey, EventSchema, IlOffset, LineReason, LiveSession, ModuleRef, NameReason, Payload,
    PointerSize, Position, Provider, SourceLine, SymbolSource, Timeline,
};
use chronosym_pdb::pe::PeImage;
use chronosym_support::payload::{self, Module};

mod workload;

use workload::load;

const PID: u32 = 4242;

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../testdata")
        .join(path)
}

fn symbols_with(folders: &[&Path], options: SymbolOptions) -> Symbolizer {
    let mut config = StoreConfig::new();
    config.folders = folders.iter().map(|&folder| folder.to_owned()).collect();
    Symbolizer::new(config, options)
}

fn symbols(folders: &[&Path]) -> Symbolizer {
    symbols_with(folders, SymbolOptions::default())
}

/// Signature and age of an assembly's PDB.
fn pdb_of(assembly: &str) -> ([u8; 16], u32) {
    let bytes = std::fs::read(testdata(assembly)).expect("an assembly");
    let image = PeImage::parse(&bytes).expect("an image");
    let id = image.portable_codeview().expect("a PDB id").id;
    (id.guid.0, id.age)
}

/// An event of the runtime.
fn push(session: &mut LiveSession, id: u32, version: u32, payload: &[u8]) {
    let provider = Provider::Runtime;
    let key = EventKey::Manifest {
        provider,
        id,
        version,
    };
    let schema = Arc::new(EventSchema::new(key));
    let event_type = session.event_type(schema);
    let payload = Payload {
        pointer_size: PointerSize::Eight,
        bytes: payload,
    };
    session.push(event_type, At::new(1_000).process(PID).thread(1), payload);
}

/// Logs the load of the process's only module; without a PDB, in a version of the event that has
/// none.
fn module_load(session: &mut LiveSession, path: &str, pdb: Option<([u8; 16], u32)>) {
    let (guid, age) = pdb.unwrap_or_default();
    let module = Module {
        id: 1,
        il_path: path,
        managed_pdb: (guid, age, ""),
        ..Module::default()
    };
    let version = if pdb.is_some() { 2 } else { 1 };
    push(session, 152, version, &module.encode(version));
}

/// Returns a timeline with one module.
fn timeline(path: &str, pdb: Option<([u8; 16], u32)>) -> Arc<Timeline> {
    let mut session = LiveSession::new();
    module_load(&mut session, path, pdb);
    finished(session)
}

fn finished(mut session: LiveSession) -> Arc<Timeline> {
    session.finish();
    session.reader().timeline()
}

fn module(timeline: &Timeline) -> ModuleRef<'_> {
    let process = timeline.find_process(PID, None).expect("the process");
    let module = timeline.modules(process).next().expect("the module");
    let module = timeline.module_ref(process, module.index);
    module.expect("the module")
}

/// The first line of each of the first methods.
fn lines(timeline: &Timeline, symbols: &dyn SymbolSource) -> Vec<Result<SourceLine, LineReason>> {
    let il = IlOffset::mapped(0);
    let module = module(timeline);
    let tokens = 0x0600_0001..0x0600_0010;
    tokens
        .map(|token| symbols.managed_line(&module, token, il))
        .collect()
}

fn files_of(lines: &[Result<SourceLine, LineReason>]) -> Vec<&str> {
    let mut files: Vec<&str> = lines
        .iter()
        .flatten()
        .map(|line| chronosym::file_name(&line.file))
        .collect();
    files.dedup();
    files
}

#[test]
fn the_first_modules_of_two_timelines_are_two() {
    let folder = testdata("clr31/workload");
    let a = timeline("PluginA.dll", Some(pdb_of("clr31/workload/PluginA.dll")));
    let b = timeline("PluginB.dll", Some(pdb_of("clr31/workload/PluginB.dll")));
    let both = symbols(&[&folder]);
    for _ in 0..2 {
        assert_eq!(files_of(&lines(&a, &both)), ["PluginA.cs"]);
        assert_eq!(files_of(&lines(&b, &both)), ["PluginB.cs"]);
    }
    assert_ne!(module(&a).identity(), module(&b).identity());
    let again = timeline("PluginA.dll", Some(pdb_of("clr31/workload/PluginA.dll")));
    assert_eq!(module(&a).identity(), module(&again).identity());
}

#[test]
fn an_identity_that_arrives_later_is_searched_for_then() {
    let folder = testdata("clr31/workload");
    let symbols = symbols(&[&folder]);
    let mut live = LiveSession::new();
    let reader = live.reader();
    module_load(&mut live, "PluginA.dll", None);
    live.publish();
    let before = lines(&reader.timeline(), &symbols);
    assert!(
        before
            .iter()
            .all(|line| *line == Err(LineReason::NoSymbolFile)),
        "{before:?}"
    );
    module_load(
        &mut live,
        "PluginA.dll",
        Some(pdb_of("clr31/workload/PluginA.dll")),
    );
    live.publish();
    assert_eq!(
        files_of(&lines(&reader.timeline(), &symbols)),
        ["PluginA.cs"]
    );
}

/// A PDB in memory arrives in chunks; half of it is unusable.
#[test]
fn a_pdb_in_the_trace_is_used_once_complete() {
    let pdb = std::fs::read(testdata("clr31/workload/PluginA.pdb")).expect("a PDB");
    let (first, second) = pdb.split_at(pdb.len() / 2);
    let symbols = symbols(&[]);
    let mut live = LiveSession::new();
    let reader = live.reader();
    module_load(&mut live, "PluginA.dll", None);
    push(&mut live, 260, 0, &payload::code_symbols(1, 2, 0, first, 0));
    live.publish();
    let before = lines(&reader.timeline(), &symbols);
    assert!(
        before
            .iter()
            .all(|line| *line == Err(LineReason::NoSymbolFile)),
        "{before:?}"
    );
    push(
        &mut live,
        260,
        0,
        &payload::code_symbols(1, 2, 1, second, 0),
    );
    live.publish();
    assert_eq!(
        files_of(&lines(&reader.timeline(), &symbols)),
        ["PluginA.cs"]
    );

    // The same module with another PDB in memory is another module.
    let other = std::fs::read(testdata("clr31/workload/PluginB.pdb")).expect("a PDB");
    let mut session = LiveSession::new();
    module_load(&mut session, "PluginA.dll", None);
    push(
        &mut session,
        260,
        0,
        &payload::code_symbols(1, 1, 0, &other, 0),
    );
    assert_eq!(
        files_of(&lines(&finished(session), &symbols)),
        ["PluginB.cs"]
    );
}

/// The program was rebuilt at the same path: each build has its own lines or a reason, never the
/// other's.
#[test]
fn a_file_that_is_replaced_is_another_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let put = |assembly: &str| {
        let new = folder.path().join("new");
        std::fs::copy(testdata(assembly), &new).expect("a file");
        std::fs::rename(new, folder.path().join("Workload.pdb")).expect("a file");
    };
    let build = |assembly: &str| timeline("Workload.dll", Some(pdb_of(assembly)));
    let old = build("clr31/workload/Workload.dll");
    let new = build("clr10/workload/Workload.dll");
    for open_bytes in [1, 1 << 30] {
        let mut options = SymbolOptions::default();
        options.open_bytes = open_bytes;
        let symbols = symbols_with(&[folder.path()], options);
        put("clr31/workload/Workload.pdb");
        let first = lines(&old, &symbols);
        assert!(first.iter().any(Result::is_ok));
        put("clr10/workload/Workload.pdb");
        let second = lines(&new, &symbols);
        assert!(second.iter().any(Result::is_ok));
        assert_ne!(first, second);
        let again = lines(&old, &symbols);
        if open_bytes == 1 {
            let damaged = Err(LineReason::SymbolFileDamaged);
            assert!(again.iter().all(|line| line.is_err()), "{again:?}");
            assert!(again.contains(&damaged), "{again:?}");
        } else {
            assert_eq!(again, first);
        }
    }
}

fn answers(timeline: &Arc<Timeline>, symbols: &Arc<Symbolizer>) -> Vec<String> {
    let profile = timeline.profile(&chronosym::Filter::default(), Some(symbols.clone()));
    let frames = profile.entries.iter().flat_map(|entry| {
        let ids = profile.resolver.stack(entry.stack);
        ids.map(|id| format!("{:?}", profile.resolver.frame(id)))
            .collect::<Vec<_>>()
    });
    frames.collect()
}

#[test]
fn timelines_with_small_caches_and_two_threads_do_not_interfere() {
    let traces = [
        "clr10/traces/r2r.nettrace.zip",
        "clr31/workload/traces/all.nettrace.zip",
    ];
    let traces = traces.map(load);
    let folders = ["clr10/r2r/linux-x64", "clr10/workload", "clr31/workload"].map(testdata);
    let folders: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
    let alone = traces
        .each_ref()
        .map(|trace| answers(&trace.timeline, &Arc::new(symbols(&folders))));
    assert!(
        alone
            .iter()
            .all(|answers| answers.iter().any(|frame| frame.contains("line: Ok")))
    );
    let mut small = SymbolOptions::default();
    (small.open_bytes, small.memory_bytes) = (1, 1);
    for options in [small, SymbolOptions::default()] {
        let shared = Arc::new(symbols_with(&folders, options));
        std::thread::scope(|scope| {
            for (trace, alone) in traces.iter().zip(&alone) {
                scope.spawn(|| assert!(answers(&trace.timeline, &shared) == *alone));
            }
        });
    }
}

/// Files that come with a trace are used by identity only, never by name.
#[test]
fn folders_shipped_with_a_trace_are_searched_by_identity() {
    let pdb = testdata("clr31/workload/PluginA.pdb");
    let (guid, age) = pdb_of("clr31/workload/PluginA.dll");
    let asked = timeline("PluginA.dll", Some((guid, age)));
    let symbols = symbols(&[]);
    let reason = |symbols: &Symbolizer| lines(&asked, symbols)[0].clone();
    assert_eq!(reason(&symbols), Err(LineReason::NoSymbolFile));

    let flat = tempfile::tempdir().expect("a folder");
    let other = testdata("clr31/workload/Workload.pdb");
    std::fs::copy(&other, flat.path().join("PluginA.pdb")).expect("a file");
    symbols.add_trace_folder(flat.path());
    assert_eq!(reason(&symbols), Err(LineReason::SymbolFileMismatch));

    let keyed = tempfile::tempdir().expect("a folder");
    let id = chronosym_pdb::Guid(guid);
    let inner = keyed.path().join(format!("PluginA.pdb/{id:#}FFFFFFFF"));
    std::fs::create_dir_all(&inner).expect("a folder");
    // A pointer file that came with a trace is not followed.
    std::fs::write(inner.join("file.ptr"), format!("PATH:{}", pdb.display())).expect("a file");
    symbols.add_trace_folder(keyed.path());
    assert!(reason(&symbols).is_err());
    // By its name, or under its key.
    for keyed in [false, true] {
        let symbols = self::symbols(&[]);
        let folder = tempfile::tempdir().expect("a folder");
        let at = match keyed {
            false => folder.path().to_owned(),
            true => folder.path().join(format!("PluginA.pdb/{id:#}FFFFFFFF")),
        };
        std::fs::create_dir_all(&at).expect("a folder");
        std::fs::copy(&pdb, at.join("PluginA.pdb")).expect("a file");
        symbols.add_trace_folder(folder.path());
        assert_eq!(files_of(&lines(&asked, &symbols)), ["PluginA.cs"]);
    }
}

/// A source that supplies nothing needs no methods.
#[test]
fn a_source_may_leave_out_every_method() {
    struct Nothing;
    impl SymbolSource for Nothing {}
    fn shared<T: Send + Sync + 'static>(_: &T) {}
    shared(&Nothing);
    shared(&symbols(&[]));
    let timeline = timeline("PluginA.dll", Some(pdb_of("clr31/workload/PluginA.dll")));
    let process = timeline.find_process(PID, None).expect("the process");
    let frames = timeline.frames(process, 0x1000, 2_000, Position::Exact, Some(&Nothing));
    assert_ne!(frames[0].name(), Err(NameReason::SymbolFileMismatch));
    assert!(
        lines(&timeline, &Nothing)
            .iter()
            .all(|line| *line == Err(LineReason::NoSymbolFile))
    );
}
