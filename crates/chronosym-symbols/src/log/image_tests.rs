//! Lists of images.

use super::*;

#[test]
fn modules_of_fuchsia_are_listed() {
    let text = "[[[ELF module #0x0 \"prog\" BuildID=c0ffee 0x55d0c0a00000]]]\n";
    let images = images(text.as_bytes());
    let [image] = images.list() else {
        panic!("{images:?}")
    };
    assert_eq!(image.path, "prog");
    assert_eq!(image.id.as_deref(), Some("c0ffee"));
    assert_eq!(image.start, Some(0x55d0_c0a0_0000));
}

/// A name without a path is completed by the list of images, unless two files have it.
#[test]
fn images_state_paths() {
    let text = b"7f0000-7f1000 r-xp 00002000 fe:00 31 /usr/lib/libjli.so\n\
        7f1000-7f2000 r--p 00003000 fe:00 31 /usr/lib/libjli.so\n\
        7f2000-7f3000 r-xp 00002000 fe:00 32 /usr/lib/a/libx.so\n\
        7f4000-7f5000 r-xp 00002000 fe:00 33 /usr/lib/b/libx.so\n\
        C  [libjli.so+0x4592]  JavaMain+0xd82\nC  [libx.so+0x10]\nC  [other.so+0x10]\n";
    let scan = scan(text);
    let files: Vec<_> = scan
        .found
        .iter()
        .filter(|found| !found.is_alternative)
        .map(|found| {
            let mut target = found.target;
            scan.images.complete(&mut target);
            target.file
        })
        .collect();
    assert_eq!(
        files,
        [
            Some("/usr/lib/libjli.so"),
            Some("libx.so"),
            Some("other.so")
        ]
    );
}

#[test]
fn lists_of_images_have_many_forms() {
    for (text, path, start, end) in [
        (
            "    ee110000-ee112fff r-x         0     3000  /lib/prog.so (BuildId: ab) (load bias 0x1000)",
            "/lib/prog.so",
            0xee11_0000,
            0xee11_3000,
        ),
        (
            "    ee110000-ee112fff r-x         0     3000  /lib/prog.so (load bias 0x1000)",
            "/lib/prog.so",
            0xee11_0000,
            0xee11_3000,
        ),
        (
            "[critical][backtrace] Address mapping: 55d0c0a00000-55d0c0a04000 /bin/envoy",
            "/bin/envoy",
            0x55d0_c0a0_0000,
            0x55d0_c0a0_4000,
        ),
        (
            r"ModLoad: 00007ff6`c0a00000 00007ff6`c0a08000   C:\x\prog.exe",
            r"C:\x\prog.exe",
            0x7ff6_c0a0_0000,
            0x7ff6_c0a0_8000,
        ),
        (
            "   com.x.Foo(1.0)[5F0D1A2B-3C4D-5E6F-5F0D-1A2B3C4D5E6F]@0xffffff7f81a00000->0xffffff7f81a1ffff",
            "com.x.Foo",
            0xffff_ff7f_81a0_0000,
            0xffff_ff7f_81a2_0000,
        ),
        (
            "00007FF6C0A00000-00007FF6C0A08000 prog.exe\t1.0.0.1",
            "prog.exe",
            0x7ff6_c0a0_0000,
            0x7ff6_c0a0_8000,
        ),
        (
            "75A80000-75B70000 KERNEL32.DLL\t10.0.19041.1",
            "KERNEL32.DLL",
            0x75a8_0000,
            0x75b7_0000,
        ),
    ] {
        let images = images(text.as_bytes());
        let [image] = images.list() else {
            panic!("{text}: {images:?}")
        };
        let found = (&*image.path, image.start, image.end);
        assert_eq!(found, (path, Some(start), Some(end)), "{text}");
    }
}
