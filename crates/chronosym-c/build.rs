//! Names the shared library, so that programs keep working with later versions of the same interface.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |key: &str| std::env::var(format!("CARGO_CFG_TARGET_{key}")).unwrap_or_default();
    if target("FAMILY") == "unix" && target("VENDOR") != "apple" {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libchronosym_c.so.0");
    }
}
