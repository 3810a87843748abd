//! Whatever a trace says, no step leaves the folders of the configuration.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chronosym_symbols::identity::{BuildId, FileIdentity, PeId, Wanted};
use chronosym_symbols::path::SymbolPath;
use chronosym_symbols::store::{
    Acquisition, Answer, Fetched, IdentifyError, NoFile, Progress, Request, Step, StoreConfig,
};
use proptest::prelude::*;

use super::pdb_id;

const ROOTS: [&str; 4] = ["/given", "/store", "/down", "/cache"];
const SERVER: &str = "http://host/s/";

fn assert_inside(path: &Path) {
    let plain = path
        .components()
        .all(|c| matches!(c, Component::RootDir | Component::Normal(_)));
    let inside = ROOTS.iter().any(|root| path.starts_with(root));
    let text = path.to_str().unwrap();
    assert!(
        plain && inside && !text.contains(['\\', ':', '\0']),
        "{text:?}"
    );
    let last = path.file_name().unwrap().to_str().unwrap();
    assert!(last.len() < 256, "{last}");
}

fn name() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("..".to_owned()),
        Just(".".to_owned()),
        Just("C:".to_owned()),
        Just("con".to_owned()),
        Just("index2.txt".to_owned()),
        Just("file.ptr".to_owned()),
        Just(".missing".to_owned()),
        Just("x".repeat(300)),
        "[a-z.]{1,8}",
        any::<String>(),
    ];
    let separator = prop_oneof![
        Just("/"),
        Just("\\"),
        Just("//"),
        Just(r"\\"),
        Just("\0"),
        Just("")
    ];
    prop::collection::vec((separator, part), 0..5)
        .prop_map(|parts| parts.into_iter().map(|(s, p)| format!("{s}{p}")).collect())
}

fn wanted() -> impl Strategy<Value = Wanted> {
    let pe = Some(PeId {
        timestamp: 1,
        size_of_image: 2,
    });
    prop_oneof![
        Just(Wanted::pdb(pdb_id(1))),
        Just(Wanted::Image { pe, pdb: None }),
        Just(Wanted::ElfDebug(BuildId::new(&[1, 2, 3]).unwrap())),
        Just(Wanted::ElfImage(BuildId::new(&[1, 2, 3]).unwrap())),
        Just(Wanted::R2rMap {
            signature: Some([1; 16]),
            version: 1
        }),
    ]
}

/// A driver that finds whatever it is asked for, or not, as `choices` say.
fn answer(step: &Step, choice: u8, trace_paths: &[String]) -> Answer {
    match step {
        Step::Find { folder, candidates }
            if candidates == &[Vec::<String>::new()]
                && !ROOTS.iter().any(|r| folder == Path::new(r)) =>
        {
            // Whether a file stands at a path of the trace: asked, but never opened without trust.
            assert!(
                trace_paths.iter().any(|path| Path::new(path) == folder),
                "{folder:?}"
            );
            assert!(!folder.to_str().unwrap().starts_with(r"\\"));
            assert!(folder.is_absolute());
            Answer::Files(if choice & 1 == 0 {
                vec![folder.clone()]
            } else {
                vec![]
            })
        }
        Step::Find { folder, candidates } => {
            assert_inside(folder);
            let mut files: Vec<PathBuf> = Vec::new();
            for (i, candidate) in candidates.iter().enumerate() {
                let mut path = folder.clone();
                for component in candidate {
                    assert!(!component.is_empty() && !component.contains(['/', '\\']));
                    path.push(component);
                }
                assert_inside(&path);
                if choice & 1 << (i % 8) != 0 {
                    files.push(path);
                }
            }
            Answer::Files(files)
        }
        Step::Identify { path, .. } => {
            assert_inside(path);
            Answer::Identity(match choice % 4 {
                0 => Ok(FileIdentity::WindowsPdb(pdb_id(1))),
                1 => Ok(FileIdentity::WindowsPdb(pdb_id(2))),
                2 => Err(IdentifyError::Damaged("so".into())),
                _ => Err(IdentifyError::Unreadable("so".into())),
            })
        }
        Step::ReadText { path } => {
            assert_inside(path);
            Answer::Text(
                [None, Some("PATH:relative".into()), Some(r"\\s\x".into())]
                    [usize::from(choice % 3)]
                .clone(),
            )
        }
        Step::Download { url, to, .. } => {
            assert_inside(to);
            let below = url.strip_prefix(SERVER).unwrap_or_else(|| panic!("{url}"));
            let escaped = below
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-._~+%/".contains(&b));
            assert!(
                escaped && !below.split('/').any(|part| ["", ".", ".."].contains(&part)),
                "{url}"
            );
            let status = |code| Fetched::Status {
                code,
                location: None,
                retry_after: None,
            };
            Answer::Fetched(match choice % 5 {
                0 | 1 => Fetched::Saved,
                2 => status(404),
                3 => status(500),
                _ => Fetched::Broken("so".into()),
            })
        }
        Step::Unpack { from, to, .. } | Step::Copy { from, to } | Step::Install { from, to } => {
            assert_inside(from);
            assert_inside(to);
            [
                Answer::Done,
                Answer::Known(false),
                Answer::Failed("so".into()),
            ][usize::from(choice % 3)]
            .clone()
        }
        Step::Prepare { folder, .. } => {
            assert_inside(folder);
            Answer::Done
        }
        Step::Remove { path } | Step::Touch { path } => {
            assert_inside(path);
            Answer::Done
        }
        Step::RecallMissing { cache, .. }
        | Step::NoteMissing { cache, .. }
        | Step::Prune { cache, .. } => {
            assert_inside(cache);
            Answer::Known(choice.is_multiple_of(8))
        }
        _ => Answer::Done,
    }
}

#[cfg(unix)]
proptest! {
    #[test]
    fn no_step_leaves_the_folders(
        wanted in wanted(),
        names in prop::collection::vec(name(), 0..3),
        trace_paths in prop::collection::vec(name(), 0..3),
        choices in prop::collection::vec(any::<u8>(), 1..40),
    ) {
        let mut config = StoreConfig::new();
        config.folders.push("/given".into());
        config.path = SymbolPath::parse(&format!("/store;srv*/down*{SERVER}"));
        config.cache = Some("/cache".into());
        let mut request = Request::new(wanted, "first");
        request.names = names;
        request.trace_paths = trace_paths;
        let paths = request.trace_paths.clone();
        let mut acquisition = Acquisition::new(Arc::new(config), Arc::default(), request);
        let mut choices = choices.iter().cycle();
        let mut steps = 0;
        while let Progress::Need(step) = acquisition.step() {
            acquisition.answer(answer(&step, *choices.next().unwrap(), &paths));
            steps += 1;
            prop_assert!(steps < 2000, "no end");
        }
    }
}

/// Repetitions are the driver's to time: the pause doubles, and a server may ask for a longer one, within reason.
#[test]
fn pauses_are_steps() {
    let mut config = StoreConfig::new();
    config.path = SymbolPath::parse(&format!("srv*/down*{SERVER}"));
    config.fetch.retries = 4;
    config.fetch.back_off = Duration::from_millis(100);
    let request = Request::new(Wanted::pdb(pdb_id(1)), "foo.pdb");
    let mut acquisition = Acquisition::new(Arc::new(config), Arc::default(), request);
    let asked = [None, Some(3), Some(0), Some(3600), None];
    let mut replies = asked.iter().map(|seconds| Fetched::Status {
        code: 503,
        location: None,
        retry_after: seconds.map(Duration::from_secs),
    });
    let mut pauses = Vec::new();
    while let Progress::Need(step) = acquisition.step() {
        assert_eq!(
            acquisition.step(),
            Progress::Need(step.clone()),
            "until it is answered"
        );
        acquisition.answer(match step {
            Step::Find { .. } => Answer::Files(Vec::new()),
            Step::Download { .. } => Answer::Fetched(replies.next().unwrap()),
            Step::Wait(pause) => {
                pauses.push(pause.as_millis());
                Answer::Done
            }
            _ => Answer::Done,
        });
    }
    assert_eq!(pauses, [100, 3000, 400, 10_000]);
    assert_eq!(replies.next(), None);
}

/// A driver that answers nonsense gets an end, and no file.
#[test]
fn wrong_answers_are_failures() {
    let mut config = StoreConfig::new();
    config.folders.push("/given".into());
    config.cache = Some("/cache".into());
    config.path = SymbolPath::parse(&format!("/store;srv*/down*{SERVER}"));
    let config = Arc::new(config);
    let id = FileIdentity::WindowsPdb(pdb_id(1));
    for nonsense in [
        Answer::Done,
        Answer::TooLarge,
        Answer::Identity(Ok(id)),
        Answer::Text(None),
    ] {
        let request = Request::new(Wanted::pdb(pdb_id(1)), "foo.pdb");
        let mut acquisition = Acquisition::new(Arc::clone(&config), Arc::default(), request);
        acquisition.answer(Answer::Done);
        let outcome = loop {
            match acquisition.step() {
                Progress::Need(_) => acquisition.answer(nonsense.clone()),
                Progress::Done(outcome) => break outcome,
            }
        };
        assert_eq!(outcome.file, Err(NoFile::NoSymbolFile), "{nonsense:?}");
        assert_eq!(acquisition.step(), Progress::Done(outcome));
    }
}
