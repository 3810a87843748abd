//! `chronosym resolve --stdin arrow`: streams of batches, and of their names.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Int64Array, RecordBatch, StringArray, UInt64Array,
};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use chronosym::{Position, SaveOptions, Timeline};
use chronosym_support::random::Random;

use super::common::{Run, finish};
use super::{CODE, END, EXTENT, history, labels, resolve};

/// Start of the recordings of [`history`], in ns since 1970.
const START: i64 = 1_000_000;

/// Key, time and address.
type Row = (String, i64, u64);

/// How columns are encoded.
#[derive(Clone, Copy, Debug)]
enum Encoding {
    /// Keys as text, addresses without a sign.
    Plain,
    /// Keys by number, addresses with a sign.
    Numbered,
}

/// Returns a batch of rows, with a null in a column and row.
fn batch(rows: &[Row], encoding: Encoding, null: Option<(&str, usize)>) -> RecordBatch {
    let has = |name: &str, row: usize| null != Some((name, row));
    let all = || rows.iter().enumerate();
    let keys = all().map(|(row, it)| has("key", row).then_some(&*it.0));
    let times = all().map(|(row, it)| has("time", row).then_some(it.1));
    let addresses = all().map(|(row, it)| has("address", row).then_some(it.2));
    let (keys, addresses): (ArrayRef, ArrayRef) = match encoding {
        Encoding::Plain => (
            Arc::new(StringArray::from_iter(keys)),
            Arc::new(UInt64Array::from_iter(addresses)),
        ),
        Encoding::Numbered => {
            let signed = addresses.map(|it| it.map(u64::cast_signed));
            (
                Arc::new(DictionaryArray::<Int32Type>::from_iter(keys)),
                Arc::new(Int64Array::from_iter(signed)),
            )
        }
    };
    let times: ArrayRef = Arc::new(Int64Array::from_iter(times));
    let columns = [("key", keys), ("time", times), ("address", addresses)];
    let nullable = columns.map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(nullable).unwrap()
}

/// Returns the stream of some batches.
fn stream(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.into_inner().unwrap()
}

/// The names of each row of each batch of a stream, up to its end or a cut.
fn batches_of_names(output: &[u8]) -> Vec<Vec<Vec<String>>> {
    let rows = |batch: RecordBatch| {
        let lists = batch["names"].as_list::<i32>();
        let names = |list: ArrayRef| {
            let names = list.as_dictionary::<Int32Type>();
            let texts = names.downcast_dict::<StringArray>().unwrap();
            let texts = texts.into_iter().map(|it| it.unwrap().to_owned());
            texts.collect::<Vec<_>>()
        };
        lists.iter().map(|it| names(it.unwrap())).collect()
    };
    let batches = StreamReader::try_new(output, None).unwrap();
    batches.map_while(Result::ok).map(rows).collect()
}

/// Passes a stream to the command. Returns its output, and what ended it.
fn resolved(folder: &Path, input: Vec<u8>, options: &[&str]) -> (Vec<u8>, Run) {
    let output = resolve(folder, "arrow", input, options);
    let ended = Output {
        stdout: Vec::new(),
        ..output
    };
    (output.stdout, finish(ended))
}

/// Writes the timelines of three recordings, and files that are none, into a folder.
fn recordings(folder: &Path, random: &mut Random) -> Vec<(String, Arc<Timeline>)> {
    let all = [[42].as_slice(), &[42], &[42, 43]].map(|pids| history(random, pids));
    for (number, timeline) in all.iter().enumerate() {
        let bytes = timeline.save(Vec::new(), &SaveOptions::new()).unwrap();
        fs::write(folder.join(format!("{number}.chrono")), bytes).unwrap();
    }
    fs::write(folder.join("cut.chrono"), b"chronos\0").unwrap();
    let [first, second, two] = all;
    [
        ("0.chrono", &first),
        ("1.chrono#42", &second),
        ("2.chrono#42", &two),
        ("2.chrono#43", &two),
    ]
    .map(|(key, timeline)| (key.to_owned(), timeline.clone()))
    .into()
}

/// Keys without a process, and the reason in place of names.
const WITHOUT_PROCESS: [(&str, &str); 4] = [
    ("missing.chrono", "NoTimeline"),
    ("cut.chrono", "UnreadableTimeline"),
    ("2.chrono", "NoSuchProcess"),
    ("1.chrono#7", "NoSuchProcess"),
];

#[test]
fn names_and_reasons_are_those_of_single_lookups() {
    let (mut inlined, mut unnamed, mut named) = (0, 0, 0);
    for (seed, encoding) in (0..6).zip([Encoding::Plain, Encoding::Numbered].into_iter().cycle()) {
        let random = &mut Random::new(seed);
        let folder = tempfile::tempdir().unwrap();
        let known = recordings(folder.path(), random);
        let (position, options) = match seed {
            0..3 => (Position::Exact, [].as_slice()),
            _ => (Position::Return, ["--caller"].as_slice()),
        };
        let (mut rows, mut wanted) = (Vec::new(), Vec::new());
        for _ in 0..6_000 {
            let (address, time) = (CODE + random.below(EXTENT + 512), random.below(END));
            let choice = random.index(known.len() + 1);
            let (key, names) = match known.get(choice) {
                Some((key, timeline)) => {
                    let pid = key.split_once('#').map_or(42, |it| it.1.parse().unwrap());
                    let process = timeline.find_process(pid, None).unwrap();
                    let frames = timeline.frames(process, address, time, position, None);
                    inlined += usize::from(frames.len() > 1);
                    match frames[0].name() {
                        Ok(_) => named += 1,
                        Err(_) => unnamed += 1,
                    }
                    (key.as_str(), labels(&frames))
                }
                None => {
                    let (key, reason) = WITHOUT_PROCESS[random.index(WITHOUT_PROCESS.len())];
                    (key, vec![format!("{address:#x} ({reason})")])
                }
            };
            rows.push((key.to_owned(), START + time as i64, address));
            wanted.push(names);
        }
        // Batches of all sizes; the rows again, when all bodies are known.
        let ends = [0, 1, 1, 64, 1_500, 5_000, rows.len()];
        let mut batches: Vec<_> = ends.windows(2).map(|it| it[0]..it[1]).collect();
        batches.push(0..rows.len());
        let input: Vec<_> = batches
            .iter()
            .map(|it| batch(&rows[it.clone()], encoding, None))
            .collect();
        let (output, run) = resolved(folder.path(), stream(&input), options);
        assert_eq!(run.status, 0, "{}", run.stderr);
        let names = batches_of_names(&output);
        assert_eq!(names.len(), batches.len());
        for (names, range) in names.iter().zip(batches) {
            assert!(
                *names == wanted[range.clone()],
                "seed {seed}, rows {range:?}"
            );
        }
    }
    assert!(
        inlined > 500 && unnamed > 500 && named > 500,
        "{inlined} {unnamed} {named}"
    );
}

/// A folder with recordings, and some rows of them.
fn some_rows() -> (tempfile::TempDir, Vec<Row>) {
    let random = &mut Random::new(7);
    let folder = tempfile::tempdir().unwrap();
    let known = recordings(folder.path(), random);
    let mut row = |number: usize| {
        let key = known[number % known.len()].0.clone();
        (
            key,
            START + random.below(END) as i64,
            CODE + random.below(EXTENT),
        )
    };
    let rows = (0..40).map(&mut row).collect();
    (folder, rows)
}

#[test]
fn a_null_is_an_error_after_the_batches_before_it() {
    let (folder, rows) = some_rows();
    for encoding in [Encoding::Plain, Encoding::Numbered] {
        for name in ["key", "time", "address"] {
            let first = batch(&rows, encoding, None);
            let second = batch(&rows, encoding, Some((name, 17)));
            let input = stream(&[first.clone(), second, first]);
            let (output, run) = resolved(folder.path(), input, &[]);
            assert_eq!(run.status, 1, "{encoding:?} {name}");
            let expected = format!("a row has a null in the column {name}");
            assert!(run.stderr.contains(&expected), "{}", run.stderr);
            let names = batches_of_names(&output);
            assert_eq!(names.len(), 1, "{encoding:?} {name}");
            assert_eq!(names[0].len(), rows.len());
        }
    }
}

#[test]
fn a_missing_column_or_another_type_is_an_error() {
    let (folder, rows) = some_rows();
    let whole = batch(&rows, Encoding::Plain, None);
    for (column, name) in ["key", "time", "address"].into_iter().enumerate() {
        let others: Vec<usize> = (0..3).filter(|&it| it != column).collect();
        let without = whole.project(&others).unwrap();
        let flags: ArrayRef = Arc::new(BooleanArray::from(vec![true; rows.len()]));
        let schema = without.schema();
        let names = schema.fields().iter().map(|it| it.name().as_str());
        let columns = names.zip(without.columns().iter().cloned());
        let other = RecordBatch::try_from_iter(columns.chain([(name, flags)])).unwrap();
        for (input, expected) in [
            (without, format!("it has no column {name}")),
            (other, format!("the column {name} has the type Boolean")),
        ] {
            let (_, run) = resolved(folder.path(), stream(&[input]), &[]);
            assert_eq!(run.status, 1, "{name}");
            assert!(run.stderr.contains(&expected), "{}", run.stderr);
        }
    }
}

#[test]
fn damaged_streams_are_errors() {
    let (folder, rows) = some_rows();
    let empty = [b"".as_slice(), b"no stream of Arrow", &[0xff; 100]];
    for input in empty {
        let (_, run) = resolved(folder.path(), input.to_vec(), &[]);
        assert_eq!(run.status, 1, "{}", run.stderr);
        assert!(run.stderr.contains("standard input"), "{}", run.stderr);
    }
    for encoding in [Encoding::Plain, Encoding::Numbered] {
        let all = stream(&vec![batch(&rows, encoding, None); 3]);
        let (output, run) = resolved(folder.path(), all.clone(), &[]);
        assert_eq!(run.status, 0, "{}", run.stderr);
        let whole = batches_of_names(&output);
        let mut refused = 0;
        // Batches before a cut keep their names.
        for end in (all.len() / 4..all.len()).step_by(331) {
            let (output, run) = resolved(folder.path(), all[..end].to_vec(), &[]);
            run.assert_ended_well(&format!("{encoding:?}, cut at {end}"));
            let names = batches_of_names(&output);
            assert_eq!(names, whole[..names.len()]);
            refused += run.status;
        }
        assert!(refused > 3, "{refused}");
        for at in (0..all.len()).step_by(263) {
            let mut damaged = all.clone();
            damaged[at] ^= 0xff;
            let (_, run) = resolved(folder.path(), damaged, &[]);
            run.assert_ended_well(&format!("{encoding:?}, damage at {at}"));
        }
    }
}
