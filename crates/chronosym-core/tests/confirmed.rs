//! A complete recording of a runtime confirms its code after losses of the system's recorder.

use chronosym_core::facts::{At, Method};
use chronosym_core::{Action, Certainty, Loss, LossScope, Options, Position, Session};

#[test]
fn code_is_confirmed_unless_events_of_code_may_be_lost() {
    let certainty = |scopes: &[LossScope]| {
        let mut session = Session::new(Options::default());
        let method = Method::new(Action::Load, 1, 0x1000, 64).named("T", "Run", "");
        session.apply(At::new(10).process(42), method);
        for &scope in scopes {
            session.lost(Loss::between(40, 50).scope(scope));
        }
        session.confirm_code(42, 90);
        let timeline = session.finish();
        let process = timeline.find_process(42, None).expect("a process");
        timeline.frames(process, 0x1010, 60, Position::Exact, None)[0].certainty
    };
    let (exact, inferred) = (Some(Certainty::Exact), Some(Certainty::Inferred));
    assert_eq!(certainty(&[]), exact);
    assert_eq!(certainty(&[LossScope::System]), exact);
    assert_eq!(certainty(&[LossScope::Anything]), inferred);
    let both = [LossScope::System, LossScope::Anything];
    assert_eq!(certainty(&both), inferred);
}
