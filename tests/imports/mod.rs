//! Determines which files of a crate import names from which others.
//!
//! Each path in `use` trees, expressions, types, patterns, attributes and macro calls is resolved
//! to the file that defines the item: through re-exports, renames, globs, `self`, `super` and
//! `crate`. A type that a macro defines belongs to the file that passes its name to the macro. A
//! glob imports from the module it names, and each name that is used through it from the file that
//! defines the name. Test modules and method calls, which name no file, are ignored.

mod graph;
mod reader;

use std::collections::{HashMap, HashSet};

/// The files of a crate, and their imports from each other.
pub struct Imports {
    /// Paths below `src`.
    pub files: Vec<String>,
    /// Ordered by importing file, imported file and name.
    pub imports: Vec<Import>,
}

/// A name that a file imports from another one.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct Import {
    pub from: usize,
    pub to: usize,
    pub name: String,
    /// Line of the first use.
    pub line: usize,
}

/// A module, and the meaning of its names.
struct Module {
    file: usize,
    parent: Option<usize>,
    names: HashMap<String, Vec<Meaning>>,
    /// Names in calls of macros that make items: they may be those of the items.
    made: HashSet<String>,
    globs: Vec<Vec<String>>,
}

/// The meaning of a name in a module.
enum Meaning {
    /// An item that this file defines.
    Item(usize),
    Module(usize),
    Use(Vec<String>),
}

/// A path that a module mentions.
struct Mention {
    module: usize,
    line: usize,
    path: Vec<String>,
}

/// The target of a path.
#[derive(Clone, Copy)]
enum Target {
    Module(usize),
    /// An item that this file defines.
    Item(usize),
}

/// The modules of a crate and every path they mention.
#[derive(Default)]
struct Crate {
    files: Vec<String>,
    modules: Vec<Module>,
    mentions: Vec<Mention>,
}

/// Paths that are being resolved, to end at circular imports.
type Open<'c> = Vec<(usize, &'c [String])>;

impl Imports {
    /// Reads a crate; `read` returns the text of a file below `src`, if there is one.
    pub fn new(read: impl Fn(&str) -> Option<String>) -> Self {
        let source = reader::read_crate(&read);
        let mut imports = Vec::new();
        for Mention { module, line, path } in &source.mentions {
            if source.is_imported(*module, path) {
                continue;
            }
            let from = source.modules[*module].file;
            for target in source.resolve(*module, path, &mut Vec::new()) {
                if let Target::Item(to) = target
                    && to != from
                {
                    let (name, line) = (path.join("::"), *line);
                    imports.push(Import {
                        from,
                        to,
                        name,
                        line,
                    });
                }
            }
        }
        imports.sort();
        imports.dedup_by(|b, a| (b.from, b.to, &b.name) == (a.from, a.to, &a.name));
        let files = source.files;
        Self { files, imports }
    }
}

impl Crate {
    /// Returns whether a path starts with an item that a `use` of the module imports: the `use` is
    /// counted instead of each path.
    fn is_imported(&self, module: usize, path: &[String]) -> bool {
        let names = &self.modules[module].names;
        names.contains_key(&path[0]) && {
            let targets = self.resolve(module, &path[..1], &mut Vec::new());
            targets.iter().all(|target| target.module().is_none())
        }
    }

    fn resolve<'c>(&'c self, from: usize, path: &'c [String], open: &mut Open<'c>) -> Vec<Target> {
        let Some((first, rest)) = path.split_first() else {
            return Vec::new();
        };
        if open.contains(&(from, path)) {
            return Vec::new();
        }
        open.push((from, path));
        let mut targets = match first.as_str() {
            "crate" => vec![Target::Module(self.root(from))],
            "self" => vec![Target::Module(from)],
            "super" => self.parent(from),
            name => self.find(from, name, open).unwrap_or_default(),
        };
        for name in rest {
            let modules: Vec<usize> = targets.iter().filter_map(Target::module).collect();
            if modules.is_empty() {
                break; // What follows an item is its own: a variant, an associated item.
            }
            let members = modules.into_iter().flat_map(|module| match name.as_str() {
                "super" => self.parent(module),
                name => self
                    .find(module, name, open)
                    .unwrap_or_else(|| vec![Target::Item(self.modules[module].file)]),
            });
            targets = members.collect();
        }
        open.pop();
        targets
    }

    /// Finds a name in a module; a declaration anywhere takes precedence over names in macro calls.
    fn find<'c>(&'c self, module: usize, name: &str, open: &mut Open<'c>) -> Option<Vec<Target>> {
        self.look_up(module, name, false, open)
            .or_else(|| self.look_up(module, name, true, open))
    }

    /// Looks a name up in a module and in the modules it imports by globs.
    fn look_up<'c>(
        &'c self,
        module: usize,
        name: &str,
        made: bool,
        open: &mut Open<'c>,
    ) -> Option<Vec<Target>> {
        let Module {
            file, names, globs, ..
        } = &self.modules[module];
        if made && self.modules[module].made.contains(name) {
            return Some(vec![Target::Item(*file)]);
        }
        if let Some(meanings) = names.get(name) {
            let targets = meanings.iter().flat_map(|meaning| match meaning {
                Meaning::Item(file) => vec![Target::Item(*file)],
                Meaning::Module(module) => vec![Target::Module(*module)],
                Meaning::Use(path) => self.resolve(module, path, open),
            });
            return Some(targets.collect());
        }
        globs.iter().find_map(|glob| {
            let targets = self.resolve(module, glob, open);
            let mut modules = targets.iter().filter_map(Target::module);
            if open.contains(&(module, glob)) {
                return None;
            }
            open.push((module, glob));
            let targets = modules.find_map(|module| self.look_up(module, name, made, open));
            open.pop();
            targets
        })
    }

    fn root(&self, module: usize) -> usize {
        self.modules[module]
            .parent
            .map_or(module, |parent| self.root(parent))
    }

    fn parent(&self, module: usize) -> Vec<Target> {
        let parent = self.modules[module].parent;
        parent.into_iter().map(Target::Module).collect()
    }
}

impl Target {
    fn module(&self) -> Option<usize> {
        match self {
            Self::Module(module) => Some(*module),
            Self::Item(_) => None,
        }
    }
}
