//! Exceptions and their handlers.

use chronosym::runtime::{Exceptions, Report};
use chronosym_support::payload::Payload;

use crate::trace::{Trace, all, clr};

pub fn thrown(name: &str, message: &str, flags: u16) -> Payload {
    let texts = Payload::new().wide(name).wide(message);
    texts.u64(0x1234).u32(0x8013_1500).u16(flags).u16(7)
}

pub fn block(method: &str) -> Payload {
    Payload::new().u64(0x10).u64(0x20).wide(method).u16(7)
}

#[test]
fn exceptions_find_their_handlers() {
    let mut trace = Trace::new();
    // A: a finally block runs, in which B is thrown and caught, before A's handler.
    trace.event_with(
        &[0x1111, 0x2222],
        (80, 1),
        (100, 1),
        &thrown("A", "a", 0x10).finish(),
    );
    trace.event((252, 0), (110, 1), block("finally"));
    trace.event((80, 1), (120, 1), thrown("B", "b", 0x10));
    trace.event((250, 0), (125, 1), block("in finally"));
    trace.event((251, 0), (126, 1), clr());
    trace.event((253, 0), (130, 1), clr());
    trace.event((250, 0), (150, 1), block("handler of A"));
    // A is thrown again and caught further out; another thread throws meanwhile.
    trace.event((80, 1), (160, 1), thrown("A", "a", 0x14));
    trace.event((80, 1), (165, 2), thrown("C", "", 0));
    trace.event((250, 0), (190, 1), block("outer"));
    // C has no handler in the trace: the next exception of its thread is not nested in it.
    trace.event((80, 1), (200, 2), thrown("D", "d", 0));
    trace.event((250, 0), (204, 2), block("handler of D"));
    trace.event((250, 0), (210, 2), block("of an exception before"));
    let exceptions = Exceptions::new(&trace.read(Report::Exceptions), &all());
    let seen: Vec<_> = exceptions
        .thrown
        .iter()
        .map(|it| {
            let (name, caught) = (it.type_name.as_deref().unwrap(), it.caught_in.as_deref());
            (
                name,
                it.message.as_deref(),
                caught,
                it.dispatch_ns,
                it.rethrown,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("A", Some("a"), Some("handler of A"), Some(45), false),
            ("B", Some("b"), Some("in finally"), Some(5), false),
            ("A", Some("a"), Some("outer"), Some(30), true),
            ("C", None, None, None, false),
            ("D", Some("d"), Some("handler of D"), Some(4), false),
        ]
    );
    assert!(exceptions.thrown[0].stack.is_some());
    assert!(exceptions.thrown[1].stack.is_none());
    assert_eq!(exceptions.unused.without_start, 1);
    let mut filter = all();
    (filter.from_ns, filter.to_ns) = (Some(120), Some(200));
    let timeline = {
        let mut trace = Trace::new();
        trace.event((80, 1), (100, 1), thrown("A", "", 0));
        trace.event((250, 0), (190, 1), block("late"));
        trace.event((80, 1), (195, 1), thrown("B", "", 0));
        trace.read(Report::Exceptions)
    };
    let within = Exceptions::new(&timeline, &filter);
    assert_eq!(within.thrown.len(), 1, "the time of the throw decides");
}
