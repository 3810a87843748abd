//! Load addresses of a process's files.

use chronosym_symbols::log::Images;

use crate::request::{AddressRequest, At};

/// The source of load addresses: an option, or the images of the process.
#[derive(Clone, Copy)]
pub struct Process<'a> {
    /// The load address of the only file.
    pub base: Option<u64>,
    pub images: &'a Images,
    /// Whether a trace states the load addresses.
    pub is_traced: bool,
}

impl<'a> Process<'a> {
    /// Returns this process if anything is stated about it, else that of other images.
    pub fn or_of<'b>(&self, images: &'b Images) -> Process<'b>
    where
        'a: 'b,
    {
        let is_stated = self.is_traced || self.base.is_some() || !self.images.list().is_empty();
        Process {
            images: if is_stated { self.images } else { images },
            ..*self
        }
    }

    /// Converts an address of the process to one of a file, as far as load addresses are stated,
    /// and adds the identity of the module.
    pub fn locate<'s>(&'s self, request: &mut AddressRequest<'s>) {
        let Some(target) = &mut request.target else {
            return;
        };
        let address = match target.at {
            At::Address(address) | At::Mapped { address, .. } => Some(address),
            _ => None,
        };
        let rva = self.base.zip(address);
        if let Some(rva) = rva.and_then(|(base, address)| address.checked_sub(base)) {
            target.at = At::Rva(rva);
            request.address = address;
            return;
        }
        let (image, is_moved) = self.images.complete(target).unzip();
        request.symbol_file = image.and_then(|image| image.symbol_file.as_deref());
        if is_moved == Some(true) {
            request.address = address;
        } else if address.is_some() && target.file.is_none() && self.images.has_addresses() {
            // The list has all files, and none contains the address.
            target.file = Some("[anonymous]");
        }
    }
}
