//! Traces of files that a runtime mapped section by section, as recorders on Linux write them.

use std::sync::Arc;

use chronosym::{ProcessIndex, SampleSelection, Session, Timeline};
use chronosym_pdb::pe::PeImage;
use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::payload::universal;
use chronosym_support::trace::{FieldKind, TypeSpec};

/// A PE file and where a process has it.
pub struct MappedFile {
    pub path: String,
    /// The result of [`metadata`].
    pub metadata: String,
    /// First address, the one after the last, file offset.
    pub pieces: Vec<(u64, u64, u64)>,
}

/// Returns a recorder's description of a PE file; `None` if the file is not one, or names no PDB.
pub fn metadata(file: &[u8]) -> Option<String> {
    let image = PeImage::parse(file).ok()?;
    let codeview = image.codeviews().last()?;
    let hex = |bytes: &[u8]| -> String { bytes.iter().map(|b| format!("{b:02x}")).collect() };
    let (signature, version, name) = match image.perf_map_id() {
        Some(id) => (id.signature, id.version, id.path),
        None => ([0; 16], 0, String::new()),
    };
    let text = image.sections().find(|s| s.name.starts_with(b".text"))?;
    Some(format!(
        "{{\"type\": \"PE\",\"name\": \"x.pdb\",\"date_time\": {},\"age\": {},\"signature\": \"{}\",\
         \"perfmap_signature\": \"{}\",\"perfmap_version\": {version},\"perfmap_name\": \"{name}\",\
         \"text_offset\": {}}}",
        image.timestamp(),
        codeview.id.age,
        hex(&codeview.id.guid.0),
        hex(&signature),
        text.rva - text.file_offset,
    ))
}

/// A trace of a process that has the files.
pub fn trace(files: &[MappedFile]) -> (Arc<Timeline>, ProcessIndex) {
    let mut w = NettraceWriter::v6();
    let number = FieldKind::VAR_U;
    let mut define = |id, name: &str, fields: &[(&str, &FieldKind)]| {
        let mut spec = TypeSpec::new("Universal.System", id, 0).named(name);
        for (name, kind) in fields {
            spec = spec.field(name, (*kind).clone());
        }
        w.define(spec)
    };
    let process = define(
        0,
        "ExistingProcess",
        &[
            ("NamespaceId", &number),
            ("Name", &FieldKind::UTF8),
            ("NamespaceName", &FieldKind::UTF8),
        ],
    );
    let mapping = define(
        3,
        "ProcessMapping",
        &[
            ("Id", &number),
            ("StartAddress", &number),
            ("EndAddress", &number),
            ("FileOffset", &number),
            ("FileName", &FieldKind::UTF8),
            ("MetadataId", &number),
        ],
    );
    let described = define(
        5,
        "ProcessMappingMetadata",
        &[
            ("Id", &number),
            ("SymbolMetadata", &FieldKind::UTF8),
            ("VersionMetadata", &FieldKind::UTF8),
        ],
    );
    w.event(process, 0, 7, &[], &universal::process(7, "Workload", ""));
    let mut mappings = 0;
    for (file, metadata_id) in files.iter().zip(1..) {
        for &(start, end, offset) in &file.pieces {
            mappings += 1;
            let payload = universal::mapping(mappings, start, end, offset, &file.path, metadata_id);
            w.event(mapping, 1_000, 7, &[], &payload);
        }
        let payload = universal::mapping_metadata(metadata_id, &file.metadata, "");
        w.event(described, 2_000, 7, &[], &payload);
    }
    let file = w.finish();
    let mut session = Session::new(SampleSelection::Profilers);
    let diagnostics = chronosym::source::nettrace::read(file.as_slice(), &mut session);
    assert!(diagnostics.expect("a trace").list.is_empty());
    let timeline = session.finish();
    let process = timeline
        .processes()
        .find(|process| process.name == Some("Workload"));
    let process = process.expect("the process").index;
    (timeline, process)
}
