//! Every way in which a writer's and a reader's steps can interleave. It runs with
//! `RUSTFLAGS="--cfg loom" cargo test --release -p chronosym-timeline --test loom`.
#![allow(unexpected_cfgs)]
#![cfg(loom)]

use chronosym_timeline::{AddrRange, Begin, End, Id, LiveMap, Occupant};

#[test]
fn a_reader_sees_published_states_in_order() {
    loom::model(|| {
        let range = AddrRange::sized(0x1000, 0x100).unwrap();
        let mut live = LiveMap::new();
        let reader = live.reader();
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let reader = reader.clone();
                loom::thread::spawn(move || {
                    let mut seen = 0;
                    for _ in 0..2 {
                        let snapshot = reader.snapshot();
                        let now = snapshot.watermark();
                        assert!(now >= seen);
                        seen = now;
                        for time in 0..4 {
                            let answer = snapshot.lookup(0x1080, time);
                            // Occupant t - 1 came at t and went when the next one came; the last one is open.
                            let latest = now.min(3);
                            let expected = time
                                .min(latest)
                                .checked_sub(1)
                                .and_then(|i| Id::from_index(i as usize));
                            assert_eq!(answer.id, expected, "at {time}, watermark {now}");
                            assert_eq!(answer.provisional, time == 0 || time >= now);
                        }
                    }
                })
            })
            .collect();
        for time in 1..3 {
            live.insert(Occupant::new(range, Begin::At(time), End::Open));
            live.advance(time);
            live.publish();
        }
        for reader in readers {
            reader.join().unwrap();
        }
    });
}
