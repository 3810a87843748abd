//! Bodies of code and streams of sampled addresses: synthetic, or read from a file.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use chronosym_timeline::Query;

/// A body of code with its lifetime: the addresses `start..=last` in `from..to`.
#[derive(Clone, Copy, Debug)]
pub struct Body {
    /// First address.
    pub start: u64,
    /// Last address, inclusive.
    pub last: u64,
    /// Start of its lifetime.
    pub from: u64,
    /// End of its lifetime, exclusive.
    pub to: u64,
}

/// Xorshift: the same numbers in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// Returns methods of which a profile has samples, each with one of its 4 places: most are of the first
/// 2,000, again and again, and some are of all.
pub fn profile_like(methods: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut random = Random(42);
    std::iter::repeat_with(move || {
        let all = random.below(8) == 0;
        let method = random.below(if all { methods } else { 2_000 });
        (method, random.below(4))
    })
}

/// The base of synthetic code.
const BASE: u64 = 0x7f3a_0000_0000;
/// Lifetime of a generation of bodies.
const GENERATION: u64 = 1_000_000;

/// `count` bodies of 64 to 543 bytes, 16-byte aligned, `versions` of them at each address one after
/// another, with a pause between.
pub fn bodies(count: usize, versions: usize) -> Vec<Body> {
    let mut random = Random(42);
    let mut places = Vec::with_capacity(count / versions);
    let mut start = BASE;
    for _ in 0..count / versions {
        let size = 64 + random.below(480);
        places.push((start, start + size - 1));
        start = (start + size + 31) & !15;
    }
    let mut bodies = Vec::with_capacity(count);
    for generation in 0..versions as u64 {
        let begin = generation * GENERATION;
        for &(start, last) in &places {
            let from = begin + random.below(GENERATION / 20);
            bodies.push(Body {
                start,
                last,
                from,
                to: begin + GENERATION - random.below(GENERATION / 20),
            });
        }
    }
    bodies
}

fn times(bodies: &[Body]) -> u64 {
    let ends = bodies.iter().map(|b| b.to).filter(|&to| to < u64::MAX);
    ends.max().unwrap_or(1)
}

/// Every address as likely as any other, at any time: the worst case for every cache.
pub fn uniform(bodies: &[Body], count: usize) -> Vec<Query> {
    let mut random = Random(7);
    let (end, times) = (
        bodies.iter().map(|b| b.last).max().unwrap_or(BASE),
        times(bodies),
    );
    (0..count)
        .map(|_| Query {
            addr: BASE + random.below(end - BASE + 1),
            time: random.below(times),
        })
        .collect()
}

/// Queries as in a profile: nine of ten samples are in one of a hundred bodies, the hot ones, and
/// times ascend.
pub fn clustered(bodies: &[Body], count: usize) -> Vec<Query> {
    let mut random = Random(9);
    let times = times(bodies);
    (0..count as u64)
        .map(|i| {
            let body = if random.below(10) < 9 {
                // Hot bodies are anywhere.
                random
                    .below(bodies.len() as u64 / 100 + 1)
                    .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            } else {
                random.next()
            };
            let body = &bodies[(body % bodies.len() as u64) as usize];
            let time = (u128::from(i) * u128::from(times) / count as u128) as u64;
            Query {
                addr: body.start + random.below(body.last - body.start + 1),
                time,
            }
        })
        .collect()
}

/// Queries of any body, anywhere in it, at any time of its lifetime, uniformly distributed.
pub fn lives(bodies: &[Body], count: usize) -> Vec<Query> {
    let mut random = Random(11);
    let end = times(bodies);
    (0..count)
        .map(|_| {
            let body = bodies[random.below(bodies.len() as u64) as usize];
            let to = body.to.min(end).max(body.from + 1);
            Query {
                addr: body.start + random.below(body.last - body.start + 1),
                time: body.from + random.below(to - body.from),
            }
        })
        .collect()
}

/// Returns this many copies of all bodies, in adjacent address ranges.
pub fn side_by_side(bodies: &[Body], copies: u64) -> Vec<Body> {
    let first = bodies.iter().map(|b| b.start).min().unwrap_or(0);
    let last = bodies.iter().map(|b| b.last).max().unwrap_or(0);
    let distance = (last - first + 1).next_multiple_of(1 << 16);
    (0..copies)
        .flat_map(|copy| {
            bodies.iter().map(move |body| Body {
                start: body.start - first + copy * distance,
                last: body.last - first + copy * distance,
                ..*body
            })
        })
        .collect()
}

/// Bodies and a stream of samples from a real trace: lines of `b START LAST FROM TO` and `q ADDRESS
/// TIME`, numbers decimal or hexadecimal with `0x`.
///
/// # Errors
/// If the file cannot be read, or a line is none of these.
pub fn read(path: &Path) -> io::Result<(Vec<Body>, Vec<Query>)> {
    let (mut bodies, mut queries) = (Vec::new(), Vec::new());
    for (number, line) in BufReader::new(File::open(path)?).lines().enumerate() {
        let line = line?;
        let mut fields = line.split_whitespace();
        let kind = fields.next();
        let numbers: Option<Vec<u64>> = fields
            .map(|field| match field.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16).ok(),
                None => field.parse().ok(),
            })
            .collect();
        match (kind, numbers.as_deref()) {
            (Some("b"), Some(&[start, last, from, to])) if start <= last => bodies.push(Body {
                start,
                last,
                from,
                to,
            }),
            (Some("q"), Some(&[addr, time])) => queries.push(Query { addr, time }),
            (None, _) => {}
            _ => {
                let message = format!(
                    "line {} is neither `b START LAST FROM TO` nor `q ADDRESS TIME`",
                    number + 1
                );
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
        }
    }
    Ok((bodies, queries))
}
