//! Texts as `perf script` prints them, and others.

use chronosym_perf::script::{Diagnostics, Options, Reader};

/// Every sample and frame in words.
fn read(text: &[u8]) -> (Vec<String>, Diagnostics) {
    let mut reader = Reader::new(text, Options::default()).expect("a text of perf script");
    let mut all = Vec::new();
    while let Some(sample) = reader.next_sample().expect("a slice does not fail") {
        let (pid, cpu, period) = (sample.pid, sample.cpu, sample.period);
        all.push(format!(
            "{}|{pid:?}|{}|{cpu:?}|{}|{period:?}|{}|{}",
            sample.comm, sample.tid, sample.time_ns, sample.event, sample.text
        ));
        for frame in sample.frames() {
            let (symbol, dso) = (frame.symbol.unwrap_or("?"), frame.dso.unwrap_or("?"));
            let inlined = if frame.is_inlined { "inlined" } else { "" };
            all.push(format!(
                "{:x}|{symbol}|{:?}|{dso}|{inlined}",
                frame.address, frame.offset
            ));
        }
    }
    (all, reader.diagnostics().clone())
}

#[test]
fn heads_and_frames_are_found_whatever_their_names_are() {
    let cases: [(&str, &[&str]); 10] = [
        (
            "w 32633  4710.772860:     250000 cpu-clock: \n\tffffffff815a2001 f+0xc1 ([kernel.kallsyms])\n\t           13608 [unknown] (/lib/a (deleted))\n\n",
            &[
                "w|None|32633|None|4710772860000|Some(250000)|cpu-clock|",
                "ffffffff815a2001|f|Some(193)|[kernel.kallsyms]|",
                "13608|?|None|/lib/a (deleted)|",
            ],
        ),
        (
            "work er)x 1 2 7/8 [003] 1.000000001: cycles:Pu: \n\t10 void A::B(class C`1<bool>)[Optimized]+0x4b6 (perf-7.map)\n\t20 g (inlined)\n",
            &[
                "work er)x 1 2|Some(7)|8|Some(3)|1000000001|None|cycles:Pu|",
                "10|void A::B(class C`1<bool>)[Optimized]|Some(1206)|perf-7.map|",
                "20|g|None|?|inlined",
            ],
        ),
        // Nothing but thread and time.
        (
            "Workload  5323/5323   1586.503565: \n",
            &["Workload|Some(5323)|5323|None|1586503565000|None||"],
        ),
        // Tracepoints: no blank line between them.
        (
            "a 1 [000] 1.000000: sched:sched_switch: prev_comm=a prev_pid=1 ==> 2.000000: x\nb 2 [000] 2.000000: syscalls:x:\n",
            &[
                "a|None|1|Some(0)|1000000000|None|sched:sched_switch|prev_comm=a prev_pid=1 ==> 2.000000: x",
                "b|None|2|Some(0)|2000000000|None|syscalls:x|",
            ],
        ),
        // Without chains the frame is on the same line; hexadecimal names are names.
        (
            "              dd   123     1.500000:     250000 cycles:  7f00 read+0x8 (/lib/c.so)\n             bed   124     1.600000:     250000 cycles:  7f01 read (/lib/c.so)\n",
            &[
                "dd|None|123|None|1500000000|Some(250000)|cycles|7f00 read+0x8 (/lib/c.so)",
                "7f00|read|Some(8)|/lib/c.so|",
                "bed|None|124|None|1600000000|Some(250000)|cycles|7f01 read (/lib/c.so)",
                "7f01|read|None|/lib/c.so|",
            ],
        ),
        (
            "swapper -1/-1 1.000000: cycles: \n",
            &["swapper|Some(4294967295)|4294967295|None|1000000000|None|cycles|"],
        ),
        // A byte order mark, tabs, ends of lines of Windows.
        (
            "\u{feff}a\t1/2\t[001]\t1.000000:\t5 cycles: \r\n\t10 f (m)\r\n\r\n",
            &[
                "a|Some(1)|2|Some(1)|1000000000|Some(5)|cycles|",
                "10|f|None|m|",
            ],
        ),
        ("# captured on: today 1.000000: x\n", &[]),
        (
            "a 1/1 1.000000: PERF_RECORD_MMAP2 1/1: [0x1000(0x10) @ 0 08:01 7 5]: r-xp /bin/a\n",
            &[],
        ),
        (
            "a 1/1 99999999999999999999.000000: x: \nb 1/1 18446744074.000000: x: \nc 1/99999999999 1.000000: x: \nd 1/1 1.00: x: \n",
            &[],
        ),
    ];
    for (text, expected) in cases {
        let (found, diagnostics) = read(text.as_bytes());
        assert_eq!(found, expected);
        let unknown = text.lines().filter(|line| {
            line.contains("99999") || line.contains(" 18446") || line.contains("1.00:")
        });
        assert_eq!(diagnostics.unknown_lines, unknown.count() as u64);
        assert_eq!(diagnostics.bytes_read, text.len() as u64);
    }
}

#[test]
fn any_cut_and_any_byte_is_read() {
    let text = "w 1/2 [000]  4.772860:  250000 cpu-clock: \n\tffff f+0xc1 (a)\n\t10 g (b)\n\nx 1/3 5.000000: c: \n\t1 h (d)\n\n";
    for end in 0..text.len() {
        read(&text.as_bytes()[..end]);
        for byte in [0, b'\n', b' ', b'(', 0xff] {
            let mut damaged = text.as_bytes().to_vec();
            damaged[end] = byte;
            let (found, _) = read(&damaged);
            assert!(found.len() <= 8);
        }
    }
}

#[test]
fn endless_lines_and_samples_use_bounded_memory() {
    let mut text = b"a 1/1 1.000000: x: \n".to_vec();
    for _ in 0..200_000 {
        text.extend(
            b"\t7fffffffffff some_function_of_a_deep_recursion+0x10 (/usr/lib/libdeep.so)\n",
        );
    }
    text.extend(b"\n\t");
    text.extend(vec![b'f'; 3 << 20]);
    text.extend(b"\nb 1/1 2.000000: x: \n");
    let mut samples = 0;
    let mut frames = 0;
    let mut long = 0;
    let measured = allocation_counter::measure(|| {
        let mut reader =
            Reader::new(text.as_slice(), Options::default()).expect("a text of perf script");
        while let Ok(Some(sample)) = reader.next_sample() {
            samples += 1;
            frames += sample.frames().count();
        }
        long = reader.diagnostics().long_lines;
    });
    assert_eq!(samples, 2);
    assert!((10_000..200_000).contains(&frames));
    assert_eq!(frames as u64 + long, 200_001);
    assert!(measured.bytes_max < 32 << 20, "{measured:?}");
}

#[test]
fn a_text_is_known_by_its_first_line() {
    use chronosym_perf::script::is_script;
    for text in [
        "app 7 1.000050: cpu-clock: \n",
        "\u{feff}app  4242/4242 [000]     1.000050:    1000000 cpu-clock: \n\t 7f00 f (libc.so)\n",
        "# a comment\r\n\r\nwork er)x 32635 4710.772860123: sched:sched_switch: prev_comm=a\r\n",
        "# ========\r\n# captured on    : Tue Nov\r\n# header version",
    ] {
        assert!(is_script(text.as_bytes()), "{text}");
    }
    for text in [
        "",
        "# only comments\n",
        "7f0000000000 100 void [M] N.T::Run()\n",
        "Collection started at 12:30:15.\n",
        "  <idle>-0     [001]  123.456789: sched_switch: prev_comm=a\n",
        "app;main;f 12\n",
    ] {
        assert!(!is_script(text.as_bytes()), "{text}");
    }
}
