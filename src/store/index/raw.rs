//! The index's rows at one moment as they stand, with nothing that would put right what is wrong with them.

use std::path::PathBuf;

use heed::{RoTxn, WithoutTls};

use super::pages::Looked;
use super::{COVERED, Rows, checked};
use crate::model::state::Meta;
use crate::store::scan::Place;

/// Bytes of rows that are taken for one page: half of what it has room for, as a page may be half empty.
const PAGE: usize = 2048;

/// The rows at one moment, as they are.
pub(in crate::store) struct Raw {
    pub(super) home: PathBuf,
    pub(super) rows: Rows,
    pub(super) txn: RoTxn<'static, WithoutTls>,
    /// Up to where they cover the log.
    pub place: Place,
    /// The counters of that moment.
    pub meta: Meta,
}

impl Raw {
    /// Every row, first to last, with its value or `None` where its check does not hold; false where LMDB
    /// stopped before the end.
    pub fn each(&self, mut each: impl FnMut(&[u8], Option<&[u8]>)) -> bool {
        let looked = Looked::new(&self.home);
        let Ok(rows) = self.rows.iter(&self.txn) else { return false };
        let mut bytes = 0;
        for row in rows {
            let Ok((key, value)) = row else { return false };
            // Rows are met in their order, each page once: what counts is how many pages they fill.
            bytes += key.len() + value.len();
            while bytes >= PAGE {
                bytes -= PAGE;
                looked.one();
            }
            if key != COVERED {
                each(key, checked(key, value));
            }
        }
        true
    }
}
