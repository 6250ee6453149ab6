//! Filling an index that has no row yet, in the order of its keys: each page is written once and full.

use heed::PutFlags;

use super::{COVERED, Covered, DATA, Index, looks, read_stamp, with_check};
use crate::store::fold::Folded;
use crate::store::runs::Walk;

/// Bytes of rows that are written at once when all are.
const AT_ONCE: usize = 8 << 20;

impl Index {
    /// Writes the rows of a whole fold into an index that has none, in their order.
    pub fn load(&self, folded: &Folded, mut walk: Walk) -> Option<()> {
        let covered = serde_json::to_vec(&Covered::of(folded)).ok()?;
        let mut txn = self.env.write_txn().ok()?;
        // Its key comes before all others.
        self.rows.put(&mut txn, COVERED, &with_check(COVERED, &covered)).ok()?;
        let mut bytes = 0;
        while let Some((key, value)) = walk.row() {
            if let Some(value) = value {
                self.rows.put_with_flags(&mut txn, PutFlags::APPEND, key, &with_check(key, value)).ok()?;
                bytes += key.len() + value.len();
            }
            walk.step().ok()?;
            if bytes >= AT_ONCE {
                bytes = 0;
                txn.commit().ok()?;
                txn = self.env.write_txn().ok()?;
            }
        }
        txn.commit().ok()
    }

    /// Says that this index counts, if it is still there and no newer one does. Only a holder of the store's
    /// lock may call it.
    pub fn count(&self) -> Option<()> {
        let newer = read_stamp(&self.home).is_some_and(|stamp| stamp.generation > self.generation);
        self.home.folder(&self.generation.to_string()).ok()?.filter(|_| !newer)?;
        let stat = self.folder.stat_of(DATA).ok()??;
        self.stamp(Some(looks(&stat)))
    }
}
