//! Rows of a batch, and those of each key together.

/// The rows of a batch, in columns.
#[derive(Clone, Copy)]
pub struct Rows<'b> {
    /// The numbers of the keys.
    pub keys: &'b [u32],
    /// ns since 1970-01-01 UTC.
    pub times: &'b [i64],
    pub addresses: &'b [u64],
}

impl Rows<'_> {
    pub fn len(&self) -> usize {
        self.keys.len()
    }
}

/// Columns that rows are added to.
#[derive(Default)]
pub struct Columns {
    pub keys: Vec<u32>,
    pub times: Vec<i64>,
    pub addresses: Vec<u64>,
}

impl Columns {
    pub fn clear(&mut self) {
        self.keys.clear();
        self.times.clear();
        self.addresses.clear();
    }

    pub fn rows(&self) -> Rows<'_> {
        Rows {
            keys: &self.keys,
            times: &self.times,
            addresses: &self.addresses,
        }
    }
}

/// The rows of each key of a batch.
#[derive(Default)]
pub struct RowsByKey {
    /// By key: the number of its rows, then the end of them in `rows`.
    ends: Vec<u32>,
    /// Keys of the batch, in the order of their first rows.
    keys: Vec<u32>,
    /// The rows of the first key, then those of the next one.
    rows: Vec<u32>,
}

impl RowsByKey {
    /// Sorts the rows of a batch, whose keys are less than `keys`.
    pub fn sort(&mut self, keys: usize, batch: &Rows<'_>) {
        self.ends.clear();
        self.ends.resize(keys, 0);
        self.keys.clear();
        for &key in batch.keys {
            let count = &mut self.ends[key as usize];
            if *count == 0 {
                self.keys.push(key);
            }
            *count += 1;
        }
        let mut start = 0;
        for &key in &self.keys {
            let end = &mut self.ends[key as usize];
            start += std::mem::replace(end, start);
        }
        self.rows.clear();
        self.rows.resize(batch.len(), 0);
        for (row, &key) in batch.keys.iter().enumerate() {
            let end = &mut self.ends[key as usize];
            self.rows[*end as usize] = row as u32;
            *end += 1;
        }
    }

    /// The rows of each key, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &[u32])> {
        let mut start = 0;
        self.keys.iter().map(move |&key| {
            let end = self.ends[key as usize] as usize;
            let rows = &self.rows[start..end];
            start = end;
            (key, rows)
        })
    }
}
