//! An open image: its methods by address.

use std::fmt;

use crate::bytes::{self, Cursor, text_to_nul};
use crate::checkpoints::Checkpoints;
use crate::metadata::{Metadata, Table, Token};
use crate::pe::{Machine, PeImage, RvaRange};
use crate::{Error, Result};

use super::bounds::{Bounds, BoundsPosition, IlPosition};
use super::header::{self, Component, Sections, WHAT, section};
use super::instance::signature_end;
use super::native::{NativeArray, NativeHashtable, unsigned};
use super::runtime_functions::RuntimeFunctions;

/// A ReadyToRun image with the entry points of all its methods, in order of address.
///
/// Opening an image reads the entry point tables (about a millisecond for the framework's core
/// library); names and debug information are decoded on demand.
pub struct R2rImage<'d> {
    pub(super) image: PeImage<'d>,
    major: u16,
    minor: u16,
    pub(super) sections: Sections,
    functions: RuntimeFunctions<'d>,
    /// By function index, which is also the order of addresses.
    entry_points: Vec<EntryPoint>,
    /// (first cold function, entry function of its method), ascending (`HOT_COLD_MAP`).
    cold: Box<[(u32, u32)]>,
    debug_info: NativeArray<'d>,
    pub(super) instances: &'d [u8],
    /// The image's own IL metadata; `None` for a composite image.
    pub(super) metadata: Option<Metadata<'d>>,
    pub(super) manifest: Option<Metadata<'d>>,
    pub(super) components: Vec<Component<'d>>,
    /// Checkpoints in lists of bounds, by the list's offset.
    checkpoints: Checkpoints<usize, BoundsPosition<'d>>,
}

#[derive(Debug, Clone, Copy)]
struct EntryPoint {
    start: u32,
    function: u32,
    id: R2rMethodId,
    /// Index in `cold`.
    cold: Option<u32>,
}

/// The method of an entry point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum R2rMethodId {
    /// A method definition.
    Definition {
        /// The component of a composite image, from 0; 0 in a single image.
        component: u32,
        /// The MethodDef row in that module's metadata.
        row: u32,
    },
    /// An instance of a generic method or type, by its signature.
    Instance {
        /// Offset of the signature in the table of instance entry points.
        signature: u32,
    },
}

/// One precompiled method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct R2rMethod {
    /// RVA of its first byte.
    pub start: u32,
    /// Bytes from there to the end of its last funclet.
    pub hot_size: u32,
    /// The cold part, if the compiler split the method.
    pub cold: Option<RvaRange>,
    /// Its identity.
    pub id: R2rMethodId,
    pub(super) function: u32,
}

impl R2rMethod {
    /// Returns the MethodDef token; `None` for an instance.
    pub fn token(&self) -> Option<Token> {
        match self.id {
            R2rMethodId::Definition { row, .. } => Some(Token::new(Table::METHOD_DEF, row)),
            R2rMethodId::Instance { .. } => None,
        }
    }

    /// Bytes from the method's first byte to `rva`, counted over the hot part, then the cold part;
    /// `None` outside both.
    pub fn native_offset(&self, rva: u32) -> Option<u32> {
        if let Some(offset) = rva
            .checked_sub(self.start)
            .filter(|&offset| offset < self.hot_size)
        {
            return Some(offset);
        }
        let cold = self.cold?;
        let offset = rva
            .checked_sub(cold.rva)
            .filter(|&offset| offset < cold.size)?;
        self.hot_size.checked_add(offset)
    }
}

impl fmt::Debug for R2rImage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("R2rImage")
            .field("image", &self.image)
            .field("version", &self.version())
            .field("methods", &self.entry_points.len())
            .finish_non_exhaustive()
    }
}

impl<'d> R2rImage<'d> {
    /// Opens a ReadyToRun image: a single image, a composite image, or a component of one (which
    /// holds no code: see [`R2rImage::owner_composite`]).
    ///
    /// # Errors [`Error::NotA`] for another file, including an IL-only image; [`Error::Truncated`]
    /// or [`Error::Damaged`] if the tables exceed the file.
    pub fn parse(data: &'d [u8]) -> Result<Self> {
        Self::open(PeImage::parse(data)?)
    }

    /// Opens an image with parsed headers.
    ///
    /// # Errors As [`R2rImage::parse`].
    pub fn open(image: PeImage<'d>) -> Result<Self> {
        let header = header::find(&image).ok_or(Error::NotA { what: WHAT })?;
        let mut cursor = Cursor::at(header, 4, WHAT);
        let (major, minor, _flags) = (cursor.u16()?, cursor.u16()?, cursor.u32()?);
        let sections = Sections::parse(&mut cursor)?;
        let is_composite = sections.get(section::COMPONENT_ASSEMBLIES).is_some();
        let metadata = match is_composite {
            true => None,
            false => Some(image.metadata()?),
        };
        let manifest = match sections.data(section::MANIFEST_METADATA, &image)? {
            [] => None,
            data => Some(Metadata::parse(data)?),
        };
        let functions = RuntimeFunctions::new(
            sections.data(section::RUNTIME_FUNCTIONS, &image)?,
            image.machine(),
        );
        let debug_info = sections.array(section::DEBUG_INFO, &image)?;
        let mut cold = bytes::pairs(sections.data(section::HOT_COLD_MAP, &image)?);
        cold.sort_unstable();
        let mut opened = Self {
            major,
            minor,
            debug_info,
            instances: sections.data(section::INSTANCE_ENTRY_POINTS, &image)?,
            cold,
            checkpoints: Checkpoints::new(debug_info.data().len()),
            components: header::components(
                sections.data(section::COMPONENT_ASSEMBLIES, &image)?,
                &image,
            )?,
            entry_points: Vec::new(),
            functions,
            metadata,
            manifest,
            sections,
            image,
        };
        opened.read_entry_points()?;
        Ok(opened)
    }

    fn read_entry_points(&mut self) -> Result<()> {
        let image = self
            .sections
            .array(section::METHOD_DEF_ENTRY_POINTS, &self.image)?;
        let components = self
            .components
            .iter()
            .map(|component| component.entry_points);
        let tables = std::iter::once((0, image)).chain((0..).zip(components));
        // Entry functions by index are ordered by address: no sorting is needed.
        let mut owners = vec![None; self.functions.count() as usize];
        let mut assign = |function: u32, id| {
            if let Some(owner) = owners.get_mut(function as usize) {
                owner.get_or_insert(id);
            }
        };
        for (component, table) in tables {
            for index in 0..table.count() {
                let row = index.saturating_add(1);
                let offset = table.get(index);
                if let Some(function) = offset.and_then(|at| entry_function(table.data(), at)) {
                    assign(function, R2rMethodId::Definition { component, row });
                }
            }
        }
        if !self.instances.is_empty() {
            let bad = Error::damaged(WHAT, 0, "bad table of instances");
            let table = NativeHashtable::parse(self.instances).ok_or(bad)?;
            // Methods do not share entry functions: more instances than functions are malformed.
            for payload in table.payloads().take(self.functions.count() as usize) {
                let end = signature_end(self.instances, payload);
                let function = end.and_then(|end| entry_function(self.instances, end));
                if let (Some(function), Ok(signature)) = (function, u32::try_from(payload)) {
                    assign(function, R2rMethodId::Instance { signature });
                }
            }
        }
        let entry = |(function, owner): (u32, Option<R2rMethodId>)| {
            Some(EntryPoint {
                start: self.functions.start(function)?,
                function,
                id: owner?,
                cold: None,
            })
        };
        let mut entry_points: Vec<_> = (0..).zip(owners).filter_map(entry).collect();
        for (at, &(_, hot)) in (0..).zip(&self.cold) {
            let index =
                entry_points.binary_search_by_key(&hot, |entry: &EntryPoint| entry.function);
            if let Some(entry) = index.ok().and_then(|index| entry_points.get_mut(index)) {
                entry.cold = Some(at);
            }
        }
        self.entry_points = entry_points;
        Ok(())
    }

    /// Returns the PE image.
    pub fn image(&self) -> &PeImage<'d> {
        &self.image
    }

    /// Returns the version of the format: (major, minor).
    pub fn version(&self) -> (u16, u16) {
        (self.major, self.minor)
    }

    /// Returns the processor of the code.
    pub fn machine(&self) -> Machine {
        self.image.machine()
    }

    /// Returns whether the image is a composite image, which holds the code of several assemblies.
    pub fn is_composite(&self) -> bool {
        self.sections.get(section::COMPONENT_ASSEMBLIES).is_some()
    }

    /// Returns the file name of the composite image that holds this component's code; `None` for
    /// another image.
    pub fn owner_composite(&self) -> Option<String> {
        self.text(section::OWNER_COMPOSITE)
    }

    fn text(&self, kind: u32) -> Option<String> {
        let range = self.sections.get(kind)?;
        Some(text_to_nul(self.image.slice(range)?))
    }

    /// Returns the IL metadata of a single image; `None` for a composite image.
    pub fn metadata(&self) -> Option<&Metadata<'d>> {
        self.metadata.as_ref()
    }

    /// Returns all methods, in order of address.
    pub fn methods(&self) -> impl Iterator<Item = R2rMethod> + '_ {
        (0..self.entry_points.len()).filter_map(|index| self.method(index))
    }

    /// Returns the number of methods.
    pub fn method_count(&self) -> usize {
        self.entry_points.len()
    }

    /// RVAs of all methods' first bytes, ascending.
    pub fn entry_points(&self) -> impl Iterator<Item = u32> + '_ {
        self.entry_points.iter().map(|entry| entry.start)
    }

    /// Returns the method whose code covers `rva`.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_pdb::r2r::R2rImage;
    ///
    /// let file = std::fs::read("../../testdata/clr10/r2r/linux-x64/Workload.dll")?;
    /// let image = R2rImage::parse(&file)?;
    /// let method = image.methods().next().unwrap();
    /// let rva = image.entry_points().next().unwrap();
    /// let found = image.method_at(rva + 1).unwrap();
    /// assert!(found.native_offset(rva + 1) == Some(1));
    /// println!("{} methods, the first is {:?}", image.method_count(), method.token());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn method_at(&self, rva: u32) -> Option<R2rMethod> {
        let method = self
            .method_before(rva)
            .filter(|method| method.native_offset(rva).is_some());
        method.or_else(|| self.method_of_cold(rva))
    }

    /// Returns the method that starts at `rva`.
    pub fn method_starting_at(&self, rva: u32) -> Option<R2rMethod> {
        self.method(
            self.entry_points
                .binary_search_by_key(&rva, |entry| entry.start)
                .ok()?,
        )
    }

    fn method_before(&self, rva: u32) -> Option<R2rMethod> {
        let after = self
            .entry_points
            .partition_point(|entry| entry.start <= rva);
        self.method(after.checked_sub(1)?)
    }

    pub(super) fn method_of_cold(&self, rva: u32) -> Option<R2rMethod> {
        let start = |&(cold, _): &(u32, u32)| self.functions.start(cold).unwrap_or(u32::MAX);
        let after = self.cold.partition_point(|pair| start(pair) <= rva);
        let &(_, hot) = self.cold.get(after.checked_sub(1)?)?;
        let method = self.method_starting_at(self.functions.start(hot)?)?;
        method.native_offset(rva).map(|_| method)
    }

    fn method(&self, index: usize) -> Option<R2rMethod> {
        let entry = *self.entry_points.get(index)?;
        // The functions of a method are its own and its funclets', up to the next method or the
        // cold code.
        let next = self
            .entry_points
            .get(index.saturating_add(1))
            .map(|entry| entry.function);
        let next = next
            .into_iter()
            .chain(self.cold.first().map(|pair| pair.0))
            .min();
        let end = self.end_before(next, entry.function)?;
        Some(R2rMethod {
            start: entry.start,
            hot_size: end.saturating_sub(entry.start),
            cold: entry.cold.and_then(|at| self.cold_part(at as usize)),
            id: entry.id,
            function: entry.function,
        })
    }

    fn cold_part(&self, at: usize) -> Option<RvaRange> {
        let first = self.cold.get(at)?.0;
        let next = self.cold.get(at.saturating_add(1)).map(|pair| pair.0);
        let rva = self.functions.start(first)?;
        let size = self.end_before(next, first)?.saturating_sub(rva);
        Some(RvaRange { rva, size })
    }

    /// End of the last function from `first` on, before `next` or the end of the table.
    fn end_before(&self, next: Option<u32>, first: u32) -> Option<u32> {
        let next = next.unwrap_or(u32::MAX).min(self.functions.count());
        self.functions
            .end(next.saturating_sub(1).max(first), &self.image)
    }

    /// Returns the bounds of a method, in native order; `None` if it has no debug information.
    pub fn bounds(&self, method: &R2rMethod) -> Option<Bounds<'d>> {
        Bounds::of(&self.debug_info, method.function, self.major)
    }

    /// Returns the IL of a native offset of a method. A caller's frame (`is_caller`) is looked up
    /// one byte before its return address.
    pub fn il_offset(
        &self,
        method: &R2rMethod,
        native_offset: u32,
        is_caller: bool,
    ) -> Option<IlPosition> {
        let native_offset = native_offset.saturating_sub(is_caller.into());
        let bounds = self.bounds(method)?;
        let (offset, bytes, start) = (bounds.offset, bounds.bytes, BoundsPosition::new(bounds));
        let is_before = |position: &BoundsPosition<'_>| position.is_before(native_offset);
        self.checkpoints
            .nearest(offset, bytes, start, is_before)?
            .lookup(native_offset)
    }
}

/// Decodes an entry point: the index of a runtime function, with or without a fixup list.
fn entry_function(data: &[u8], at: usize) -> Option<u32> {
    let (value, _) = unsigned(data, at)?;
    Some(if value & 1 == 0 {
        value >> 1
    } else {
        value >> 2
    })
}
