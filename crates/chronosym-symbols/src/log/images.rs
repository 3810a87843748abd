//! The images in a log or a list of mappings.

use std::collections::HashMap;

use super::target::{At, Target, file_name};

/// An image, or a mapped range of its file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Image {
    /// Its path, or its name if no path is stated; empty for memory without a file.
    pub path: String,
    /// Its name in frames, if that may differ.
    pub name: String,
    /// Its identity: build ID, UUID, or the id of its PDB.
    pub id: Option<String>,
    /// The name of its symbol file.
    pub symbol_file: Option<String>,
    /// The address of its first byte; `None` if only its identity is stated.
    pub start: Option<u64>,
    /// The address after its last byte, if stated.
    pub end: Option<u64>,
    /// File offset of the mapping, for mappings.
    pub file_offset: Option<u64>,
    /// Its index in a list that frames refer to.
    pub index: Option<u32>,
}

impl Image {
    fn is_called(&self, name: &str) -> bool {
        let own = [&*self.path, &*self.name].map(file_name);
        own.iter()
            .any(|own| own.eq_ignore_ascii_case(file_name(name)))
    }
}

/// The images of a process.
#[derive(Debug, Default)]
pub struct Images {
    list: Vec<Image>,
    /// Indexes of the images with addresses, by address.
    by_address: Vec<usize>,
    /// By name in lower case.
    by_name: HashMap<String, Named>,
    listed: HashMap<u32, usize>,
}

/// What the images with one name state. `Some(None)` if they disagree.
#[derive(Debug, Default)]
struct Named {
    /// The first one with an identity.
    with_id: Option<Option<usize>>,
    /// The first one with a path.
    with_path: Option<Option<usize>>,
}

impl Named {
    fn add(&mut self, list: &[Image], at: usize) {
        let Some(image) = list.get(at) else { return };
        let agree = |known: Option<Option<usize>>, is_equal: fn(&Image, &Image) -> bool| match known
        {
            None => Some(Some(at)),
            Some(first) => {
                let first =
                    first.filter(|&at| list.get(at).is_some_and(|other| is_equal(other, image)));
                Some(first)
            }
        };
        if image.id.is_some() {
            self.with_id = agree(self.with_id, |a, b| a.id == b.id);
        }
        if is_path(&image.path) {
            self.with_path = agree(self.with_path, |a, b| a.path == b.path);
        }
    }
}

fn is_path(name: &str) -> bool {
    name.contains(['/', '\\'])
}

/// Maximum size in bytes of an image whose end is not stated: x86-64 code cannot be larger.
const MAX_UNSTATED: u64 = 2 << 30;

/// Maximum number of images.
const MAX_IMAGES: usize = 1 << 20;

impl Images {
    pub(super) fn new(mut list: Vec<Image>) -> Self {
        list.truncate(MAX_IMAGES);
        let mut by_address: Vec<usize> = Vec::new();
        let mut by_name: HashMap<String, Named> = HashMap::new();
        let mut listed = HashMap::new();
        for (at, image) in list.iter().enumerate() {
            if image.start.is_some() {
                by_address.push(at);
            }
            let mut names = [&image.path, &image.name].map(|name| file_name(name).to_lowercase());
            names.sort_unstable();
            let [first, second] = &names;
            let second = (first != second).then_some(second);
            for name in [Some(first), second].into_iter().flatten() {
                if !name.is_empty() {
                    by_name.entry(name.clone()).or_default().add(&list, at);
                }
            }
            if let Some(index) = image.index {
                listed.entry(index).or_insert(at);
            }
        }
        by_address.sort_by_key(|&at| list.get(at).and_then(|image| image.start));
        Images {
            list,
            by_address,
            by_name,
            listed,
        }
    }

    /// Returns all of them, in the order of the text.
    pub fn list(&self) -> &[Image] {
        &self.list
    }

    /// Returns whether load addresses are stated.
    pub fn has_addresses(&self) -> bool {
        !self.by_address.is_empty()
    }

    /// Returns the image at an address, and the address relative to it.
    pub fn find(&self, address: u64) -> Option<(&Image, At<'static>)> {
        let start = |&at: &usize| self.list.get(at).and_then(|image| image.start);
        let next = self
            .by_address
            .partition_point(|at| start(at).is_some_and(|start| start <= address));
        let image = self.list.get(*self.by_address.get(next.checked_sub(1)?)?)?;
        let within = address.checked_sub(image.start?)?;
        let is_within = match image.end {
            Some(end) => address < end,
            None => within < MAX_UNSTATED,
        };
        let at = match image.file_offset {
            Some(offset) => At::FileOffset(offset.checked_add(within)?),
            None => At::Rva(within),
        };
        is_within.then_some((image, at))
    }

    /// Returns the image with an index in a list.
    pub fn listed(&self, index: u32) -> Option<&Image> {
        self.list.get(*self.listed.get(&index)?)
    }

    /// Returns the image with a name and a stated identity, if all images with the name have the
    /// same.
    pub fn of_name(&self, name: &str) -> Option<&Image> {
        let named = self.by_name.get(&file_name(name).to_lowercase())?;
        self.list.get(named.with_id??)
    }

    /// Returns the path of the images with a name, if all have the same.
    fn path_of(&self, name: &str) -> Option<&str> {
        let named = self.by_name.get(&name.to_lowercase())?;
        Some(&self.list.get(named.with_path??)?.path)
    }

    /// Adds to a target what the images state: the module of an address of the process, and the
    /// path and identity of a module. Returns the image, and whether an address of the process was converted
    /// to one of the image.
    pub fn complete<'s>(&'s self, target: &mut Target<'s>) -> Option<(&'s Image, bool)> {
        let name = target.file.filter(|name| !is_path(name));
        if let Some(path) = name.and_then(|name| self.path_of(name)) {
            target.file = Some(path);
        }
        let (image, at) = match target.at {
            At::Address(address) | At::Mapped { address, .. } => match self.find(address) {
                Some((image, at)) if target.file.is_none_or(|file| image.is_called(file)) => {
                    (image, Some(at))
                }
                _ => (self.of_name(target.file?)?, None),
            },
            At::Listed(index, rva) => (self.listed(index)?, Some(At::Rva(rva))),
            _ => (self.of_name(target.file?)?, None),
        };
        if let Some(at) = at {
            // Memory without a file belongs to no module.
            let path = if image.path.is_empty() {
                "[anonymous]"
            } else {
                &image.path
            };
            (target.file, target.at) = (Some(path), at);
        }
        let named = || self.of_name(target.file?)?.id.as_deref();
        target.id = target.id.or(image.id.as_deref()).or_else(named);
        Some((image, at.is_some()))
    }
}
