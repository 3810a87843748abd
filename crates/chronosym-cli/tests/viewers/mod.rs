//! Reads the leaves from each format: their samples, and the time that those represent.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use opentelemetry_proto::tonic::profiles::v1development::ProfilesData;
use prost::Message;
use serde_json::Value;

use crate::common::chronosym;

/// Wall-clock and CPU samples, and wall-clock samples of .NET Core 3.1.
pub const TRACES: [&str; 3] = [
    "clr10/traces/all.nettrace.zip",
    "clr10/traces/linux.nettrace.zip",
    "clr31/workload/traces/all.nettrace.zip",
];

pub fn trace(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata")
        .join(name)
}

pub fn stacks(trace: &Path, format: &str) -> Vec<u8> {
    let mut command = chronosym();
    command.args(["-q", "stacks", "--offline", "--raw", "--format", format]);
    let out = command.arg(trace).output().unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    out.stdout
}

pub fn json(trace: &Path, format: &str) -> Value {
    serde_json::from_slice(&stacks(trace, format)).unwrap()
}

/// Returns the form of a name that all formats share: remarks for readers are removed, and all
/// unnamed code has one name.
pub fn plain(name: &str) -> String {
    let name = name.trim_start_matches('~');
    let unnamed = name.ends_with("!?") || name.ends_with(" ?") || name.starts_with("0x");
    if unnamed { "?" } else { name }.to_owned()
}

/// By the name of the innermost frame: samples, where the format has them, and ns.
pub type Leaves = BTreeMap<String, (Option<u64>, u64)>;

pub fn add(leaves: &mut Leaves, name: &str, samples: Option<u64>, ns: u64) {
    let leaf = leaves.entry(plain(name)).or_default();
    leaf.0 = samples.map(|samples| leaf.0.unwrap_or(0) + samples);
    leaf.1 += ns;
}

pub fn whole(leaves: &Leaves) -> (u64, u64) {
    let samples = leaves.values().filter_map(|leaf| leaf.0).sum();
    (samples, leaves.values().map(|leaf| leaf.1).sum())
}

pub fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

pub fn of_speedscope(file: &Value) -> Leaves {
    let frames = list(&file["shared"]["frames"]);
    let of = |profile: &Value| {
        let mut leaves = Leaves::new();
        assert_eq!(
            (&profile["type"], &profile["unit"]),
            (&"sampled".into(), &"nanoseconds".into())
        );
        let (samples, weights) = (list(&profile["samples"]), list(&profile["weights"]));
        assert_eq!(samples.len(), weights.len());
        let mut sum = 0;
        for (sample, weight) in samples.iter().zip(weights) {
            let weight = weight.as_u64().unwrap();
            sum += weight;
            // A gap has no stack.
            if let Some(leaf) = list(sample).last() {
                let name = frames[leaf.as_u64().unwrap() as usize]["name"].as_str();
                add(&mut leaves, name.unwrap(), None, weight);
            }
        }
        let end = profile["endValue"].as_u64().unwrap() - profile["startValue"].as_u64().unwrap();
        assert_eq!(end, sum);
        leaves
    };
    let (merged, threads) = threads_of_speedscope(file);
    let mut leaves = Leaves::new();
    for profile in threads {
        for (name, (_, ns)) in of(profile) {
            add(&mut leaves, &name, None, ns);
        }
    }
    assert_eq!(of(merged), leaves);
    leaves
}

/// Calls begin and end in time order on each thread; what passes belongs to the innermost.
pub fn of_perfetto(file: &Value) -> Leaves {
    let mut leaves = Leaves::new();
    let mut threads: BTreeMap<(u64, u64), (u64, Vec<String>)> = BTreeMap::new();
    for event in list(&file["traceEvents"]) {
        let of = |key: &str| event[key].as_u64().unwrap();
        let (ids, phase) = ((of("pid"), of("tid")), event["ph"].as_str().unwrap());
        // Names of threads, and markers.
        if ["M", "b", "e", "i"].contains(&phase) {
            continue;
        }
        // Microseconds.
        let time = ns(&event["ts"]) / 1_000;
        let (last, open) = threads.entry(ids).or_default();
        assert!(*last <= time, "{event}");
        if let Some(name) = open.last() {
            add(&mut leaves, name, None, time - *last);
        }
        *last = time;
        match phase {
            "B" => open.push(event["name"].as_str().unwrap().to_owned()),
            "E" => assert_eq!(open.pop().unwrap(), event["name"].as_str().unwrap()),
            _ => panic!("{event}"),
        }
    }
    assert!(threads.values().all(|(_, open)| open.is_empty()));
    // Callers that a call begins in have no time of their own.
    leaves.retain(|_, leaf| leaf.1 > 0);
    leaves
}

/// The profile of all threads, and those of each.
pub fn threads_of_speedscope(file: &Value) -> (&Value, &[Value]) {
    let profiles = list(&file["profiles"]);
    assert_eq!(profiles[0]["name"], "all threads");
    (&profiles[0], &profiles[1..])
}

/// Milliseconds as they are written, in ns.
pub fn ns(value: &Value) -> u64 {
    let text = value.to_string();
    let (ms, rest) = text.split_once('.').unwrap_or((&text, ""));
    format!("{ms}{rest:0<6}").parse().unwrap()
}

pub fn of_firefox(file: &Value) -> Leaves {
    let mut leaves = Leaves::new();
    let at = |table: &Value, column: &str, row: usize| table[column][row].clone();
    let categories = list(&file["meta"]["categories"]);
    assert!(
        categories
            .iter()
            .any(|category| category["color"] == "grey")
    );
    for thread in list(&file["threads"]) {
        for table in ["frameTable", "funcTable", "stackTable", "resourceTable"] {
            let length = thread[table]["length"].as_u64().unwrap() as usize;
            for (name, column) in thread[table].as_object().unwrap() {
                assert!(
                    name == "length" || list(column).len() == length,
                    "{table}.{name}"
                );
            }
        }
        let samples = &thread["samples"];
        assert_eq!(samples["weightType"], "tracing-ms");
        let mut before = 0;
        for row in 0..samples["length"].as_u64().unwrap() as usize {
            let time = ns(&samples["time"][row]);
            assert!(before <= time, "samples are in the order of time");
            before = time;
            // A gap has no stack, and no weight.
            let Some(stack) = samples["stack"][row].as_u64() else {
                assert_eq!(ns(&samples["weight"][row]), 0);
                continue;
            };
            let stack = stack as usize;
            let frame = at(&thread["stackTable"], "frame", stack).as_u64().unwrap() as usize;
            let prefix = at(&thread["stackTable"], "prefix", stack);
            assert!(prefix.as_u64().is_none_or(|prefix| prefix < stack as u64));
            let category = at(&thread["frameTable"], "category", frame)
                .as_u64()
                .unwrap();
            assert!((category as usize) < categories.len());
            let func = at(&thread["frameTable"], "func", frame).as_u64().unwrap() as usize;
            let name = at(&thread["funcTable"], "name", func).as_u64().unwrap() as usize;
            let mut name = thread["stringArray"][name].as_str().unwrap().to_owned();
            if let Some(resource) = at(&thread["funcTable"], "resource", func).as_u64() {
                let lib = at(&thread["resourceTable"], "lib", resource as usize);
                let lib = &file["libs"][lib.as_u64().unwrap() as usize]["name"];
                name.insert_str(0, &format!("{}!", lib.as_str().unwrap()));
            }
            add(&mut leaves, &name, Some(1), ns(&samples["weight"][row]));
        }
    }
    leaves
}

pub fn of_otlp(bytes: &[u8]) -> Leaves {
    let data = ProfilesData::decode(bytes).unwrap();
    let tables = data.dictionary.unwrap();
    let text = |index: i32| tables.string_table[index as usize].as_str();
    assert_eq!(text(0), "");
    let mut leaves = Leaves::new();
    for resource in &data.resource_profiles {
        assert!(
            resource
                .resource
                .as_ref()
                .unwrap()
                .attributes
                .iter()
                .any(|a| a.key == "process.pid")
        );
        for profile in &resource.scope_profiles[0].profiles {
            let kind = profile.sample_type.as_ref().unwrap();
            let is_time = text(kind.type_strindex) == "time";
            assert_eq!(
                text(kind.unit_strindex),
                if is_time { "nanoseconds" } else { "count" }
            );
            for sample in &profile.samples {
                let stack = &tables.stack_table[sample.stack_index as usize];
                let location = &tables.location_table[stack.location_indices[0] as usize];
                assert!((location.mapping_index as usize) < tables.mapping_table.len());
                let function = &tables.function_table[location.lines[0].function_index as usize];
                let keys = sample
                    .attribute_indices
                    .iter()
                    .map(|&index| text(tables.attribute_table[index as usize].key_strindex));
                assert!(keys.collect::<Vec<_>>().contains(&"thread.id"));
                let value = sample.values[0] as u64;
                let (samples, time) = if is_time { (0, value) } else { (value, 0) };
                add(
                    &mut leaves,
                    text(function.name_strindex),
                    Some(samples),
                    time,
                );
            }
        }
    }
    leaves
}

/// The tree that the drawing script reads: (title, own weight by name).
pub fn of_svg(svg: &str) -> Leaves {
    let (_, data) = svg.split_once("id=\"data\">").unwrap();
    let data: Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    assert_eq!(data["unit"], "ns");
    let mut leaves = Leaves::new();
    for node in list(&data["nodes"]).chunks(3) {
        let name = data["frames"][node[1].as_u64().unwrap() as usize][0]
            .as_str()
            .unwrap();
        let own = node[2].as_u64().unwrap();
        if own > 0 {
            add(&mut leaves, name, None, own);
        }
    }
    leaves
}

pub fn of_folded(folded: &str) -> BTreeMap<String, u64> {
    let mut leaves: BTreeMap<String, u64> = BTreeMap::new();
    for line in folded.lines() {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        let leaf = stack.rsplit(';').next().unwrap();
        *leaves.entry(bare(&plain(leaf))).or_insert(0) += weight.parse::<u64>().unwrap();
    }
    leaves
}

/// Returns a name as folded stacks have it, without arguments: overloads are merged.
pub fn bare(name: &str) -> String {
    name.split('(').next().unwrap().replace(';', ":")
}

/// The ns of all stacks on which a name is that passes.
pub fn through(file: &Value, passes: impl Fn(&str) -> bool) -> u64 {
    let frames = list(&file["shared"]["frames"])
        .iter()
        .map(|f| passes(f["name"].as_str().unwrap()));
    let frames: Vec<bool> = frames.collect();
    let profiles = threads_of_speedscope(file).1.iter();
    let samples = profiles.flat_map(|p| list(&p["samples"]).iter().zip(list(&p["weights"])));
    let on = samples.filter(|(stack, _)| {
        list(stack)
            .iter()
            .any(|f| frames[f.as_u64().unwrap() as usize])
    });
    on.map(|(_, weight)| weight.as_u64().unwrap()).sum()
}

/// Whether a viewer is there; if it must be, that it is not is a failure.
pub fn has(what: &str, is_there: bool) -> bool {
    let required = std::env::var_os("CHRONOSYM_REQUIRE_TOOLS").is_some_and(|value| value == "1");
    assert!(is_there || !required, "{what} is not there");
    if !is_there {
        eprintln!("{what} is not there: left out");
    }
    is_there
}

pub fn runs(program: &str, argument: &str) -> bool {
    let out = Command::new(program).arg(argument).output();
    has(program, out.is_ok_and(|out| out.status.success()))
}

/// The data of a report: its header, and the rest.
fn report_data(page: &str) -> (Value, Vec<u8>) {
    let (_, data) = page.split_once("id=\"trace\">").unwrap();
    let (data, _) = data.split_once("</script>").unwrap();
    let bytes = base64::prelude::BASE64_STANDARD.decode(data).unwrap();
    let mut all = Vec::new();
    let mut inflated = flate2::read::ZlibDecoder::new(bytes.as_slice());
    inflated.read_to_end(&mut all).unwrap();
    let length = u32::from_le_bytes(all[..4].try_into().unwrap()) as usize;
    let header = serde_json::from_slice(&all[4..4 + length]).unwrap();
    (header, all[4 + length..].to_vec())
}

pub fn report_header(page: &str) -> Value {
    report_data(page).0
}

/// The self times in a report by the names of functions, read without the report's own script.
pub fn of_report(page: &str) -> Leaves {
    let (header, bytes) = report_data(page);
    assert_eq!(header["unit"], "time");
    let mut columns: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    let mut rest = bytes.as_slice();
    for column in list(&header["columns"]) {
        let of = |key: &str| column[key].as_u64().unwrap() as usize;
        let (count, width) = (of("count"), of("bytes"));
        let (own, after) = rest.split_at(count * width);
        let value = |row: usize| {
            let bytes = (0..width).map(|byte| u64::from(own[byte * count + row]) << (8 * byte));
            bytes.sum()
        };
        let name = column["name"].as_str().unwrap();
        columns.insert(name, (0..count).map(value).collect());
        rest = after;
    }
    assert!(rest.is_empty());
    let signed = |value: u64| (value >> 1) as i64 ^ -((value & 1) as i64);
    let mut time = 0;
    let times = columns["sample.time"].iter().map(|&delta| {
        time += signed(delta);
        time
    });
    let times: Vec<i64> = times.collect();
    let (mut follower, mut before) = (BTreeMap::new(), None);
    let threads = columns["sample.thread"].iter().map(|&number| {
        let thread = if number > 0 {
            number - 1
        } else {
            follower[&before.unwrap()]
        };
        before.map(|before| follower.insert(before, thread));
        before = Some(thread);
        thread
    });
    let threads: Vec<u64> = threads.collect();
    let mut stack_of = BTreeMap::new();
    let stacks = threads
        .iter()
        .zip(&columns["sample.stack"])
        .map(|(thread, &delta)| {
            let stack = stack_of.entry(*thread).or_insert(0);
            *stack += signed(delta);
            *stack as usize
        });
    let stacks: Vec<usize> = stacks.collect();
    let (mut next, mut last) = (BTreeMap::new(), 0);
    let mut weights = vec![0; times.len()];
    for index in (0..times.len()).rev() {
        let until = next.insert(threads[index], times[index]);
        weights[index] = until.map_or(0, |until| until - times[index]);
    }
    let mut leaves = Leaves::new();
    for index in 0..times.len() {
        let stated = signed(columns["sample.weight"][index]);
        let weight = if header["weight_until_next"] == true {
            weights[index] + stated
        } else {
            last += stated;
            last
        };
        let frame = columns["stack.frame"][stacks[index]] as usize;
        let function = columns["frame.function"][frame] as usize;
        let name = header["functions"][function][0].as_str().unwrap();
        add(&mut leaves, name, None, weight as u64);
    }
    leaves
}
