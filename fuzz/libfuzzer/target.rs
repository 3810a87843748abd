//! A target under libFuzzer: the environment variable CHRONOSYM_FUZZ_TARGET names it.
#![no_main]

use std::sync::OnceLock;

use chronosym_fuzz::Target;
use libfuzzer_sys::fuzz_target;

static TARGET: OnceLock<&Target> = OnceLock::new();

fuzz_target!(|data: &[u8]| {
    let target = TARGET.get_or_init(|| {
        let name = std::env::var("CHRONOSYM_FUZZ_TARGET").expect("CHRONOSYM_FUZZ_TARGET");
        chronosym_fuzz::target_of(&name).expect("a target of that name")
    });
    (target.run)(data);
});
