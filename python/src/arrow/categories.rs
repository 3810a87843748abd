//! Distinct texts with numbers.

use std::collections::HashMap;
use std::sync::Arc;

use super::data::{Array, NONE, Texts};

/// Distinct texts, numbered in the order in which they were added. The empty one is none.
#[derive(Default)]
pub struct Categories {
    numbers: HashMap<Box<str>, u32>,
    texts: Texts,
    /// All texts, unless there are more by now.
    array: Option<Arc<Array>>,
}

impl Categories {
    /// Texts that are known in advance.
    pub fn of<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        let mut categories = Categories::default();
        for text in texts {
            categories.number(text);
        }
        categories
    }

    /// The number of a text.
    pub fn number(&mut self, text: &str) -> u32 {
        if text.is_empty() {
            return NONE;
        }
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = self.texts.len() as u32;
        self.numbers.insert(text.into(), number);
        self.texts.push(text);
        self.array = None;
        number
    }

    /// A column of texts by their numbers.
    pub fn column(&mut self, numbers: Vec<u32>) -> Array {
        let texts = self
            .array
            .get_or_insert_with(|| Arc::new(self.texts.array()));
        Array::categories(numbers, texts.clone())
    }
}
