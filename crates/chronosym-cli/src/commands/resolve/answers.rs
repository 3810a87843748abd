//! The names of a batch of addresses.

/// The names of the rows of a batch.
#[derive(Default)]
pub struct Answers {
    /// The first name of each row, and the number of its names.
    rows: Vec<(usize, usize)>,
    /// The end of each name in `text`.
    ends: Vec<usize>,
    text: String,
}

impl Answers {
    /// Makes room for the names of so many rows.
    pub fn clear(&mut self, rows: usize) {
        self.rows.clear();
        self.rows.resize(rows, (0, 0));
        self.ends.clear();
        self.text.clear();
    }

    /// Adds a name to a row; names of different rows may not alternate.
    pub fn push(&mut self, row: usize, name: &str) {
        let (first, count) = &mut self.rows[row];
        if *count == 0 {
            *first = self.ends.len();
        }
        *count += 1;
        self.text.push_str(name);
        self.ends.push(self.text.len());
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The names of a row, innermost first.
    pub fn of(&self, row: usize) -> impl ExactSizeIterator<Item = &str> {
        let (first, count) = self.rows[row];
        (first..first + count).map(|name| {
            let start = name.checked_sub(1).map_or(0, |before| self.ends[before]);
            &self.text[start..self.ends[name]]
        })
    }
}
