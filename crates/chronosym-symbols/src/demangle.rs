//! Demangles names of Rust (both schemes) and C++ (Itanium and MSVC).

mod itanium;
mod output;

use std::fmt::Write as _;

use msvc_demangler::DemangleFlags;

pub use output::{Dialect, Scheme, Unreadable};
use output::{Limited, MAX_OUTPUT};

/// The length in bytes up to which names are demangled.
const MAX_LEN: usize = 16 << 10;

/// The same for MSVC, which hashes longer names.
const MAX_MSVC_LEN: usize = 4096;

/// Names that can nest at most this deep do not exhaust a thread's stack.
const SHALLOW: usize = 256;

/// Stack for a name that may nest deeply.
const DEEP_STACK: usize = 64 << 20;

/// Demangles a name.
///
/// # Errors
/// The name is not mangled, or a limit was reached.
///
/// # Examples
///
/// ```
/// use chronosym_symbols::demangle::demangle;
///
/// assert_eq!(demangle("_ZN4core3fmt9Formatter3padE").unwrap(), "core::fmt::Formatter::pad");
/// assert_eq!(demangle("?area@Square@@QEBAHXZ").unwrap(), "public: int __cdecl Square::area(void) const");
/// assert!(demangle("main").is_err()); // not mangled
/// ```
pub fn demangle(name: &str) -> Result<String, Unreadable> {
    demangle_as(name, Dialect::Plain)
}

/// Demangles a name in the dialect of a tool.
///
/// # Errors
/// As [`demangle`].
pub fn demangle_as(name: &str, dialect: Dialect) -> Result<String, Unreadable> {
    let scheme = Scheme::of(name).ok_or(Unreadable::NotMangled)?;
    if name.len() > MAX_LEN {
        return Err(Unreadable::LimitReached);
    }
    match scheme {
        Scheme::Msvc if name.len() > MAX_MSVC_LEN => Err(Unreadable::LimitReached),
        Scheme::Msvc if dialect == Dialect::Llvm => with_stack(name, |name| {
            msvc(
                name,
                DemangleFlags::llvm()
                    | DemangleFlags::NO_ACCESS_SPECIFIERS
                    | DemangleFlags::NO_MS_KEYWORDS
                    | DemangleFlags::NO_MEMBER_TYPE
                    | DemangleFlags::NO_FUNCTION_RETURNS,
            )
        }),
        Scheme::Msvc => with_stack(name, |name| msvc(name, DemangleFlags::llvm())),
        Scheme::RustV0 => match name.split_once('.') {
            // The scheme has no dots; the demangler drops the text after one.
            Some((own, mark)) if dialect == Dialect::Llvm => {
                Ok(format!("{} (.{mark})", rust(own)?))
            }
            _ => rust(name),
        },
        Scheme::Swift | Scheme::D => Err(Unreadable::Unsupported(scheme)),
        Scheme::Itanium => {
            if dialect != Dialect::Llvm {
                match rust(name) {
                    Err(Unreadable::NotMangled) => {}
                    read => return read,
                }
            }
            cpp(name, dialect)
        }
    }
}

fn rust(name: &str) -> Result<String, Unreadable> {
    let name = rustc_demangle::try_demangle(name).map_err(|_| Unreadable::NotMangled)?;
    let mut out = Limited::default();
    let written = write!(out, "{name:#}");
    out.text(written)
}

fn msvc(name: &str, flags: DemangleFlags) -> Result<String, Unreadable> {
    match msvc_demangler::demangle(name, flags) {
        Ok(readable) if readable.len() > MAX_OUTPUT => Err(Unreadable::LimitReached),
        Ok(readable) => Ok(readable),
        Err(error) if error.is_too_large() => Err(Unreadable::LimitReached),
        Err(_) => Err(Unreadable::NotMangled),
    }
}

/// The depth of nesting that any stack allows; nearly every name stays below it.
const DEPTH: usize = 96;

/// The depth of nesting up to which names are demangled.
const MAX_DEPTH: usize = 2048;

fn cpp(name: &str, dialect: Dialect) -> Result<String, Unreadable> {
    match itanium::demangle(name, dialect, DEPTH) {
        Err(Unreadable::LimitReached) if name.len() > SHALLOW => {
            with_stack(name, |name| itanium::demangle(name, dialect, MAX_DEPTH))
        }
        read => read,
    }
}

/// Runs `work` with a stack for deep recursion.
fn with_stack(
    name: &str,
    work: impl Fn(&str) -> Result<String, Unreadable> + Sync,
) -> Result<String, Unreadable> {
    // Each level of an MSVC name consumes one of these: codes of types and templates, or a number,
    // which has digits or the letters A to P.
    let nests = |byte: &u8| matches!(byte, b'0'..=b'9' | b'A'..=b'S' | b'Y' | b'?' | b'$');
    if name.len() <= SHALLOW
        || name.starts_with('?') && name.bytes().filter(nests).count() <= SHALLOW
    {
        return work(name);
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(DEEP_STACK);
        let thread = thread.spawn_scoped(scope, || work(name));
        let read = thread.map(|thread| thread.join());
        read.ok()
            .and_then(Result::ok)
            .unwrap_or(Err(Unreadable::LimitReached))
    })
}

#[cfg(test)]
mod tests {
    use super::output::MAX_RAW;
    use super::*;

    #[test]
    fn every_scheme_is_read() {
        let plain = |n: &str| demangle(n).unwrap();
        assert_eq!(plain("_ZN3foo3barEi"), "foo::bar(int)");
        assert_eq!(
            plain("_ZN4core3fmt5write17h0123456789abcdefE"),
            "core::fmt::write"
        );
        assert_eq!(plain("_RNvC6_123foo3bar"), "123foo::bar");
        assert_eq!(plain("?f@@YAHH@Z"), "int __cdecl f(int)");
        assert_eq!(plain("_Z1fILm3ELin2EEvv"), "void f<3ul, -2>()");
        assert_eq!(plain("_Z1fR7ManagerI8FunctionJEE"), "f(Manager<Function>&)");
        assert_eq!(plain("_Z1f1AI1BIiEJEE"), "f(A<B<int> >)");
        for plain in ["plain_c", "_Znot mangled", ""] {
            assert_eq!(demangle(plain), Err(Unreadable::NotMangled));
        }
    }

    #[test]
    fn constructors_from_templates_have_all_parameters() {
        for (mangled, readable) in [
            ("_ZN1AC2IiEET_", "A::A<int>(int)"),
            ("_ZN1AC1IiPcEET_T0_", "A::A<int, char*>(int, char*)"),
            ("_ZN1A1BIiEC2IS_EERKT_", "A::B<int>::B<A>(A const&)"),
            ("_ZN1AcvT_IiEEv", "A::operator int<int>()"),
            // Not constructors from templates.
            ("_ZN1AC2Ei", "A::A(int)"),
            ("_ZN3AC21fEi", "AC2::f(int)"),
            ("_ZN3C2I1fIiEEvT_", "void C2I::f<int>(int)"),
            ("_ZN3C2I1fEiPc", "C2I::f(int, char*)"),
            ("_ZN3C2I1fEv", "C2I::f()"),
        ] {
            let actual = demangle(mangled).unwrap_or_else(|_| mangled.to_owned());
            assert_eq!(actual, readable, "{mangled}");
        }
    }

    /// A lambda has template parameters of its own, also in the arguments of another template.
    #[test]
    fn parameters_of_generic_lambdas_are_automatic() {
        let within = "_Z1gIvZ1fvEUlOT_E_EvT0_";
        assert_eq!(
            demangle_as(within, Dialect::Gnu).unwrap(),
            "void g<void, f()::{lambda(auto:1&&)#1}>(f()::{lambda(auto:1&&)#1})"
        );
        assert_eq!(
            demangle_as(within, Dialect::Llvm).unwrap(),
            "void g<void, f()::'lambda'(auto&&)>(f()::'lambda'(auto&&))"
        );
        assert_eq!(
            demangle("_Z1gIIicEEvDpT_").unwrap(),
            "void g<int, char>(int, char)"
        );
    }

    #[test]
    fn dialects_differ_where_the_tools_do() {
        let clone = "_ZN3foo3barEi.part.0";
        assert_eq!(
            demangle_as(clone, Dialect::Gnu).unwrap(),
            "foo::bar(int) [clone .part.0]"
        );
        assert_eq!(
            demangle_as(clone, Dialect::Llvm).unwrap(),
            "foo::bar(int) (.part.0)"
        );
        let thin = "_ZN3foo3barEi.llvm.1234";
        assert_eq!(
            demangle_as(thin, Dialect::Llvm).unwrap(),
            "foo::bar(int) (.llvm.1234)"
        );
        let thin = "_RNvC6_123foo3bar.llvm.1234";
        assert_eq!(
            demangle_as(thin, Dialect::Llvm).unwrap(),
            "123foo::bar (.llvm.1234)"
        );
        assert_eq!(demangle_as(thin, Dialect::Plain).unwrap(), "123foo::bar");
        let lambda = "_ZZ4mainENKUliiE0_clEii";
        assert_eq!(
            demangle_as(lambda, Dialect::Gnu).unwrap(),
            "main::{lambda(int, int)#2}::operator()(int, int) const"
        );
        assert_eq!(
            demangle_as(lambda, Dialect::Llvm).unwrap(),
            "main::'lambda0'(int, int)::operator()(int, int) const"
        );
        let old_rust = "_ZN4core3fmt5write17h0123456789abcdefE";
        assert_eq!(
            demangle_as(old_rust, Dialect::Llvm).unwrap(),
            "core::fmt::write::h0123456789abcdef"
        );
    }

    #[test]
    fn deep_and_endless_names_reach_a_limit() {
        let deep = format!("?f@@YAX{}H@Z", "PEA".repeat(1300));
        let _ = demangle(&deep);
        let deep = format!("_Z1f{}i", "P".repeat(15_000));
        let _ = demangle(&deep);
        let deep = format!("_R{}C1a", "INvC1a1b".repeat(2000));
        let _ = demangle(&deep);
        // Each step doubles the output: a megabyte from a few dozen bytes.
        let digit = |n| char::from_digit(n, 36).unwrap().to_ascii_uppercase();
        let pairs = (0..20).map(|n| format!("S_IS{0}_S{0}_E", digit(n)));
        let bomb = format!("_Z1fSt4pairIiiE{}", pairs.collect::<String>());
        assert_eq!(demangle(&bomb), Err(Unreadable::LimitReached));
    }

    #[test]
    fn names_that_expand_without_end_stay_mangled() {
        // Each function pointer takes the one before it many times.
        let digits = |n: usize, level: usize| level.saturating_sub(1).to_string().repeat(n);
        let pointers = |levels: usize| -> String {
            let level = |i| {
                format!(
                    "P6AX{}PEAH@Z",
                    if i == 0 {
                        "D".to_owned()
                    } else {
                        digits(16, i)
                    }
                )
            };
            (0..levels).map(level).collect()
        };
        let bomb = format!("?f@@YAX{}@Z", pointers(9));
        let nested = (0..24).fold("H".to_owned(), |inner, _| {
            format!("V?$A@{inner}@@V1@V1@V1@V1@")
        });
        let nested = format!("?f@@YAX{nested}@Z");
        for bomb in [bomb, nested] {
            assert!(bomb.len() < 600, "{}", bomb.len());
            assert_eq!(demangle(&bomb), Err(Unreadable::LimitReached));
            assert_eq!(Unreadable::LimitReached.shown(&bomb), bomb);
        }
        let mild = format!("?f@@YAX{}@Z", pointers(2));
        assert!(demangle(&mild).is_ok_and(|name| name.starts_with("void __cdecl f(")));
        let long = format!("_Z{}", "9".repeat(MAX_LEN));
        let why = demangle(&long).unwrap_err();
        assert_eq!(
            (why, why.shown(&long).len()),
            (Unreadable::LimitReached, MAX_RAW)
        );
        let deep = format!("_Z1f{}i", "P".repeat(2 * MAX_DEPTH));
        assert_eq!(demangle(&deep), Err(Unreadable::LimitReached));
        assert_eq!(Unreadable::NotMangled.shown(&deep), deep);
    }

    /// Names of every production of the grammar, as GNU's and LLVM's tools (version 22) write them.
    /// Where GNU's tools do not know a production, the text is ours.
    #[test]
    fn names_of_the_whole_grammar_are_demangled() {
        for line in include_str!("demangle/itanium/names.tsv").lines() {
            let [name, llvm, gnu] = line.split('\t').collect::<Vec<_>>()[..] else {
                panic!("{line}");
            };
            assert_eq!(
                demangle_as(name, Dialect::Llvm).as_deref(),
                Ok(llvm),
                "{name}"
            );
            assert_eq!(
                demangle_as(name, Dialect::Gnu).as_deref(),
                Ok(gnu),
                "{name}"
            );
        }
    }

    #[test]
    fn names_of_swift_and_d_are_recognised() {
        for (name, scheme) in [
            ("$s4main3fooyyF", Scheme::Swift),
            ("_$s4main3fooyyF", Scheme::Swift),
            ("_T04main3fooyyF", Scheme::Swift),
            ("_D3std5stdio7writelnFZv", Scheme::D),
        ] {
            assert_eq!(demangle(name), Err(Unreadable::Unsupported(scheme)));
            assert_eq!(Unreadable::Unsupported(scheme).shown(name), name);
        }
        for plain in ["_Deadlock", "$x", "_Tree", "main"] {
            assert_eq!(Scheme::of(plain), None, "{plain}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_name_ends_the_program(
            body in "[NZSTIJELCDPRKFAMXUOHQWYdtvcliabefknpqrs0-9_@.é]{0,60}",
            scheme in proptest::sample::select(vec!["_Z", "_ZN1a", "_Z1fI", "_ZZ1fvE", "?f@@", "_R", "_Z1fDp", "_Z1fITt", "_Z1fIiEDTrq", "___Z1f"]),
        ) {
            for dialect in [Dialect::Plain, Dialect::Llvm, Dialect::Gnu] {
                let readable = demangle_as(&format!("{scheme}{body}"), dialect);
                proptest::prop_assert!(readable.ok().is_none_or(|name| name.len() <= 2 * MAX_OUTPUT));
            }
        }
    }
}
