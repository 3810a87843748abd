//! Call sites of events: the innermost frame of a stack that is user code.

use chronosym_core::{ResolvedStack, Resolver};
use serde::ser::SerializeMap;

use crate::object::{Fields, Object};
use crate::user_code::UserCode;

/// A frame of user code, or the innermost frame of a stack without any.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Site {
    /// `module!name`.
    pub label: String,
    /// Source position, if it is known.
    pub line: Option<(String, u32)>,
}

impl Site {
    /// Returns the call site of an event with a stack.
    pub fn of(resolver: &Resolver, stack: ResolvedStack, user_code: UserCode) -> Self {
        let mut frames = resolver.stack(stack).map(|frame| resolver.frame(frame));
        let user = frames.find(|frame| user_code.has(frame));
        let frame = user.unwrap_or_else(|| resolver.frame(resolver.leaf(stack)));
        let line = frame.line.as_ref().ok();
        Site {
            label: frame.label().to_owned(),
            line: line.map(|line| (line.file.to_string(), line.line)),
        }
    }

    /// As text.
    pub fn show(site: &Option<Self>) -> String {
        match site {
            None => "?".to_owned(),
            Some(Site { label, line: None }) => label.clone(),
            Some(Site {
                label,
                line: Some((file, line)),
            }) => {
                let file = file.rsplit(['/', '\\']).next().unwrap_or(file);
                format!("{label} {file}:{line}")
            }
        }
    }
}

impl Fields for Site {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        let (module, name) = match self.label.split_once('!') {
            Some((module, name)) => (Some(module), name),
            None => (None, &*self.label),
        };
        object.some("module", module).field("name", name);
        if let Some((file, line)) = &self.line {
            object.field("file", file).field("line", line);
        }
    }
}
