//! Reads the modules of a crate, the names they define, and the paths they mention.

use std::collections::{HashMap, HashSet};
use std::mem;

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, Macro, Meta, Path, UseTree, Visibility};

use super::{Crate, Meaning, Mention, Module};

pub(super) fn read_crate(read: &dyn Fn(&str) -> Option<String>) -> Crate {
    let mut reader = Reader {
        source: Crate::default(),
        read,
        module: 0,
        folder: String::new(),
    };
    for root in ["lib.rs", "main.rs"] {
        if let Some(text) = read(root) {
            reader.read_file(root, &text, None, String::new());
        }
    }
    reader.source
}

struct Reader<'r> {
    source: Crate,
    read: &'r dyn Fn(&str) -> Option<String>,
    /// The module that is being read.
    module: usize,
    /// The folder of its child modules.
    folder: String,
}

impl Reader<'_> {
    fn read_file(
        &mut self,
        path: &str,
        text: &str,
        parent: Option<usize>,
        folder: String,
    ) -> usize {
        let syntax = syn::parse_file(text).unwrap_or_else(|error| panic!("{path}: {error}"));
        self.source.files.push(path.to_owned());
        let file = self.source.files.len() - 1;
        self.read_module(file, parent, folder, &syntax.items)
    }

    fn read_module(
        &mut self,
        file: usize,
        parent: Option<usize>,
        folder: String,
        items: &[Item],
    ) -> usize {
        let module = self.source.modules.len();
        self.source.modules.push(Module {
            file,
            parent,
            names: HashMap::new(),
            made: HashSet::new(),
            globs: Vec::new(),
        });
        let outer = (
            mem::replace(&mut self.module, module),
            mem::replace(&mut self.folder, folder),
        );
        items.iter().for_each(|item| self.visit_item(item));
        (self.module, self.folder) = outer;
        module
    }

    /// Reads the module that `item` declares or contains.
    fn read_child(&mut self, item: &ItemMod) {
        if item.attrs.iter().any(is_test) {
            return;
        }
        let (name, parent) = (item.ident.to_string(), Some(self.module));
        let (base, folder) = (
            format!("{}{name}", self.folder),
            format!("{}{name}/", self.folder),
        );
        let module = if let Some((_, items)) = &item.content {
            let file = self.source.modules[self.module].file;
            self.read_module(file, parent, folder, items)
        } else {
            let paths = [format!("{base}.rs"), format!("{base}/mod.rs")];
            let (path, text) = paths
                .iter()
                .find_map(|path| Some((path, (self.read)(path)?)))
                .unwrap_or_else(|| panic!("no file of the module {base}"));
            self.read_file(path, &text, parent, folder)
        };
        self.define(self.module, &name, Meaning::Module(module));
    }

    fn define(&mut self, module: usize, name: &str, meaning: Meaning) {
        let names = &mut self.source.modules[module].names;
        names.entry(name.to_owned()).or_default().push(meaning);
    }

    fn mention(&mut self, path: Vec<String>, span: Span) {
        if !path.is_empty() {
            self.source.mentions.push(Mention {
                module: self.module,
                line: span.start().line,
                path,
            });
        }
    }

    fn read_use(&mut self, tree: &UseTree, mut path: Vec<String>) {
        let (name, renamed) = match tree {
            UseTree::Path(part) => {
                path.push(part.ident.to_string());
                return self.read_use(&part.tree, path);
            }
            UseTree::Group(group) => {
                let trees = group.items.iter();
                return trees.for_each(|tree| self.read_use(tree, path.clone()));
            }
            UseTree::Glob(glob) => {
                let module = &mut self.source.modules[self.module];
                module.globs.push(path.clone());
                path.push("*".to_owned());
                return self.mention(path, glob.star_token.spans[0]);
            }
            UseTree::Name(name) => (&name.ident, None),
            UseTree::Rename(rename) => (&rename.ident, Some(rename.rename.to_string())),
        };
        if name != "self" || path.is_empty() {
            path.push(name.to_string());
        }
        let renamed = renamed.unwrap_or_else(|| path[path.len() - 1].clone());
        self.mention(path.clone(), name.span());
        self.define(self.module, &renamed, Meaning::Use(path));
    }

    /// Mentions the paths in the tokens of a macro call or an attribute.
    fn read_tokens(&mut self, tokens: TokenStream) {
        let (mut path, mut colons, mut line) = (Vec::new(), 0, Span::call_site());
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.mention(mem::take(&mut path), line);
                    }
                    line = name.span();
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(colon) if colon.as_char() == ':' => colons += 1,
                other => {
                    self.mention(mem::take(&mut path), line);
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.read_tokens(group.stream());
                    }
                }
            }
        }
        self.mention(path, line);
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let name = match item {
            Item::Mod(item) => return self.read_child(item),
            Item::Const(item) => Some(&item.ident),
            Item::Enum(item) => Some(&item.ident),
            Item::Fn(item) => Some(&item.sig.ident),
            Item::Macro(item) => item.ident.as_ref(),
            Item::Static(item) => Some(&item.ident),
            Item::Struct(item) => Some(&item.ident),
            Item::Trait(item) => Some(&item.ident),
            Item::Type(item) => Some(&item.ident),
            Item::Union(item) => Some(&item.ident),
            _ => None,
        };
        if let Some(name) = name {
            let is_exported = |attribute: &Attribute| attribute.path().is_ident("macro_export");
            let module = match item {
                Item::Macro(item) if item.attrs.iter().any(is_exported) => {
                    self.source.root(self.module)
                }
                _ => self.module,
            };
            let file = self.source.modules[self.module].file;
            self.define(module, &name.to_string(), Meaning::Item(file));
        } else if let Item::Macro(item) = item {
            let made = &mut self.source.modules[self.module].made;
            type_names(item.mac.tokens.clone(), made);
        }
        visit::visit_item(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if item.leading_colon.is_none() {
            self.read_use(&item.tree, Vec::new());
        }
    }

    fn visit_path(&mut self, path: &'ast Path) {
        if path.leading_colon.is_none() {
            let names = path.segments.iter().map(|part| part.ident.to_string());
            self.mention(names.collect(), path.segments[0].ident.span());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.visit_path(&call.path);
        self.read_tokens(call.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let Meta::List(list) = &attribute.meta {
            self.read_tokens(list.tokens.clone());
        }
    }

    fn visit_visibility(&mut self, _: &'ast Visibility) {}
}

/// Collects the capitalized names in the tokens of a macro call.
fn type_names(tokens: TokenStream, names: &mut HashSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(name) => {
                let name = name.to_string();
                if name.starts_with(char::is_uppercase) {
                    names.insert(name);
                }
            }
            TokenTree::Group(group) => type_names(group.stream(), names),
            _ => {}
        }
    }
}

/// Returns whether an attribute restricts its item to tests.
fn is_test(attribute: &Attribute) -> bool {
    let Meta::List(list) = &attribute.meta else {
        return false;
    };
    let condition = list.tokens.to_string();
    list.path.is_ident("cfg") && (condition == "test" || condition.starts_with("all (test"))
}
