//! The reader returns what the writer wrote: every field, both forms, both byte orders.

use std::io::Cursor;

use chronosym_perf::{CpuMode, Event, Options, Reader, Record, Sample};
use chronosym_support::perf::{Bytes, PerfAttr, PerfWriter};
use proptest::prelude::*;

fn for_each(bytes: &[u8], mut see: impl FnMut(&Record<'_>)) -> Reader<Cursor<Vec<u8>>> {
    let source = Cursor::new(bytes.to_vec());
    let mut reader = Reader::new(source, Options::default()).expect("it is a recording");
    while let Some(record) = reader.next_record().expect("a slice does not fail") {
        see(&record);
    }
    reader
}

fn writers(attr: &PerfAttr) -> [PerfWriter; 2] {
    let writer = PerfWriter::new(attr.clone());
    [writer.clone(), writer.big_endian()]
}

/// Both forms of a recording, plain and compressed.
fn forms(writer: &PerfWriter) -> [Vec<u8>; 4] {
    let packed = writer.compressed(700);
    [writer.file(), writer.pipe(), packed.file(), packed.pipe()]
}

#[test]
fn processes_round_trip() {
    for mut writer in writers(&PerfAttr::default()) {
        writer.comm(10, 7, 7, "work er)x");
        writer.fork(11, 8, 7, 8);
        writer.mmap2(12, 8, 0x1000, 0x2000, 0x500, "/bin/worker");
        writer.exit(13, 8, 9);
        let body = writer.body().u32(8).u32(8).words(&[0x10, 0x20, 0x30]);
        let body = body.raw(&[4, 0, 0, 0]).raw(&[0xaa; 20]).u32(5).u32(2);
        let body = body.name("/lib/with-id.so");
        writer.kernel_record(10, 2 | 1 << 14, body, 14, 8);
        let body = writer
            .body()
            .u64(0xffff_0000)
            .u32(64)
            .u16(1)
            .u16(1)
            .name("bpf_prog");
        writer.kernel_record(17, 0, body, 15, 0);
        for form in forms(&writer) {
            let mut seen = Vec::new();
            let reader = for_each(&form, |record| {
                assert_eq!(record.cpu, Some(0));
                seen.push((record.time_ns, format!("{:?}", record.event)));
                match record.event {
                    Event::Comm(comm) => assert_eq!(comm.name, b"work er)x"),
                    Event::Fork(task) => assert_eq!((task.pid, task.parent_pid), (8, 7)),
                    Event::Exit(task) => assert_eq!((task.pid, task.tid), (8, 9)),
                    Event::Mmap(mmap) if mmap.address == 0x10 => {
                        assert_eq!(mmap.build_id.expect("an id").as_bytes(), [0xaa; 4]);
                        assert_eq!((mmap.name, mmap.file), (&b"/lib/with-id.so"[..], None));
                    }
                    Event::Mmap(mmap) => {
                        let place = (mmap.address, mmap.size, mmap.file_offset);
                        assert_eq!(place, (0x1000, 0x2000, 0x500));
                        let file = mmap.file.expect("a file");
                        assert_eq!((file.device.0, file.inode, mmap.build_id), (8, 77, None));
                    }
                    Event::KernelSymbol(symbol) => {
                        assert_eq!((symbol.address, symbol.size), (0xffff_0000, 64));
                        assert!(symbol.is_unregistered);
                        assert_eq!(symbol.name, b"bpf_prog");
                    }
                    other => panic!("{other:?}"),
                }
            });
            let times: Vec<_> = seen.iter().map(|(time, _)| time.unwrap_or(0)).collect();
            assert_eq!(times, [10, 11, 12, 13, 14, 15]);
            assert!(
                reader.diagnostics().is_clean(),
                "{:?}",
                reader.diagnostics()
            );
        }
    }
}

#[test]
fn records_of_the_kernel_round_trip() {
    let attr = PerfAttr {
        read_format: 0b1_0111,
        ..PerfAttr::default()
    };
    for mut writer in writers(&attr) {
        let body = || writer.body();
        let chain = body().u64(42).u64(3).words(&[-512i64 as u64, 0x10, 0x20]);
        let rows = [
            (18, 0, body().u64(77)),
            (8, 0, body().u64(8)),
            (22, 2, chain),
            (2, 0, body().u64(1).u64(30)),
            (13, 1 << 15, body().u64(4)),
            (5, 0, body().words(&[9, 1, 2])),
            (6, 0, body().words(&[9, 1, 2])),
            (15, 1 << 14, body().u32(3).u32(4)),
            (11, 0, body().words(&[64, 32, 1])),
            (21, 0, body().u64(6)),
            (99 - 64, 0, body().u64(6)),
        ];
        let kinds: Vec<u32> = rows.iter().map(|row| row.0).collect();
        for (kind, misc, body) in rows {
            writer.kernel_record(kind, misc, body, 10, 7);
        }
        for form in forms(&writer) {
            let mut seen = Vec::new();
            let reader = for_each(&form, |record| {
                seen.push(record.kind);
                match record.event {
                    Event::DeferredCallchain { cookie, callchain } => {
                        let parts: Vec<_> = callchain.parts().collect();
                        let addresses: Vec<_> = parts[0].addresses.iter().collect();
                        assert_eq!((cookie, parts.len()), (42, 1));
                        assert_eq!(
                            (parts[0].mode, addresses),
                            (CpuMode::User, vec![0x10, 0x20])
                        );
                    }
                    Event::Lost { id, records } => assert_eq!((id, records), (1, 30)),
                    Event::LostSamples { samples, filtered } => {
                        assert_eq!((samples, filtered), (4, true));
                    }
                    Event::Throttle { ended } => assert_eq!(ended, record.kind == 6),
                    Event::Aux { flags } => assert_eq!(flags, 1),
                    Event::Switch { out, preempted } => assert!(!out && preempted),
                    Event::Other(body) => assert_eq!(body.len(), 8, "{}", record.kind),
                    other => panic!("{other:?}"),
                }
            });
            assert_eq!(seen, kinds);
            let found = reader.diagnostics();
            let counts = (found.lost_records, found.lost_samples, found.throttles);
            assert_eq!(counts, (30, 0, 1));
            assert_eq!((found.bad_records, found.unknown_records), (0, 1));
        }
    }
}

#[test]
fn samples_of_guests_are_marked() {
    for mut writer in writers(&PerfAttr::default()) {
        for misc in 0..8 {
            let body = writer.body().u64(0x10).u32(7).u32(7).u64(10);
            let body = body.u32(0).u32(0).u64(1).u64(0);
            writer.record(9, misc, body);
        }
        for form in forms(&writer) {
            let mut modes = Vec::new();
            for_each(&form, |record| modes.push(record.cpu_mode));
            use CpuMode::{GuestKernel, GuestUser, Hypervisor, Kernel, Unknown, User};
            let expected = [
                Unknown,
                Kernel,
                User,
                Hypervisor,
                GuestKernel,
                GuestUser,
                Unknown,
                Unknown,
            ];
            assert_eq!(modes, expected);
        }
    }
}

#[test]
fn chains_are_split_where_their_marks_say() {
    const KERNEL: u64 = -128i64 as u64;
    const USER: u64 = -512i64 as u64;
    const DEFERRED: u64 = -640i64 as u64;
    type Parts<'a> = &'a [(CpuMode, &'a [u64])];
    let cases: [(&[u64], Parts<'_>); 5] = [
        (
            &[KERNEL, 1, 2, USER, 3],
            &[(CpuMode::Kernel, &[1, 2]), (CpuMode::User, &[3])],
        ),
        // Without a mark the sample's own mode holds.
        (&[1, 2], &[(CpuMode::User, &[1, 2])]),
        // A walk that went wrong.
        (
            &[USER, 1, u64::MAX, 2, KERNEL, 3],
            &[(CpuMode::User, &[1]), (CpuMode::Kernel, &[3])],
        ),
        (&[KERNEL, USER], &[]),
        (
            &[KERNEL, 1, DEFERRED, 9],
            &[(CpuMode::Kernel, &[1]), (CpuMode::User, &[])],
        ),
    ];
    for (words, expected) in cases {
        let attr = PerfAttr {
            sample_type: 1 << 5,
            ..PerfAttr::default()
        };
        for mut writer in writers(&attr) {
            let body = writer.body().u64(words.len() as u64).words(words);
            writer.record(9, 2, body);
            for_each(&writer.file(), |record| {
                let Event::Sample(Sample {
                    callchain: Some(chain),
                    ..
                }) = record.event
                else {
                    panic!("{record:?}")
                };
                assert_eq!(chain.words().iter().collect::<Vec<_>>(), words);
                let parts: Vec<_> = chain.parts().collect();
                assert_eq!(parts.len(), expected.len(), "{words:?}");
                for (part, (mode, addresses)) in parts.iter().zip(expected) {
                    assert_eq!(part.mode, *mode);
                    assert_eq!(part.addresses.iter().collect::<Vec<_>>(), *addresses);
                    assert_eq!(part.deferred.is_some(), addresses.is_empty());
                }
            });
        }
    }
}

/// Writes the fields that the attribute selects, with values from `next`; returns the expected
/// fields as text, in the order of the comparison below.
fn write_sample(
    attr: &PerfAttr,
    mut body: Bytes,
    mut next: impl FnMut() -> u64,
) -> (Bytes, Vec<Vec<u64>>) {
    let mut expected = vec![Vec::new(); 27];
    for field in [
        16, 0, 1, 2, 3, 6, 9, 7, 8, 4, 5, 10, 11, 12, 13, 14, 24, 15, 17, 18, 19, 21, 22, 23, 20,
    ] {
        if attr.sample_type >> field & 1 == 0 || field == 24 && attr.sample_type >> 14 & 1 != 0 {
            continue;
        }
        let many: Vec<u64> = (0..next() % 5).map(|_| next()).collect();
        let one = next();
        let (low, high) = (one as u32, (one >> 32) as u32);
        let mut values = vec![one];
        match field {
            1 => {
                body = body.u32(low).u32(high);
                values = vec![low.into(), high.into()];
            }
            7 => {
                body = body.u32(low).u32(0);
                values = vec![low.into()];
            }
            4 => {
                let times = (attr.read_format & 3).count_ones() as usize;
                let each = 1 + (attr.read_format & 0b1_0100).count_ones() as usize;
                let counters = many.len();
                let count = if attr.read_format & 8 == 0 {
                    times + each
                } else {
                    times + each * counters
                };
                values = (0..count).map(|_| next()).collect();
                if attr.read_format & 8 != 0 {
                    values.insert(0, counters as u64);
                }
                body = body.words(&values);
            }
            5 => {
                body = body.u64(many.len() as u64).words(&many);
                values = many;
            }
            10 => {
                let bytes: Vec<u8> = many.iter().map(|&word| word as u8).collect();
                // Size and bytes are a multiple of eight together.
                let room = (bytes.len() + 4).next_multiple_of(8) - 4;
                body = body
                    .u32(room as u32)
                    .raw(&bytes)
                    .raw(&vec![0; room - bytes.len()]);
                values = bytes.iter().map(|&byte| byte.into()).collect();
                values.resize(room, 0);
            }
            11 => {
                body = body.u64(many.len() as u64);
                if attr.branch_sample_type >> 17 & 1 != 0 {
                    body = body.u64(one);
                    expected[25] = vec![one];
                }
                values = many
                    .iter()
                    .flat_map(|&word| [word, !word, word ^ 5])
                    .collect();
                body = body.words(&values);
            }
            12 | 18 => {
                let mask = if field == 12 {
                    attr.regs_user
                } else {
                    attr.regs_intr
                };
                let abi = one % 3;
                values = (0..if abi == 0 { 0 } else { mask.count_ones() })
                    .map(|_| next())
                    .collect();
                body = body.u64(abi).words(&values);
                values.insert(0, abi);
            }
            13 => {
                let bytes: Vec<u8> = many.iter().map(|&word| word as u8).collect();
                let room = bytes.len().next_multiple_of(8);
                body = body
                    .u64(room as u64)
                    .raw(&bytes)
                    .raw(&vec![0; room - bytes.len()]);
                if room > 0 {
                    body = body.u64(bytes.len() as u64);
                }
                values = bytes.iter().map(|&byte| byte.into()).collect();
            }
            20 => {
                let bytes: Vec<u8> = many.iter().map(|&word| word as u8).collect();
                body = body.u64(bytes.len() as u64).raw(&bytes);
                values = bytes.iter().map(|&byte| byte.into()).collect();
            }
            24 => {
                let (middle, top) = (high as u16, (high >> 16) as u16);
                body = body.u32(low).u16(middle).u16(top);
            }
            _ => body = body.u64(one),
        }
        expected[if field == 24 { 14 } else { field }] = values;
    }
    // The others are passed over.
    for field in (0..expected.len()).filter(|field| ![0, 1, 2, 5, 7, 8, 12, 13].contains(field)) {
        expected[field].clear();
    }
    (body, expected)
}

fn read_sample(record: &Record<'_>) -> Vec<Vec<u64>> {
    let Event::Sample(sample) = record.event else {
        panic!("{record:?}")
    };
    let mut read = vec![Vec::new(); 27];
    let bytes = |bytes: Option<&[u8]>| {
        bytes
            .unwrap_or_default()
            .iter()
            .map(|&b| b.into())
            .collect()
    };
    let registers = |registers: Option<chronosym_perf::Registers<'_>>| {
        registers.map_or(Vec::new(), |own| {
            [own.abi].into_iter().chain(own.values.iter()).collect()
        })
    };
    for (field, value) in [
        (0, sample.ip),
        (2, record.time_ns),
        (7, record.cpu.map(u64::from)),
        (8, sample.period),
    ] {
        read[field] = value.into_iter().collect();
    }
    read[1] = record
        .pid
        .into_iter()
        .chain(record.tid)
        .map(u64::from)
        .collect();
    read[5] = sample
        .callchain
        .map_or(Vec::new(), |chain| chain.words().iter().collect());
    read[12] = registers(sample.user_registers);
    read[13] = bytes(sample.user_stack);
    read
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn samples_of_every_layout_round_trip(
        sample_type in 0u64..1 << 25,
        read_format in 0u64..32,
        has_index in any::<bool>(),
        regs in any::<[u64; 2]>(),
        seed in 1u64..,
        big in any::<bool>(),
    ) {
        let attr = PerfAttr {
            sample_type,
            read_format,
            branch_sample_type: u64::from(has_index) << 17,
            regs_user: regs[0] & 0xff0f,
            regs_intr: regs[1] & 0xff,
            ..PerfAttr::default()
        };
        let mut writer = PerfWriter::new(attr.clone());
        if big {
            writer = writer.big_endian();
        }
        // xorshift: never 0, so that no time is missing.
        let mut state = seed;
        let next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let (body, expected) = write_sample(&attr, writer.body(), next);
        writer.record(9, 2, body);
        for form in forms(&writer) {
            let mut count = 0;
            let reader = for_each(&form, |record| {
                count += 1;
                assert_eq!(read_sample(record), expected, "{attr:?}");
            });
            assert_eq!(count, 1);
            prop_assert!(reader.diagnostics().is_clean());
        }
    }
}

#[test]
fn a_register_is_found_by_its_number() {
    let attr = PerfAttr {
        sample_type: 1 << 12,
        regs_user: 0b1010_0001,
        ..PerfAttr::default()
    };
    let mut writer = PerfWriter::new(attr);
    let body = writer.body().u64(2).words(&[10, 15, 17]);
    writer.record(9, 2, body);
    for_each(&writer.file(), |record| {
        let Event::Sample(Sample {
            user_registers: Some(registers),
            ..
        }) = record.event
        else {
            panic!("{record:?}")
        };
        let found: Vec<_> = (0..65).filter_map(|number| registers.get(number)).collect();
        assert_eq!(found, [10, 15, 17]);
        assert_eq!((registers.get(5), registers.get(64)), (Some(15), None));
    });
}

#[test]
fn records_find_their_event() {
    // By IDENTIFIER, with layouts that differ; and by the ID field of one layout.
    for types in [
        [1 << 16 | 1, 1 << 16 | 1 << 2 | 1],
        [1 << 6 | 7, 1 << 6 | 7],
    ] {
        let attr = |index: usize| PerfAttr {
            sample_type: types[index],
            ids: vec![10 + index as u64, 20 + index as u64],
            ..PerfAttr::default()
        };
        for mut writer in writers(&attr(0)) {
            writer.attr(attr(1));
            for (id, index) in [(20u64, 0usize), (11, 1), (21, 1), (0, 0), (99, 0)] {
                let body = match types[index] {
                    0x1_0001 => writer.body().words(&[id, 0x55]),
                    0x1_0005 => writer.body().words(&[id, 0x55, 7]),
                    _ => writer.body().u64(0x55).u32(1).u32(2).words(&[7, id]),
                };
                writer.record(9, 2, body);
            }
            let mut found = Vec::new();
            let reader = for_each(&writer.pipe(), |record| {
                let Event::Sample(sample) = record.event else {
                    panic!("{record:?}")
                };
                assert_eq!(sample.ip, Some(0x55));
                found.push(record.attr);
            });
            found.sort();
            assert_eq!(found, [Some(0), Some(0), Some(1), Some(1)]);
            assert_eq!(reader.diagnostics().unknown_events, 1);
        }
    }
}

#[test]
fn features_round_trip() {
    for mut writer in writers(&PerfAttr::default()) {
        let string = |bytes: Bytes, text: &str| {
            let mut padded = text.as_bytes().to_vec();
            padded.resize(64, 0);
            bytes.u32(64).raw(&padded)
        };
        for (number, text) in [
            (3, "host"),
            (4, "6.1"),
            (5, "perf 6"),
            (6, "x86_64"),
            (8, "CPU"),
            (9, "id"),
        ] {
            let payload = string(writer.body(), text).bytes;
            writer.feature(number, payload);
        }
        let payload = string(string(writer.body().u32(2), "perf"), "record").bytes;
        writer.feature(11, payload);
        let payload = writer.body().u32(1).u32(120).raw(&[0; 120]).u32(1);
        let payload = string(payload, "my-event").u64(1).bytes;
        writer.feature(12, payload);
        let payload = writer.body().u32(1).u32(1).words(&[1_000, 20]).bytes;
        writer.feature(29, payload);
        let row = writer
            .body()
            .u32(0)
            .u16(0x8002)
            .u16(48)
            .u32(u32::MAX)
            .raw(&[0xbb; 20]);
        let old = writer
            .body()
            .u32(0)
            .u16(1)
            .u16(48)
            .u32(5)
            .raw(&[0xcc; 16])
            .raw(&[0; 8]);
        let row = row.raw(&[6, 0, 0, 0]).name("/bin/a").bytes;
        let payload = [row, old.name("[kernel]").bytes].concat();
        writer.feature(2, payload);
        writer.sample(5, 1, 1, &[1]);
        let read = for_each(&writer.file(), |_| {});
        assert!(read.diagnostics().is_clean(), "{:?}", read.diagnostics());
        let opened = Reader::open(Cursor::new(writer.file()), Options::default());
        let opened = opened.expect("it is a recording");
        // With a source that seeks, all is known from the start.
        assert_eq!(read.info(), opened.info());
        assert_eq!(read.attrs(), opened.attrs());
        let info = read.info();
        assert_eq!(info.os_release.as_deref(), Some("6.1"));
        assert_eq!(info.arch.as_deref(), Some("x86_64"));
        let clock = info.clock.expect("a clock");
        assert_eq!((clock.wall_ns, clock.clock_ns), (1_000, 20));
        assert_eq!(read.attrs()[0].name.as_deref(), Some("my-event"));
        assert_eq!(read.attrs()[0].clock_id, Some(1));
        let [first, second] = &info.build_ids[..] else {
            panic!("{info:?}")
        };
        assert_eq!(
            (first.id.as_bytes(), &first.name[..]),
            (&[0xbb; 6][..], &b"/bin/a"[..])
        );
        assert_eq!(second.id.as_bytes(), [0xcc; 16]);
        let mut piped = for_each(&writer.pipe(), |_| {});
        assert_eq!(piped.info().clock, info.clock);
        assert_eq!(piped.attrs()[0].name.as_deref(), Some("my-event"));
        assert!(
            piped
                .next_record()
                .expect("a slice does not fail")
                .is_none()
        );
    }
}

#[test]
fn machine_facts_of_records_supplement_the_features() {
    let mut writer = PerfWriter::new(PerfAttr::default());
    let mut text = vec![64, 0, 0, 0];
    text.extend(b"host");
    text.resize(68, 0);
    writer.feature(4, text);
    let body = writer.body().words(&[10, 3 << 10, 1_000]);
    writer.record(79, 0, body);
    let body = writer.body().u32(9).raw(&[0xdd; 20]).raw(&[20, 0, 0, 0]);
    writer.record(67, 2 | 1 << 15, body.name("/bin/b"));
    writer.sample(5, 1, 1, &[1]);
    let read = for_each(&writer.file(), |_| {});
    let mut opened = Reader::open(Cursor::new(writer.file()), Options::default()).expect("fine");
    while opened
        .next_record()
        .expect("a slice does not fail")
        .is_some()
    {}
    for info in [read.info(), opened.info()] {
        assert_eq!(info.os_release.as_deref(), Some("host"));
        let conversion = info.time_conversion.expect("it has one");
        assert_eq!(conversion.ns(1 << 20), 1_000 + (3 << 20));
        let [entry] = &info.build_ids[..] else {
            panic!("{info:?}")
        };
        assert_eq!(entry.id.as_bytes(), [0xdd; 20]);
    }
    assert!(read.diagnostics().is_clean() && opened.diagnostics().is_clean());
}
