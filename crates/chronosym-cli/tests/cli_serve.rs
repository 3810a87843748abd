//! `serve`: responses to Firefox Profiler's requests, and rejection of all others.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use chronosym_pdb::pe::PeImage;
use chronosym_pdb::r2r::R2rMap;
use chronosym_support::etl::{At, EtlWriter, Image, Op, Options, Process};
use serde_json::{Value, json};

use common::chronosym;
use common::served::Served;

const VIEWER: &str = "https://profiler.firefox.com";

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata/clr10")
        .join(name)
}

fn serve(options: &[&Path]) -> Served {
    let symbols = testdata("workload");
    let options = [&[Path::new("--symbols"), &symbols], options].concat();
    serve_trace(&testdata("traces/all.nettrace.zip"), &options)
}

fn serve_trace(trace: &Path, options: &[&Path]) -> Served {
    let mut command = chronosym();
    command.args(["-q", "serve", "--offline", "--viewer", "firefox"]);
    command.args(options).arg(trace);
    Served::start(command, |line| {
        let (page, server) = line.split_once("/?symbolServer=").unwrap();
        let plain = |url: &str| {
            let url = url.replace("%3A", ":").replace("%2F", "/");
            url.replace("%2E", ".")
        };
        let server = plain(server);
        let profile = page.strip_prefix(&format!("{VIEWER}/from-url/")).unwrap();
        assert_eq!(plain(profile), format!("{server}/profile.json"));
        server
    })
}

/// Returns the viewer's answer to a question.
fn reply_to(served: &Served, path: &str, question: &Value) -> Value {
    let origin = [("Origin", VIEWER)];
    let reply = served.ask("POST", &served.own(path), &origin, &question.to_string());
    assert_eq!(reply.status, 200, "{}", reply.head);
    assert!(
        reply
            .head
            .contains(&format!("access-control-allow-origin: {VIEWER}"))
    );
    serde_json::from_str(&reply.body).unwrap()
}

#[test]
fn the_viewer_gets_profile_symbols_and_source() {
    let served = serve(&[Path::new("--sources"), &testdata("workload")]);
    let reply = served.ask(
        "GET",
        &served.own("/profile.json"),
        &[("Origin", VIEWER)],
        "",
    );
    assert_eq!(reply.status, 200);
    let profile: Value = serde_json::from_str(&reply.body).unwrap();

    // A frame with a line, as the viewer would look it up after a double click.
    let threads = profile["threads"].as_array().unwrap();
    let mut looked_up = 0;
    for thread in threads {
        let (frames, functions) = (&thread["frameTable"], &thread["funcTable"]);
        for row in 0..frames["length"].as_u64().unwrap() as usize {
            let function = frames["func"][row].as_u64().unwrap() as usize;
            let (Some(line), Some(file)) = (
                frames["line"][row].as_u64(),
                functions["fileName"][function].as_u64(),
            ) else {
                continue;
            };
            if looked_up == 20 || frames["inlineDepth"][row] != 0 {
                continue;
            }
            let resource = functions["resource"][function].as_u64().unwrap() as usize;
            let lib = thread["resourceTable"]["lib"][resource].as_u64().unwrap() as usize;
            let lib = &profile["libs"][lib];
            let text =
                |index: &Value| thread["stringArray"][index.as_u64().unwrap() as usize].clone();
            let (name, file) = (text(&functions["name"][function]), text(&json!(file)));
            let address = frames["address"][row].as_u64().unwrap();
            let answer = reply_to(
                &served,
                "/symbolicate/v5",
                &json!({"jobs": [{
                    "memoryMap": [[lib["debugName"], lib["breakpadId"]], ["no-such-library", "0"]],
                    "stacks": [[[0, address], [1, 4096], [-1, 7]]],
                }]}),
            );
            let result = &answer["results"][0];
            let found = result["found_modules"].as_object().unwrap();
            assert_eq!(
                found
                    .values()
                    .filter(|known| **known == json!(true))
                    .count(),
                1
            );
            let symbol = &result["stacks"][0][0];
            assert!(
                name.as_str()
                    .unwrap()
                    .starts_with(symbol["function"].as_str().unwrap())
            );
            assert_eq!(
                (&symbol["file"], symbol["line"].as_u64()),
                (&file, Some(line))
            );
            assert!(result["stacks"][0][1].get("function").is_none());
            assert!(result["stacks"][0][2].get("function").is_none());
            let answer = reply_to(
                &served,
                "/source/v1",
                &json!({
                    "debugName": lib["debugName"], "debugId": lib["breakpadId"],
                    "moduleOffset": format!("{address:#x}"), "file": file,
                }),
            );
            let source = answer["source"]
                .as_str()
                .unwrap_or_else(|| panic!("{answer}"));
            assert!(source.lines().count() as u64 >= line, "{file}");
            assert!(source.contains("namespace") || source.contains("class"));
            looked_up += 1;
        }
    }
    assert!(looked_up > 5);

    for file in [
        "/etc/passwd",
        "../../../etc/passwd",
        "/src/workload/../../etc/passwd",
    ] {
        let lib = profile["libs"]
            .as_array()
            .unwrap()
            .iter()
            .find(|lib| lib["name"] == "Workload")
            .unwrap();
        let question = json!({"debugName": "Workload", "debugId": lib["breakpadId"], "moduleOffset": "0x0", "file": file});
        let answer = reply_to(&served, "/source/v1", &question);
        assert_eq!(
            answer["error"],
            "the profile has no such file in this library"
        );
    }
    let lib = &profile["libs"][0];
    let question = json!({
        "debugName": lib["debugName"], "debugId": lib["breakpadId"], "startAddress": "0x1000", "size": "0x10",
    });
    let answer = reply_to(&served, "/asm/v1", &question);
    assert!(
        answer["error"]
            .as_str()
            .unwrap()
            .contains("no image of that name")
    );
    let answer = reply_to(&served, "/asm/v1", &json!({}));
    assert!(
        answer["error"]
            .as_str()
            .unwrap()
            .contains("invalid request")
    );
    let answer = reply_to(&served, "/symbolicate/v5", &json!({"jobs": 7}));
    assert!(
        answer["error"]
            .as_str()
            .unwrap()
            .contains("invalid request")
    );
}

/// A trace of a process that runs precompiled code of an image.
fn etl_with_image(dll: &[u8]) -> Vec<u8> {
    const BASE: u64 = 0x7ff0_0000_0000;
    let image = PeImage::parse(dll).unwrap();
    let codeview = image.portable_codeview().unwrap();
    let mut etl = EtlWriter::new(Vec::new(), Options::default()).unwrap();
    let process = Process {
        pid: 100,
        image: "app.exe",
        command_line: "app.exe",
        ..Process::default()
    };
    etl.process(At::ns(1), Op::DCStart, &process).unwrap();
    let at = At::ms(1).pid(100).tid(7);
    etl.thread(At::ns(2), Op::DCStart, 100, 7).unwrap();
    let size = u64::from(image.size_of_image());
    etl.image_id(at, BASE, size, image.timestamp(), "Workload.dll")
        .unwrap();
    let id = codeview.id;
    etl.rsds(at, BASE, 100, id.guid.0, id.age, "Workload.pdb")
        .unwrap();
    let loaded = Image {
        base: BASE,
        size,
        pid: 100,
        path: r"\Device\HarddiskVolume2\bin\Workload.dll",
        ..Image::default()
    };
    etl.image(at, Op::Load, &loaded).unwrap();
    let map = std::fs::read(testdata("r2r/windows-x64/Workload.ni.r2rmap")).unwrap();
    let map = R2rMap::parse(&map).unwrap();
    let longest = map.methods().iter().max_by_key(|row| row.size).unwrap();
    for n in 0..20 {
        let address = BASE + u64::from(longest.rva) + n * u64::from(longest.size) / 20;
        etl.sample(At::ms(2 + n as i64), address, 7).unwrap();
    }
    etl.finish().unwrap()
}

#[test]
fn the_viewer_gets_instructions_of_images_at_hand() {
    let folder = testdata("r2r/windows-x64");
    let dll = std::fs::read(folder.join("Workload.dll")).unwrap();
    let trace = common::file(&etl_with_image(&dll));
    let profile = |served: &Served| -> Value {
        let reply = served.ask("GET", &served.own("/profile.json"), &[], "");
        serde_json::from_str(&reply.body).unwrap()
    };
    let served = serve_trace(&trace, &[Path::new("--symbols"), &folder]);
    let file = profile(&served);
    let thread = &file["threads"][0];
    let symbols = &thread["nativeSymbols"];
    assert_eq!(symbols["length"], 1, "{symbols}");
    let start = symbols["address"][0].as_u64().unwrap();
    let lib = &file["libs"][symbols["libIndex"][0].as_u64().unwrap() as usize];
    let question = json!({
        "debugName": lib["debugName"], "debugId": lib["breakpadId"], "name": lib["name"], "codeId": null,
        "startAddress": format!("{start:#x}"), "size": "0x1", "continueUntilFunctionEnd": true,
    });
    let answer = reply_to(&served, "/asm/v1", &question);
    assert_eq!(
        (&answer["arch"], &answer["syntax"][0]),
        (&"x86_64".into(), &"Intel".into())
    );
    let instructions = answer["instructions"].as_array().unwrap();
    let offsets: Vec<u64> = instructions
        .iter()
        .map(|i| i[0].as_u64().unwrap())
        .collect();
    assert!(offsets[0] == 0 && offsets.is_sorted_by(|a, b| a < b && b - a <= 15));
    let texts: Vec<&str> = instructions
        .iter()
        .map(|i| i[1].as_str().unwrap())
        .collect();
    assert!(
        texts.contains(&"ret") && !texts.contains(&"(bad)"),
        "{texts:?}"
    );
    // To the end of the function: each sampled address is in it.
    let sampled = thread["frameTable"]["address"].as_array().unwrap();
    let last = sampled.iter().map(|at| at.as_u64().unwrap()).max().unwrap();
    assert!(start + offsets[offsets.len() - 1] + 15 > last);
    let mut one = question.clone();
    one["continueUntilFunctionEnd"] = json!(false);
    let answer = reply_to(&served, "/asm/v1", &one);
    assert_eq!(answer["instructions"].as_array().unwrap().len(), 1);

    let served = serve_trace(&trace, &[]);
    let answer = reply_to(&served, "/asm/v1", &question);
    let error = answer["error"].as_str().unwrap();
    assert!(
        error.contains("Workload.dll") || error.contains("no image"),
        "{error}"
    );
}

#[test]
fn source_is_read_only_where_it_may_be() {
    let served = serve(&[]);
    let reply = served.ask("GET", &served.own("/profile.json"), &[], "");
    let profile: Value = serde_json::from_str(&reply.body).unwrap();
    let libs = profile["libs"].as_array().unwrap();
    let lib = libs.iter().find(|lib| lib["name"] == "Workload").unwrap();
    let question = json!({
        "debugName": "Workload", "debugId": lib["breakpadId"], "moduleOffset": "0x0", "file": "/src/workload/Program.cs",
    });
    let answer = reply_to(&served, "/source/v1", &question);
    assert!(
        answer["error"].as_str().unwrap().contains("--sources"),
        "{answer}"
    );
}

#[test]
fn nobody_else_gets_anything() {
    let served = serve(&[]);
    let own = served.own("/profile.json");
    let wrong = format!("/{}/profile.json", "0".repeat(32));
    for path in [
        "/",
        "/profile.json",
        wrong.as_str(),
        &served.own("/"),
        &served.own("/../profile.json"),
        &served.own("/other"),
    ] {
        let reply = served.ask("GET", path, &[], "");
        assert_eq!((reply.status, reply.body.as_str()), (404, ""), "{path}");
    }
    for header in [
        ("Origin", "https://example.org"),
        ("Origin", "null"),
        ("Host", "example.org"),
        ("Host", "localhost"),
    ] {
        let reply = served.ask("GET", &own, &[header], "");
        assert_eq!((reply.status, reply.body.as_str()), (403, ""), "{header:?}");
        assert!(!reply.head.contains("access-control-allow"), "{header:?}");
    }
    assert_eq!(served.ask("POST", &own, &[], "{}").status, 405);
    assert_eq!(
        served.ask("GET", &served.own("/source/v1"), &[], "").status,
        405
    );
    let preflight = served.ask(
        "OPTIONS",
        &served.own("/source/v1"),
        &[("Origin", VIEWER)],
        "",
    );
    assert_eq!(preflight.status, 204);
    assert!(
        preflight
            .head
            .contains("access-control-allow-headers: content-type")
    );
}

/// Only requests with the printed address get the report; pages of other sites do not.
#[test]
fn the_report_is_served() {
    let mut command = chronosym();
    command.args(["-q", "serve", "--offline"]);
    command.arg(testdata("traces/all.nettrace.zip"));
    let served = Served::report(command);
    let reply = served.ask("GET", &served.own("/"), &[], "");
    assert_eq!(reply.status, 200);
    assert!(
        reply
            .head
            .contains("content-type: text/html; charset=utf-8")
    );
    assert!(!reply.head.contains("access-control-allow"));
    let written = chronosym()
        .args(["-q", "stacks", "--offline", "--format", "html"])
        .arg(testdata("traces/all.nettrace.zip"))
        .output()
        .unwrap();
    assert_eq!(reply.body.as_bytes(), written.stdout);
    let wrong = format!("/{}/", "0".repeat(32));
    let profile = served.own("/profile.json");
    for path in [
        "/",
        &wrong,
        &served.own(""),
        &profile,
        &served.own("/source/v1"),
    ] {
        let reply = served.ask("GET", path, &[], "");
        assert_eq!((reply.status, reply.body.as_str()), (404, ""), "{path}");
    }
    for header in [
        ("Origin", VIEWER),
        ("Origin", "null"),
        ("Host", "localhost"),
    ] {
        let reply = served.ask("GET", &served.own("/"), &[header], "");
        assert_eq!((reply.status, reply.body.as_str()), (403, ""), "{header:?}");
    }
    assert_eq!(served.ask("POST", &served.own("/"), &[], "{}").status, 405);
}

/// A page that lacks samples may request sums of them: with its token only.
#[test]
fn sums_are_served_if_the_page_lacks_samples() {
    let serve = |options: &[&str]| {
        let mut command = chronosym();
        command.args(["-q", "serve", "--offline"]).args(options);
        command.arg(testdata("traces/all.nettrace.zip"));
        Served::report(command)
    };
    let policy = "connect-src 'self'";
    let page = |served: &Served| served.ask("GET", &served.own("/"), &[], "").body;
    let whole = serve(&[]);
    assert!(!page(&whole).contains(policy));
    let reply = whole.ask("GET", &whole.own("/query"), &[], "");
    assert_eq!((reply.status, reply.body.as_str()), (404, ""));

    let served = serve(&["--max-report-samples", "100"]);
    assert!(page(&served).contains(policy));
    let ask = |path: &str| served.ask("GET", path, &[], "");
    let all = ask(&served.own("/query"));
    assert_eq!(all.status, 200);
    assert!(all.head.contains("content-type: text/plain"));
    let part = ask(&served.own("/query?from=1000000000&to=1500000000"));
    assert!(part.body.len() < all.body.len());
    // Times before, after and in the wrong order select nothing.
    let lengths = ["from=0&to=0", "from=99999999999999", "from=9&to=3"].map(|times| {
        let reply = ask(&served.own(&format!("/query?{times}")));
        assert_eq!(reply.status, 200, "{times}");
        reply.body.len()
    });
    assert!(lengths.iter().all(|&length| length < part.body.len()));
    for wrong in [
        "from=-1",
        "from=x",
        "to=99999999999999999999",
        "at=3",
        "from",
    ] {
        let reply = ask(&served.own(&format!("/query?{wrong}")));
        assert_eq!((reply.status, reply.body.as_str()), (400, ""), "{wrong}");
    }
    assert_eq!(ask("/query").status, 404);
    assert_eq!(ask(&format!("/{}/query", "0".repeat(32))).status, 404);
    let foreign = [("Origin", "https://example.org")];
    let reply = served.ask("GET", &served.own("/query"), &foreign, "");
    assert_eq!((reply.status, reply.body.as_str()), (403, ""));
    assert_eq!(
        served.ask("POST", &served.own("/query"), &[], "").status,
        405
    );
}

/// It is always stopped by force: its files have no names.
#[cfg(unix)]
#[test]
fn nothing_remains_when_it_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = chronosym();
    command
        .env("TMPDIR", folder.path())
        .args(["-q", "serve", "--offline"]);
    command.arg(testdata("traces/all.nettrace.zip"));
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let stdout = child.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    assert!(line.starts_with("http://127.0.0.1:"), "{line}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

impl Served {
    /// A connection that sent these bytes and waits.
    fn connect(&self, bytes: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        stream.write_all(bytes.as_bytes()).unwrap();
        stream
    }

    fn assert_answers(&self) {
        let reply = self.ask("OPTIONS", &self.own("/asm/v1"), &[], "");
        assert_eq!(reply.status, 204);
    }

    /// Returns its peak memory in KiB.
    #[cfg(target_os = "linux")]
    fn peak_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        line.unwrap()
            .split_whitespace()
            .nth(1)
            .unwrap()
            .parse()
            .unwrap()
    }
}

#[test]
fn slow_clients_do_not_block_others() {
    let served = serve(&[]);
    let post = |path: &str| {
        let host = &served.host;
        served.connect(&format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 100000\r\n\r\n"
        ))
    };
    let with_token: Vec<_> = (0..50).map(|_| post(&served.own("/asm/v1"))).collect();
    let idle: Vec<_> = (0..50).map(|_| served.connect("GET / HT")).collect();
    served.assert_answers();
    // Without the token no body is waited for.
    let mut reply = String::new();
    let mut stranger = post("/0123456789abcdef0123456789abcdef/asm/v1");
    stranger.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 404 "), "{reply}");
    // Headers that do not arrive end the connection.
    for mut stream in idle {
        let mut reply = String::new();
        _ = stream.read_to_string(&mut reply);
        assert!(!reply.contains(" 200 "), "{reply}");
    }
    drop(with_token);
    served.assert_answers();
}

#[test]
fn large_requests_allocate_nothing() {
    let served = serve(&[]);
    served.assert_answers();
    #[cfg(target_os = "linux")]
    let before = served.peak_kib();
    let head = format!("GET / HTTP/1.1\r\nHost: {}\r\n", served.host);
    for part in ["x".repeat(1 << 20), "x: y\r\n".repeat(1 << 18)] {
        let mut stream = served.connect(&head);
        stream.write_all(b"x: ").ok();
        // It hangs up after far less.
        let sent = (0..256).take_while(|_| stream.write_all(part.as_bytes()).is_ok());
        assert!(sent.count() < 64);
    }
    let body = "x".repeat(17 << 20);
    let mut stream = served.connect(&format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n",
        served.own("/asm/v1"),
        served.host,
        body.len()
    ));
    _ = stream.write_all(body.as_bytes());
    let mut reply = [0; 12];
    if stream.read_exact(&mut reply).is_ok() {
        assert_eq!(&reply, b"HTTP/1.1 413");
    }
    served.assert_answers();
    #[cfg(target_os = "linux")]
    {
        let growth = served.peak_kib() - before;
        assert!(growth < 64 << 10, "{growth} KiB more");
    }
}

/// A request whose end is ambiguous cannot bring a second one with it.
#[test]
fn one_request_has_one_answer() {
    let served = serve(&[]);
    let (path, host) = (served.own("/asm/v1"), &served.host);
    let second = format!(
        "GET {} HTTP/1.1\r\nHost: {host}\r\n\r\n",
        served.own("/profile.json")
    );
    let mut stream = served.connect(&format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n\
         0\r\n\r\n{second}"
    ));
    let mut reply = Vec::new();
    _ = stream.read_to_end(&mut reply);
    let reply = String::from_utf8_lossy(&reply);
    assert_eq!(reply.matches("HTTP/1.1 ").count(), 1, "{reply}");
}
