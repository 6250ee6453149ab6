//! A walk over several runs at once, in the order of their keys. Reads each from its start to its end.

use std::io;
use std::sync::Arc;

use super::{Row, Run, row_at};

/// Where one run is read.
struct Reader {
    run: Arc<Run>,
    /// The number of the next block.
    next: usize,
    block: Vec<u8>,
    /// Where its present row begins in the block, and the next one; `None` at the end of the run.
    at: Option<(usize, usize)>,
}

impl Reader {
    fn new(run: Arc<Run>) -> io::Result<Self> {
        let mut reader = Self { run, next: 0, block: Vec::new(), at: Some((0, 0)) };
        reader.step()?;
        Ok(reader)
    }

    fn row(&self) -> Option<Row<'_>> {
        row_at(&self.block, self.at?.0).map(|(row, _)| row)
    }

    fn step(&mut self) -> io::Result<()> {
        let Some((_, mut at)) = self.at else { return Ok(()) };
        if at >= self.block.len() {
            if self.next == self.run.blocks.len() {
                self.at = None;
                return Ok(());
            }
            self.run.read(self.next, &mut self.block)?;
            self.next += 1;
            at = 0;
        }
        self.at = row_at(&self.block, at).map(|(_, next)| (at, next));
        Ok(())
    }
}

/// The rows of several runs in order; of one key the newest.
pub(in crate::store) struct Walk {
    /// Oldest first.
    readers: Vec<Reader>,
    /// Those whose present row has the lowest key; the last of them is the newest.
    lowest: Vec<usize>,
}

impl Walk {
    pub(super) fn new(runs: &[Arc<Run>]) -> io::Result<Self> {
        let readers = runs.iter().cloned().map(Reader::new).collect::<io::Result<_>>()?;
        let mut walk = Self { readers, lowest: Vec::new() };
        walk.choose();
        Ok(walk)
    }

    /// The present row; `None` at the end.
    pub fn row(&self) -> Option<Row<'_>> {
        self.readers[*self.lowest.last()?].row()
    }

    /// Goes to the next row.
    ///
    /// # Errors
    /// A failed read.
    pub fn step(&mut self) -> io::Result<()> {
        for at in &self.lowest {
            self.readers[*at].step()?;
        }
        self.choose();
        Ok(())
    }

    fn choose(&mut self) {
        let mut lowest: Option<&[u8]> = None;
        self.lowest.clear();
        for (at, reader) in self.readers.iter().enumerate() {
            let Some((key, _)) = reader.row() else { continue };
            match lowest.map(|lowest| key.cmp(lowest)) {
                Some(std::cmp::Ordering::Greater) => continue,
                Some(std::cmp::Ordering::Equal) => {}
                _ => self.lowest.clear(),
            }
            lowest = Some(key);
            self.lowest.push(at);
        }
    }
}
