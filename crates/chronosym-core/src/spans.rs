//! The number and times of the logged samples of each class.

/// Samples of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub samples: u64,
    /// Time of the first one to arrive, in ns.
    pub first: u64,
    /// Time of the last one, in ns; `u64::MAX` if one is earlier than `first`.
    pub last: u64,
}

impl Span {
    const NONE: Span = Span {
        samples: 0,
        first: 0,
        last: 0,
    };
}

/// The samples of all classes.
#[derive(Debug, Default)]
pub(crate) struct Spans {
    classes: Vec<Span>,
    /// The classes that have samples, in the order in which their first ones arrived.
    order: Vec<u32>,
}

impl Spans {
    /// Takes the next sample, in order of arrival.
    #[inline]
    pub fn add(&mut self, class: u32, time: u64) {
        let span = Span {
            samples: 1,
            first: time,
            last: time,
        };
        self.append(class, span);
    }

    /// Takes samples that arrived after those of their class so far.
    #[inline]
    fn append(&mut self, class: u32, span: Span) {
        match self.classes.get_mut(class as usize) {
            Some(before) if before.samples > 0 => {
                before.samples += span.samples;
                before.last = match span.first < before.first {
                    true => u64::MAX,
                    false => before.last.max(span.last),
                };
            }
            _ => self.start(class, span),
        }
    }

    fn start(&mut self, class: u32, span: Span) {
        let index = class as usize;
        if index >= self.classes.len() {
            self.classes.resize(index + 1, Span::NONE);
        }
        self.classes[index] = span;
        self.order.push(class);
    }

    /// Returns the number of samples of a class.
    pub fn samples(&self, class: usize) -> u64 {
        self.classes.get(class).map_or(0, |span| span.samples)
    }

    /// Returns the classes that have samples, in the order in which their first ones arrived.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Span)> {
        let span = |&class: &u32| (class, self.classes[class as usize]);
        self.order.iter().map(span)
    }

    /// Merges classes: `joined` has the new class of each, `u32::MAX` for one that is dropped.
    pub fn join(&mut self, joined: &[u32]) {
        let before = std::mem::take(self);
        for (class, span) in before.iter() {
            match joined[class as usize] {
                u32::MAX => {}
                class => self.append(class, span),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_classes_have_the_spans_of_all_their_samples() {
        let samples = [(2, 5), (0, 7), (2, 9), (1, 4), (3, 8), (1, 6)];
        let spans_of = |class_of: &[u32]| {
            let mut spans = Spans::default();
            for (class, time) in samples {
                if class_of[class] != u32::MAX {
                    spans.add(class_of[class], time);
                }
            }
            spans
        };
        let mut spans = spans_of(&[0, 1, 2, 3]);
        let ordered: Vec<_> = spans
            .iter()
            .map(|(class, span)| (class, span.last))
            .collect();
        assert_eq!(ordered, [(2, 9), (0, 7), (1, 6), (3, 8)]);
        let joined = [0, 0, 1, u32::MAX];
        spans.join(&joined);
        assert!(spans.iter().eq(spans_of(&joined).iter()));
        let early = spans.iter().last().expect("class 0");
        assert_eq!((early.0, early.1.last), (0, u64::MAX), "4 is before 7");
    }
}
