//! A list that nearly always has one item: that one takes no memory of its own.

/// Items in the order in which they were added.
#[derive(Clone, Debug)]
pub(crate) enum Few<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Few::Many(Vec::new())
    }
}

impl<T: Copy> Few<T> {
    pub(crate) fn push(&mut self, item: T) {
        match self {
            Few::One(first) => *self = Few::Many(vec![*first, item]),
            Few::Many(items) if items.is_empty() => *self = Few::One(item),
            Few::Many(items) => items.push(item),
        }
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        match self {
            Few::One(item) => std::slice::from_ref(item),
            Few::Many(items) => items,
        }
    }

    pub(crate) fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        let mut items = self.as_slice().to_vec();
        items.retain(keep);
        *self = Few::Many(items);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_back_in_order() {
        let mut few = Few::default();
        assert!(few.as_slice().is_empty());
        for (count, item) in (1..).zip([5, 6, 7]) {
            few.push(item);
            assert_eq!(few.as_slice(), &[5, 6, 7][..count]);
        }
        few.retain(|&item| item == 6);
        assert_eq!(few.as_slice(), [6]);
        few.push(8);
        assert_eq!(few.as_slice(), [6, 8]);
    }
}
