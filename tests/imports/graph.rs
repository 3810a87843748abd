//! Cycles and layers of a crate's files.

use super::{Import, Imports};

impl Imports {
    /// Returns the cycles: groups of files that import each other, directly or indirectly.
    pub fn cycles(&self) -> Vec<Vec<usize>> {
        let reached = self.reached();
        let mut cycles: Vec<Vec<usize>> = Vec::new();
        for (file, from_file) in reached.iter().enumerate() {
            let cycle = (0..self.files.len())
                .filter(|other| from_file[*other] && reached[*other][file])
                .collect::<Vec<_>>();
            if cycle.first() == Some(&file) {
                cycles.push(cycle);
            }
        }
        cycles
    }

    /// Returns the layer of each file: one more than the highest layer among the files that it
    /// imports outside its cycle; 1 if it imports none.
    pub fn layers(&self) -> Vec<usize> {
        let reached = self.reached();
        let mut layers = vec![0; self.files.len()];
        for file in 0..self.files.len() {
            self.layer(file, &reached, &mut layers);
        }
        layers
    }

    fn layer(&self, file: usize, reached: &[Vec<bool>], layers: &mut [usize]) -> usize {
        if layers[file] == 0 {
            let below = self.imported(file).filter(|to| !reached[*to][file]);
            let highest = below.map(|to| self.layer(to, reached, layers)).max();
            layers[file] = highest.unwrap_or(0) + 1;
        }
        layers[file]
    }

    /// Returns, for each file, which files it imports directly or through others.
    fn reached(&self) -> Vec<Vec<bool>> {
        let files = 0..self.files.len();
        let reach = |file| {
            let mut reached = vec![false; self.files.len()];
            let mut open = vec![file];
            while let Some(file) = open.pop() {
                for to in self.imported(file) {
                    if !reached[to] {
                        reached[to] = true;
                        open.push(to);
                    }
                }
            }
            reached
        };
        files.map(reach).collect()
    }

    fn imported(&self, file: usize) -> impl Iterator<Item = usize> {
        let imports = self
            .imports
            .iter()
            .filter(move |import| import.from == file);
        imports.map(|import| import.to)
    }

    /// Describes the imports within a cycle: a line for each pair of files, with the first line and
    /// all names.
    pub fn describe(&self, cycle: &[usize]) -> String {
        let pairs = self
            .imports
            .chunk_by(|a, b| (a.from, a.to) == (b.from, b.to));
        let within =
            |pair: &&[Import]| cycle.contains(&pair[0].from) && cycle.contains(&pair[0].to);
        let lines = pairs.filter(within).map(|pair| {
            let names: Vec<&str> = pair.iter().map(|import| import.name.as_str()).collect();
            let (from, to) = (&self.files[pair[0].from], &self.files[pair[0].to]);
            let line = pair.iter().map(|import| import.line).min().unwrap_or(0);
            format!("  {from}:{line} → {to} ({})\n", names.join(", "))
        });
        lines.collect()
    }
}
