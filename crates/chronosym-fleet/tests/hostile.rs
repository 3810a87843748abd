//! Tables of strangers: small files that expand to much memory or to many rows are refused.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use chronosym::facts::{At, Method, Sample};
use chronosym::{Action, Limits, Options, Session};
use chronosym_fleet::{Exporter, Trace};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, GzipLevel};
use parquet::file::properties::WriterProperties;

/// Exports a sample; returns the folder with its tables.
fn exported() -> tempfile::TempDir {
    let mut session = Session::new(Options::default());
    let at = At::new(0).process(42).thread(7);
    session.apply(
        at,
        Method::new(Action::Load, 1, 0x1000, 64).named("T", "Run", ""),
    );
    session.sample(at.at(100), &[0x1010], Sample::cpu());
    let folder = tempfile::tempdir().unwrap();
    let exporter = Exporter::new(folder.path());
    exporter
        .export(&Trace::new("a", &session.finish()))
        .unwrap();
    folder
}

/// Replaces the samples of an export by rows with these threads and processes; returns the size of
/// the file.
fn write(folder: &Path, batches: &[(StringArray, Int64Array)], dictionary: bool) -> u64 {
    let samples = folder.join("samples");
    std::fs::remove_dir_all(&samples).unwrap();
    std::fs::create_dir(&samples).unwrap();
    let text = |name| Field::new(name, DataType::Utf8, true);
    let number = |name| Field::new(name, DataType::Int64, true);
    let fields = vec![
        text("trace"),
        text("host"),
        text("boot"),
        number("pid"),
        number("start"),
        text("process"),
        number("tid"),
        text("thread"),
        number("time"),
        text("event"),
        text("kind"),
        number("weight"),
        text("unit"),
        number("stack_id"),
    ];
    let schema = Arc::new(Schema::new(fields));
    let properties = WriterProperties::builder()
        .set_compression(Compression::GZIP(GzipLevel::default()))
        .set_dictionary_enabled(dictionary)
        .set_dictionary_page_size_limit(1 << 30)
        .set_data_page_size_limit(1 << 30)
        .set_data_page_row_count_limit(1 << 30)
        .build();
    let path = samples.join("a.parquet");
    let file = File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties)).unwrap();
    for (threads, pids) in batches {
        let column = |field: &Arc<Field>| -> ArrayRef {
            match (field.name().as_str(), field.data_type()) {
                ("thread", _) => Arc::new(threads.clone()),
                ("pid", _) => Arc::new(pids.clone()),
                (_, DataType::Utf8) => Arc::new(StringArray::new_null(threads.len())),
                _ => Arc::new(Int64Array::new_null(threads.len())),
            }
        };
        let columns = schema.fields().iter().map(column).collect();
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
        writer.write(&batch).unwrap();
    }
    writer.close().unwrap();
    path.metadata().unwrap().len()
}

fn refusal(folder: &Path, limits: &Limits) -> String {
    let mut session = Session::new(Options::default());
    let read = chronosym_fleet::read(folder, limits, &mut session);
    read.expect_err("it is read").to_string()
}

fn repeated(text: &str, rows: usize) -> (StringArray, Int64Array) {
    let threads = StringArray::from_iter_values(std::iter::repeat_n(text, rows));
    (
        threads,
        Int64Array::from_iter_values(std::iter::repeat_n(1, rows)),
    )
}

#[test]
fn a_long_text_of_a_dictionary_is_not_repeated() {
    let folder = exported();
    let long = "x".repeat(1 << 20);
    // Each batch of the writer has it again.
    let batches = vec![repeated(&long, 16); 16];
    let size = write(folder.path(), &batches, true);
    assert!(size < 64 << 10, "{size}");
    let error = refusal(folder.path(), &Limits::default());
    assert!(
        error.contains("a text of a dictionary has 1048576 bytes"),
        "{error}"
    );
    // Shorter ones are repeated in smaller batches.
    let short = "x".repeat(100_000);
    write(folder.path(), &vec![repeated(&short, 100); 4], true);
    let mut session = Session::new(Options::default());
    chronosym_fleet::read(folder.path(), &Limits::default(), &mut session).unwrap();
}

#[test]
fn a_page_that_expands_to_much_is_refused() {
    let folder = exported();
    let size = write(folder.path(), &[repeated(&"x".repeat(40_000), 1000)], false);
    assert!(size < 200 << 10, "{size}");
    let error = refusal(folder.path(), &Limits::default());
    assert!(
        error.contains("a page expands to more than 8388608 bytes"),
        "{error}"
    );
    // A page of few long texts.
    write(folder.path(), &[repeated(&"x".repeat(1 << 20), 1)], false);
    let error = refusal(folder.path(), &Limits::default());
    assert!(error.contains("a page of texts has"), "{error}");
}

#[test]
fn more_rows_than_the_file_can_have_are_refused() {
    let folder = exported();
    let size = write(folder.path(), &vec![repeated("", 1 << 16); 48], true);
    assert!(size < 50_000, "{size}");
    let error = refusal(folder.path(), &Limits::default());
    assert!(error.contains("it states 3145728 rows in"), "{error}");
}

#[test]
fn processes_and_names_of_threads_are_charged() {
    let mut limits = Limits::default();
    limits.memory = Some(8 << 20);
    let threads = |names: Vec<String>, pids: Vec<i64>| {
        let folder = exported();
        write(folder.path(), &[(names.into(), pids.into())], true);
        folder
    };
    let few = threads(vec!["a".to_owned(); 100], (0..100).collect());
    let mut session = Session::new(Options::default());
    chronosym_fleet::read(few.path(), &limits, &mut session).unwrap();
    let processes = threads(vec![String::new(); 100_000], (0..100_000).collect());
    let error = refusal(processes.path(), &limits);
    assert!(error.contains("--max-memory"), "{error}");
}

/// Returns a Parquet file whose schema has groups in groups.
fn nested(depth: u32) -> Vec<u8> {
    // Version 1, and a list of structs: a name, one child.
    let mut footer = vec![0x15, 2, 0x19, 0xfc];
    let mut count = depth;
    while count >= 0x80 {
        footer.push(count as u8 | 0x80);
        count >>= 7;
    }
    footer.push(count as u8);
    for _ in 0..depth {
        footer.extend([0x48, 1, b'g', 0x15, 2, 0]);
    }
    // Rows and row groups.
    footer.extend([0x16, 0, 0x19, 0x0c, 0]);
    let length = (footer.len() as u32).to_le_bytes();
    [&b"PAR1"[..], &footer, &length, b"PAR1"].concat()
}

#[test]
fn a_deep_schema_is_refused() {
    let folder = exported();
    let path = folder.path().join("samples/deep.parquet");
    for (depth, expected) in [(200_000, "its schema has 200000 elements"), (20, "samples")] {
        std::fs::write(&path, nested(depth)).unwrap();
        let error = refusal(folder.path(), &Limits::default());
        assert!(error.contains(expected), "{error}");
    }
    for file in [
        &b"PAR1"[..],
        b"PAR1\xff\xff\xff\xffPAR1",
        b"PAR1\x19\x01\0\0\0PAR1",
    ] {
        std::fs::write(&path, file).unwrap();
        refusal(folder.path(), &Limits::default());
    }
}
