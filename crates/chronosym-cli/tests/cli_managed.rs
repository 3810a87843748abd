//! `chronosym symbolize`: locations in managed code, and texts that name several modules.

mod common;

use chronosym_pdb::pe::PeImage;
use chronosym_pdb::r2r::R2rMap;
use common::*;
use serde_json::Value;

/// The frame of each answer.
fn frames(args: &[&str]) -> Vec<Value> {
    let args = [&["symbolize", "--style", "json"], args].concat();
    let answers = json_lines(&args).into_iter();
    answers.map(|answer| answer["frames"][0].clone()).collect()
}

fn place(frame: &Value) -> (Option<&str>, Option<&str>, Option<u64>) {
    let file = frame["file"].as_str();
    let file = file.map(|file| file.rsplit(['/', '\\']).next().unwrap());
    (frame["name"].as_str(), file, frame["line"].as_u64())
}

#[test]
fn tokens_and_names_lead_to_lines() {
    let image = arg("clr10/workload/Workload.dll");
    let asked = [
        "0x06000001+0x1a",
        "0x06000001",
        "Workload!0x06000003+0",
        "Workload.Inlining.Hot+0x1a",
        "Workload!Workload.Inlining.Middle+0x0",
    ];
    let found = frames(&[&["--obj", &image][..], &asked].concat());
    let hot = (Some("Workload.Inlining.Hot"), Some("Inlining.cs"), Some(16));
    let middle = (
        Some("Workload.Inlining.Middle"),
        Some("Inlining.cs"),
        Some(32),
    );
    assert_eq!(place(&found[0]), hot);
    assert_eq!(place(&found[1]).0, hot.0);
    assert_eq!(place(&found[2]), middle);
    assert_eq!(place(&found[3]), hot);
    assert_eq!(place(&found[4]), middle);
    assert_eq!(
        (&found[3]["token"], &found[3]["il_offset"]),
        (&"0x06000001".into(), &26.into())
    );
    // The PDB alone has no names.
    let found = frames(&[
        "--pdb",
        &arg("clr10/workload/Workload.pdb"),
        "0x06000003+0x1",
    ]);
    assert_eq!(place(&found[0]), (None, Some("Inlining.cs"), Some(32)));
    assert_eq!(found[0]["name_reason"], "NoName");
    // One that is embedded, and packed.
    let found = frames(&[
        "--obj",
        &arg("clr10/workload/PluginB.dll"),
        "0x06000001+0x1",
    ]);
    assert_eq!(
        place(&found[0]),
        (Some("PluginB.Beta.BetaSpin"), Some("PluginB.cs"), Some(8))
    );
}

#[test]
fn unresolved_requests_to_managed_files_have_a_reason() {
    let image = arg("clr10/workload/Workload.dll");
    let args = [
        "--obj",
        &image,
        "0x0600ffff+0",
        "0x10",
        "No.Such.Method+0",
        "Workload!A.B+1",
    ];
    let reasons: Vec<Value> = frames(&args)
        .into_iter()
        .map(|mut frame| frame["name_reason"].take())
        .collect();
    assert_eq!(
        reasons,
        ["NoName", "InvalidAddress", "NoSymbolFile", "NoName"]
    );
    // A name that two methods have is ambiguous.
    let mut bytes = std::fs::read(&image).unwrap();
    let at = bytes.windows(8).position(|part| part == b"\0Middle\0");
    bytes[at.unwrap()..][..8].copy_from_slice(b"\0Outer\0\0");
    let overloaded = file(&bytes);
    let asked = [
        "--obj",
        overloaded.to_str().unwrap(),
        "Workload.Inlining.Outer+0",
        "Workload.Inlining.Outer(Int32,Boolean,String,Int32)+0",
        "Workload.Inlining.Outer(Int32,Boolean,String,Int32,String,Int32)+0",
        "Workload.Inlining.Outer(Int32)+0",
    ];
    let found = frames(&asked);
    assert_eq!(found[0]["name_reason"], "Ambiguous");
    assert_eq!(found[1]["token"], "0x06000002");
    assert_eq!(found[2]["token"], "0x06000003");
    assert_eq!(found[3]["name_reason"], "NoSymbolFile");
    // A PDB of another build answers nothing.
    let other = arg("clr10/workload/PluginA.pdb");
    let refused = run(&["symbolize", "--obj", &image, "--pdb", &other, "0x06000001"]);
    assert_eq!(refused.status, 1);
    assert!(
        refused.stderr.contains("of another build"),
        "{}",
        refused.stderr
    );
    // It does on request, marked.
    let marked = frames(&["--obj", &image, "--pdb", &other, "--any-pdb", "0x06000001"]);
    assert_eq!(marked[0]["certainty"], "Approximate");
    // Without one names stay.
    let folder = tempfile::tempdir().unwrap();
    let alone = folder.path().join("Workload.dll");
    std::fs::copy(testdata("clr10/workload/Workload.dll"), &alone).unwrap();
    let found = frames(&["--obj", alone.to_str().unwrap(), "0x06000001+0x1a"]);
    assert_eq!(found[0]["name"], "Workload.Inlining.Hot");
    assert_eq!(found[0]["line_reason"], "NoSymbolFile");
}

/// The image records where the compiler wrote the PDB.
#[test]
fn the_pdb_is_where_the_image_records_it() {
    let [images, elsewhere] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let pdb = elsewhere.path().join("W.pdb");
    std::fs::copy(testdata("clr10/workload/Workload.pdb"), &pdb).unwrap();
    let mut bytes = std::fs::read(testdata("clr10/workload/Workload.dll")).unwrap();
    let entry = bytes.windows(4).position(|part| part == b"RSDS").unwrap();
    // Signature, GUID and age precede the path, and zeros follow it.
    let path = &mut bytes[entry + 24..];
    let len = path.iter().position(|&b| b == 0).unwrap();
    let room = path[len..].iter().take_while(|&&b| b == 0).count() + len;
    let text = pdb.to_str().unwrap();
    if text.len() >= room {
        // The folders of some systems have longer names than the compiler's.
        return;
    }
    path[..room].fill(0);
    path[..text.len()].copy_from_slice(text.as_bytes());
    let image = images.path().join("Workload.dll");
    std::fs::write(&image, &bytes).unwrap();
    let ask = |more: &[&str]| {
        let args = ["--obj", image.to_str().unwrap(), "0x06000003+0"];
        frames(&[&args, more].concat())[0].clone()
    };
    assert_eq!(place(&ask(&[])).2, Some(32));
    assert_eq!(
        ask(&["--no-recorded-paths"])["line_reason"],
        "PathNotTrusted"
    );
}

/// The compiler's own map names every precompiled method: so does the image.
#[test]
fn precompiled_images_resolve_rvas() {
    for target in ["linux-x64", "windows-x64", "linux-arm64"] {
        let image = arg(&format!("clr10/r2r/{target}/Workload.dll"));
        let map = std::fs::read(arg(&format!("clr10/r2r/{target}/Workload.ni.r2rmap"))).unwrap();
        let map = R2rMap::parse(&map).unwrap();
        let list: String = map
            .methods()
            .iter()
            .map(|row| format!("{:#x}\n", row.rva))
            .collect();
        let symbols = arg("clr10/workload");
        let args = [
            "symbolize",
            "--style",
            "json",
            "--obj",
            &image,
            "--symbols",
            &symbols,
        ];
        let run = run_with_input(&args, list.as_bytes());
        assert_eq!(run.status, 0, "{}", run.stderr);
        let mut with_line = 0;
        let mut lines = run.stdout.lines();
        for (row, line) in map.methods().iter().zip(&mut lines) {
            let answer: Value = serde_json::from_str(line).unwrap();
            let frame = &answer["frames"][0];
            let (owner, name) = row.owner_and_name().unwrap();
            let expected = format!("{}.{name}", owner.replace(", ", ","));
            assert_eq!(frame["name"], expected, "{answer}");
            assert_eq!(frame["offset"], 0);
            with_line += usize::from(frame["line"].is_u64());
        }
        assert!(lines.next().is_none() && map.methods().len() > 20);
        assert!(with_line > 10, "{target}: {with_line}");
    }
    // The address that the image would like to have is its, too.
    let image = arg("clr10/r2r/linux-x64/Workload.dll");
    let bytes = std::fs::read(&image).unwrap();
    let base = PeImage::parse(&bytes).unwrap().image_base();
    let at = format!("{:#x}", base + 0x11745);
    let found = frames(&["--obj", &image, &at, "0x11745"]);
    assert_eq!(found[0]["name"], "Workload.Inlining.Hot");
    assert_eq!(found[0]["offset"], found[1]["offset"]);
    assert_eq!(found[0]["address"], at);
}

#[test]
fn a_request_selects_one_of_several_files() {
    let [x64, x86] = ["x86_64", "i686"].map(|arch| arg(&format!("pdb-small/{arch}/small.exe")));
    let managed = arg("clr10/workload/Workload.dll");
    let objects = ["--obj", &x64, "--obj", &x86, "--obj", &managed];
    let named = |args: &[&str]| {
        let found = frames(&[&objects[..], args].concat());
        found
            .into_iter()
            .map(|frame| frame["name"].as_str().unwrap_or("").to_owned())
            .collect::<Vec<_>>()
    };
    // By path, name and method; an address alone is ambiguous.
    let inside = |arch: &str| format!("/srv/{arch}/small.exe+0x1010");
    let one_of = |object: &str| frames(&["--obj", object, "small+0x1010"])[0]["name"].clone();
    let asked = [
        inside("x86_64"),
        inside("i686"),
        "Workload.Inlining.Hot+0x1a".to_owned(),
        "0x1010".to_owned(),
        "other+0x1010".to_owned(),
    ];
    let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
    let expected = [
        one_of(&x64).as_str().unwrap().to_owned(),
        one_of(&x86).as_str().unwrap().to_owned(),
        "Workload.Inlining.Hot".to_owned(),
        String::new(),
        String::new(),
    ];
    assert_eq!(named(&asked), expected);
    // As for llvm-symbolizer: by path, or by the id.
    let id = frames(&["--obj", &x86, "--rva", "0x10ffff"])[0]["pdb_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let list = format!("CODE \"/a b/x86_64/small.exe\" 0x140001010\nBUILDID:{id} 0x401010\n");
    let args = [&["symbolize", "--style", "llvm"], &objects[..]].concat();
    let run = run_with_input(&args, list.as_bytes());
    let mut answers = run.stdout.split("\n\n");
    assert!(
        answers.next().unwrap().starts_with(&expected[0]),
        "{}",
        run.stdout
    );
    assert!(
        answers.next().unwrap().starts_with(&expected[1]),
        "{}",
        run.stdout
    );
}

#[test]
fn texts_of_runtimes_get_names_and_lines() {
    let bytes = std::fs::read(testdata("clr10/workload/PluginB.dll")).unwrap();
    let mvid = PeImage::parse(&bytes)
        .unwrap()
        .metadata()
        .unwrap()
        .mvid()
        .unwrap();
    let mvid = mvid.to_string().replace('-', "");
    let other = "0".repeat(32);
    let text = format!(
        "   at Workload.Inlining.Hot(Int32 x) in Workload.dll:token 0x6000001+0x1a\n\
         \x20 at PluginB.Beta.BetaSpin (System.Int32 x) [0x00001] in <{mvid}>:0 \n\
         \x20 at PluginB.Beta.BetaSpin (System.Int32 x) [0x00001] in <{other}>:0 \n\
         \x20  at N.T.M(Int32) + 0x23\n\
         #1 0x5 in f (/srv/x/small.exe+0x1010)\n\
         #1 0x5 in f (/srv/x/small.exe+0x1010) (BuildId: c0ffee)\n\
         \t 140001010 f+0x10 (/srv/x/small.exe)\n"
    );
    let expected = format!(
        "   at Workload.Inlining.Hot(Int32 x) in /src/workload/Inlining.cs:line 16\n\
         \x20 at PluginB.Beta.BetaSpin (System.Int32 x) [0x00001] in /src/plugin/PluginB.cs:8 \n\
         \x20 at PluginB.Beta.BetaSpin (System.Int32 x) [0x00001] in <{other}>:0 \n\
         \x20  at N.T.M(Int32) + 0x23\n\
         #1 0x5 in f (twice_inlined+0x0 (main.cpp:28))\n\
         #1 0x5 in f (/srv/x/small.exe+0x1010) (BuildId: c0ffee)\n\
         \t twice_inlined+0x0 (main.cpp:28) f+0x10 (/srv/x/small.exe)\n"
    );
    let objects = ["clr10/workload/Workload.dll", "clr10/workload/PluginB.dll"].map(arg);
    let native = arg("pdb-small/x86_64/small.exe");
    let args = [
        "symbolize",
        "--filter",
        "--obj",
        &objects[0],
        "--obj",
        &objects[1],
        "--obj",
        &native,
    ];
    assert_eq!(run_with_input(&args, text.as_bytes()).stdout, expected);
    // Named by the text alone: below the folders that the user names, and nowhere else.
    let [managed, native] = ["clr10/workload", "pdb-small/x86_64"].map(arg);
    let found = run_with_input(
        &[
            "symbolize",
            "--filter",
            "--symbols",
            &managed,
            "--symbols",
            &native,
        ],
        text.as_bytes(),
    );
    let by_name = expected.replace("in /src/plugin/PluginB.cs:8", &format!("in <{mvid}>:0"));
    assert_eq!(found.stdout, by_name, "{}", found.stderr);
    let elsewhere = format!("at {}+0x1010\n", arg("pdb-small/x86_64/small.exe"));
    let args = ["symbolize", "--filter", "--symbols", &managed];
    let untouched = run_with_input(&args, elsewhere.as_bytes());
    assert_eq!(untouched.stdout, elsewhere);
    let escaping = "at ../x86_64/small.exe+0x1010\n";
    let folder = arg("pdb-small/i686");
    let args = ["symbolize", "--filter", "--symbols", &folder, "-q"];
    let kept_below = run_with_input(&args, escaping.as_bytes()).stdout;
    // The namesake in the folder answers, not the file that the path leads to.
    assert!(
        kept_below.starts_with("at twice_inlined") || kept_below == escaping,
        "{kept_below}"
    );
    let trusted = ["symbolize", "--filter", "--trust-trace-paths"];
    let trusted = run_with_input(&trusted, elsewhere.as_bytes()).stdout;
    assert_eq!(trusted, "at twice_inlined+0x0 (main.cpp:28)\n");
}
