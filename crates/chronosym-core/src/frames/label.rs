//! The label of a whole body.

use super::shown_name;
use crate::functions::push_label;
use crate::ids::{BodyIndex, ProcessIndex};
use crate::symbol_source::SymbolSource;
use crate::timeline::Timeline;

impl Timeline {
    /// Appends the label of the frame at any address of a body ([`Frame::label`](crate::Frame::label)), and returns true, if
    /// all addresses have the same one: the body has a name, no inlinees and known bounds, and is no
    /// stub.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_core::facts::{At, Method};
    /// use chronosym_core::{Action, Options, Position, Session};
    ///
    /// let mut session = Session::new(Options::default());
    /// let at = At::new(0).process(42);
    /// session.apply(at, Method::new(Action::Load, 1, 0x1000, 64).named("Ns.Type", "Run", ""));
    /// let timeline = session.finish();
    /// let process = timeline.find_process(42, None).unwrap();
    /// let body = timeline.body(process, 0x1010, 100, Position::Exact).unwrap();
    ///
    /// let mut label = String::new();
    /// assert!(timeline.push_body_label(process, body, None, &mut label));
    /// assert_eq!(label, "Ns.Type.Run");
    /// ```
    pub fn push_body_label(
        &self,
        process: ProcessIndex,
        body: BodyIndex,
        symbols: Option<&dyn SymbolSource>,
        label: &mut String,
    ) -> bool {
        let space = self.space(process);
        let Some(code) = space.map(|space| &space.state.code) else {
            return false;
        };
        let Some(body) = code.bodies.get(body.index()) else {
            return false;
        };
        if body.approximate || body.inline_tree().is_some() || body.stub().is_some() {
            return false;
        }
        let mut name = String::new();
        if !self.names.push_full(body.name, &mut name) || name.is_empty() {
            return false;
        }
        let module = body.module.map(|module| {
            let module = &code.modules[module.index()];
            self.names.strings.get(module.simple_name)
        });
        let module = module.filter(|name| !name.is_empty());
        let shown = shown_name(symbols, &name);
        push_label(module, shown.as_deref().unwrap_or(&name), label);
        true
    }
}
