//! Hand-made images.

use super::*;
use crate::{Guid, PortablePdbId};
use chronosym_support::ecma::{COFF, DATA, image};

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn machines_with_and_without_an_os_word() {
    for (coff, wanted) in [
        (0x8664, (Machine::X64, TargetOs::Windows)),
        (0x8664 ^ 0x7b79, (Machine::X64, TargetOs::Linux)),
        (0xaa64 ^ 0x4644, (Machine::Arm64, TargetOs::Apple)),
        (0x01c4 ^ 0xadc4, (Machine::Arm, TargetOs::FreeBsd)),
        (0x014c ^ 0x1993, (Machine::X86, TargetOs::NetBsd)),
        (0x5032, (Machine::Other(0x5032), TargetOs::Windows)),
    ] {
        let mut bytes = image(&[], &[]);
        bytes[COFF..COFF + 2].copy_from_slice(&u16::to_le_bytes(coff));
        let image = PeImage::parse(&bytes).unwrap();
        assert_eq!((image.machine(), image.target_os()), wanted, "{coff:x}");
        assert_eq!(
            (image.timestamp(), image.size_of_image()),
            (0x1234_5678, 0x3000)
        );
    }
}

#[test]
fn ranges_stay_within_their_section() {
    let bytes = image(&[1, 2, 3, 4], &[]);
    let image = PeImage::parse(&bytes).unwrap();
    assert_eq!(image.data_at(0x1002), Some(&[3, 4][..]));
    let slice =
        |image: &PeImage<'_>, rva, size| image.slice(RvaRange { rva, size }).map(<[u8]>::to_vec);
    assert_eq!(slice(&image, 0x1001, 3), Some(vec![2, 3, 4]));
    assert_eq!(slice(&image, 0x1001, 4), None);
    assert_eq!(slice(&image, 0x1001, u32::MAX), None);
    assert_eq!(image.data_at(0xfff), None);
    // The section's bytes are not in the file.
    let cut = PeImage::parse(&bytes[..DATA + 2]).unwrap();
    assert_eq!(slice(&cut, 0x1000, 4), None);
}

/// Precompiled Windows images name their native PDB first.
#[test]
fn managed_and_native_pdbs_are_distinguished() {
    let entry = |minor: u32, stamp, rva, kind, size| {
        words(&[0, stamp, minor << 16 | 1, kind, size, rva, 0])
    };
    let rsds =
        |byte: u8, path: &[u8]| [b"RSDS", &[byte; 16][..], &[1, 0, 0, 0], path, b"\0"].concat();
    let (native, managed) = (rsds(1, b"X.ni.pdb"), rsds(2, b"X.pdb"));
    let at = 0x1000 + 3 * 28;
    let (first, second) = (native.len() as u32, managed.len() as u32);
    let data = [
        entry(0, 5, at, 2, first),
        entry(0x504d, 7, at + first, 2, second),
        // Outside of the file: an entry without data.
        entry(0, 0, 0x9000, 19, 40),
        native,
        managed,
    ];
    let bytes = image(&data.concat(), &[(6, 0x1000, 3 * 28)]);
    let image = PeImage::parse(&bytes).unwrap();
    let (native, managed) = (
        image.native_codeview().unwrap(),
        image.portable_codeview().unwrap(),
    );
    assert_eq!(
        (&*native.path, native.id.guid, native.portable_id()),
        ("X.ni.pdb", Guid([1; 16]), None)
    );
    let id = PortablePdbId {
        guid: Guid([2; 16]),
        stamp: 7,
    };
    assert_eq!((&*managed.path, managed.portable_id()), ("X.pdb", Some(id)));
    assert_eq!(image.codeviews().count(), 2);
    assert_eq!((image.pdb_checksum(), image.perf_map_id()), (None, None));
}

#[test]
fn exports_without_forwarders() {
    // The directory at 0x1000, two addresses at +40, two names at +48, two ordinals at +56, texts
    // from +60.
    let directory = [0, 0, 0, 0x103c, 1, 2, 2, 0x1028, 0x1030, 0x1038];
    let rest = [0x1800, 0x103e, 0x103c, 0x1040, 0x0001_0000];
    let bytes = image(
        &[words(&directory), words(&rest), b"a\0F\0b\0".to_vec()].concat(),
        &[(0, 0x1000, 66)],
    );
    let found = PeImage::parse(&bytes).unwrap();
    let names = [&b"a"[..], b"b", b"c"];
    assert_eq!(
        names.map(|name| found.export(name)),
        [Some(0x1800), None, None]
    );
    // Counts beyond the file: nothing, rather than part of something else.
    let mut directory = directory;
    directory[5] = u32::MAX;
    let bytes = image(
        &[words(&directory), words(&rest)].concat(),
        &[(0, 0x1000, 66)],
    );
    assert_eq!(PeImage::parse(&bytes).unwrap().export(b"a"), None);
}
