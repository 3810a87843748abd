//! A program with closures and generics in a module, for the layouts of debug information that
//! rustc has.

mod shapes {
    #[inline(always)]
    fn squared(n: u64) -> u64 {
        n.wrapping_mul(n)
    }

    #[inline(never)]
    pub fn each<F: Fn(u64) -> u64>(call: F, n: u64) -> u64 {
        (0..n).map(|i| call(squared(i))).fold(0, u64::wrapping_add)
    }
}

fn main() {
    let n = std::env::args().count() as u64;
    let sum = shapes::each(|i| i ^ n, n * 10) + shapes::each(|i| i.rotate_left(3) + n, n);
    println!("{sum}");
}
