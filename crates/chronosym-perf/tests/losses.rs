//! When records were lost, and whether all of them were samples.

use chronosym_perf::{LossWindow, Options, Reader};
use chronosym_support::perf::{PerfAttr, PerfWriter};

const IDENTIFIER: u64 = 1 << 16;
/// Trailers of records, and flags of an event that describes processes.
const TRAILERS: u64 = 1 << 18;
const DESCRIBES: u64 = 1 << 8 | 1 << 9 | 1 << 13;

/// The ids of an event that takes samples, and of one that describes processes, by buffer.
const SAMPLES: [u64; 2] = [11, 12];
const OTHERS: [u64; 2] = [21, 22];

/// Two events on two processors.
fn two_events(buffers: [Result<u64, u64>; 2]) -> PerfWriter {
    let attr = |ids: [u64; 2], flags| PerfAttr {
        sample_type: 0x127 | IDENTIFIER,
        flags: TRAILERS | flags,
        ids: ids.to_vec(),
        ..PerfAttr::default()
    };
    let mut writer = PerfWriter::new(attr(SAMPLES, 0));
    writer.attr(attr(OTHERS, DESCRIBES));
    let index = [SAMPLES, OTHERS].map(|ids| [(ids[0], buffers[0]), (ids[1], buffers[1])]);
    writer.id_index(&index.concat());
    writer
}

/// The losses: times, number of records, and whether they were samples.
fn losses(bytes: &[u8]) -> Vec<(Option<u64>, Option<u64>, u64, bool)> {
    let rows = |it: &LossWindow| (it.from_ns, it.to_ns, it.records, it.only_samples);
    windows(bytes).iter().map(rows).collect()
}

fn windows(bytes: &[u8]) -> Vec<LossWindow> {
    let mut reader = Reader::new(bytes, Options::default()).expect("a recording");
    while reader.next_record().expect("memory").is_some() {}
    reader.diagnostics().loss_windows.clone()
}

/// Losses of 5 records on processor 0 and of 3 on processor 1.
fn lossy() -> PerfWriter {
    let mut writer = two_events([Ok(0), Ok(1)]);
    for (id, time) in [(SAMPLES[0], 100), (SAMPLES[1], 150), (SAMPLES[0], 180)] {
        let body = writer.body().u32(7).u32(7).name("app");
        writer.record_of(id, 3, 0, body, (time, 7));
    }
    writer.lost(200, 7, OTHERS[0], 5);
    writer.lost(300, 7, SAMPLES[1], 3);
    writer
}

#[test]
fn a_loss_lasts_from_the_record_before_it_in_its_buffer() {
    let expected = [
        (Some(180), Some(200), 5, false),
        (Some(150), Some(300), 3, false),
    ];
    assert_eq!(losses(&lossy().file()), expected);
}

#[test]
fn the_counts_of_events_tell_samples_from_descriptions() {
    let are_samples = |counts: &[(u64, u64)]| {
        let mut writer = lossy();
        for &(id, count) in counts {
            writer.lost_of_event(id, count);
        }
        let losses = losses(&writer.file());
        losses.iter().take(2).map(|it| it.3).collect::<Vec<_>>()
    };
    let [a, b] = SAMPLES;
    let [_, of_b] = OTHERS;
    assert_eq!(are_samples(&[(a, 5), (b, 3)]), [true, true]);
    assert_eq!(are_samples(&[(a, 6), (b, 3)]), [true, true]);
    assert_eq!(are_samples(&[(a, 5), (b, 2)]), [true, false], "not all");
    assert_eq!(are_samples(&[(a, 5), (b, 2), (of_b, 1)]), [true, false]);
    assert_eq!(are_samples(&[(a, 5), (b, 3), (99, 1)]), [true, true]);
    assert_eq!(are_samples(&[(a, 4), (b, 3), (99, 1)]), [false, true]);
}

#[test]
fn counts_of_a_damaged_recording_prove_nothing() {
    let mut writer = lossy();
    for (id, count) in [(SAMPLES[0], 5), (SAMPLES[1], 3)] {
        writer.lost_of_event(id, count);
    }
    writer.raw(&[0; 16]);
    let losses = losses(&writer.file());
    assert_eq!(
        losses.iter().map(|it| it.3).collect::<Vec<_>>(),
        [false, false]
    );
}

#[test]
fn losses_after_the_last_record_of_a_buffer_have_no_record() {
    let mut writer = lossy();
    for (id, count) in [(SAMPLES[0], 5), (SAMPLES[1], 3), (OTHERS[0], 2)] {
        writer.lost_of_event(id, count);
    }
    let expected = [
        (Some(180), Some(200), 5, false),
        (Some(150), Some(300), 3, true),
        (Some(200), None, 2, false),
    ];
    assert_eq!(losses(&writer.file()), expected);
}

#[test]
fn a_buffer_of_a_thread_loses_records_of_its_process() {
    let mut writer = two_events([Err(7), Err(8)]);
    writer.comm(100, 7, 7, "app");
    writer.lost(300, 8, SAMPLES[1], 3);
    writer.lost(200, 7, OTHERS[0], 5);
    let rows = |it: &LossWindow| (it.from_ns, it.to_ns, it.process);
    let windows: Vec<_> = windows(&writer.file()).iter().map(rows).collect();
    assert_eq!(
        windows,
        [(Some(100), Some(200), Some(7)), (None, Some(300), Some(8))]
    );
}

#[test]
fn without_a_processor_a_record_is_of_the_only_buffer() {
    let attr = PerfAttr {
        sample_type: 0x127,
        flags: TRAILERS | DESCRIBES,
        ids: vec![5, 6],
        ..PerfAttr::default()
    };
    let read = |buffers: &[(u64, Result<u64, u64>)]| {
        let mut writer = PerfWriter::new(attr.clone());
        writer.id_index(buffers);
        writer.comm(100, 7, 7, "app");
        writer.lost(200, 7, 5, 1);
        losses(&writer.file())[0].0
    };
    assert_eq!(read(&[(5, Ok(0))]), Some(100));
    assert_eq!(read(&[(5, Ok(0)), (6, Ok(1))]), None, "of either buffer");
    assert_eq!(read(&[(5, Err(7))]), Some(100));
    assert_eq!(read(&[]), None, "no list of buffers");
}
