//! Rule 9: the byte before a return address is looked up, unless a handler returns to the address.

use chronosym_core::facts::{At, Image};
use chronosym_core::{
    Action, ImageRef, NameReason, NativeFrame, Options, Position, Session, SymbolSource,
};

/// `handler` from 0x100, a gap, `__restore_rt` from 0x200 directly followed by `next`.
struct Libc;

impl SymbolSource for Libc {
    fn native(&self, _: &ImageRef<'_>, rva: u64) -> Result<Vec<NativeFrame>, NameReason> {
        let (name, start) = match rva {
            0x100..0x180 => ("handler", 0x100),
            0x200..0x209 => ("__restore_rt", 0x200),
            0x209..0x300 => ("next", 0x209),
            0x400..0x480 => ("after_a_gap", 0x400),
            _ => return Err(NameReason::NoName),
        };
        let mut frame = NativeFrame::new(name);
        frame.offset = Some(rva - start);
        Ok(vec![frame])
    }
}

#[test]
fn rule_9_a_handler_returns_to_the_start_of_the_trampoline() {
    let mut session = Session::new(Options::default());
    let at = At::new(0).process(42);
    session.apply(
        at,
        Image::new(Action::Load, 0x1_0000, 0x1000, "/lib/libc.so.6"),
    );
    let timeline = session.finish();
    let process = timeline.find_process(42, None).expect("a process");
    let frame = |rva: u64, position| {
        let address = 0x1_0000 + rva;
        let frames = timeline.frames(process, address, 1, position, Some(&Libc));
        let frame = &frames[0];
        (frame.name().map(str::to_owned), frame.offset, frame.address)
    };
    let named = |name: &str, offset, rva: u64| (Ok(name.to_owned()), Some(offset), 0x1_0000 + rva);
    assert_eq!(
        frame(0x200, Position::Return),
        named("__restore_rt", 0, 0x200)
    );
    // A call that ends a function returns to the start of the next one.
    assert_eq!(
        frame(0x209, Position::Return),
        named("__restore_rt", 9, 0x209)
    );
    assert_eq!(
        frame(0x180, Position::Return),
        named("handler", 0x80, 0x180)
    );
    // A function without a name may have called what does not return.
    assert_eq!(frame(0x400, Position::Return).0, Err(NameReason::NoName));
    // Without a name before it, an address inside a function has none.
    assert_eq!(frame(0x1ff, Position::Exact).0, Err(NameReason::NoName));
    assert_eq!(frame(0x1ff, Position::Return).0, Err(NameReason::NoName));
}
