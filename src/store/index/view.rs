//! The index's rows at one moment, as a base below what is folded in memory. Reads only.

use std::ops::Bound;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use heed::{RoTxn, WithoutTls};

use super::{COVERED, Rows, checked};
use crate::error::Error;
use crate::model::state::State;
use crate::model::tables::{Base, KEY_LIMIT};
use crate::store::damage::Flaw;
use crate::store::files::Folder;
use crate::store::scan::{Limit, Place, Scan, Stop};
use crate::store::{Doubt, Store};

type Pair = (Vec<u8>, Vec<u8>);

/// The rows at one moment. Where LMDB fails or a check does not hold, it answers from then on out of the log,
/// folded in memory up to the same record; where the log does not say it either, doubt is raised.
pub(super) struct View {
    rows: Rows,
    txn: Mutex<RoTxn<'static, WithoutTls>>,
    rescue: OnceLock<State>,
    log: Arc<Folder>,
    store: String,
    start: Place,
    end: Place,
    doubt: Doubt,
    /// Says that this index counts; taken away once it is known to be no good.
    stamp: PathBuf,
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "View(up to {})", self.end.seq)
    }
}

impl View {
    /// The rows that a transaction sees; they cover the log up to `end`.
    pub fn new(
        store: &Store,
        rows: Rows,
        txn: RoTxn<'static, WithoutTls>,
        end: Place,
        stamp: PathBuf,
    ) -> Option<Self> {
        Some(Self {
            rows,
            txn: Mutex::new(txn),
            rescue: OnceLock::new(),
            log: store.log_shared().ok()?.clone(),
            store: store.info.store_id.clone(),
            start: Place::start(store.info_hash),
            end,
            doubt: store.options.doubt.clone(),
            stamp,
        })
    }

    fn txn(&self) -> MutexGuard<'_, RoTxn<'static, WithoutTls>> {
        self.txn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rescue(&self) -> &dyn Base {
        let fold = || {
            // The next command makes an index anew.
            let _ = std::fs::remove_file(&self.stamp);
            let mut state = State::default();
            if let Err(error) = self.fold(&mut state) {
                self.doubt.raise(&error);
            }
            state
        };
        self.rescue.get_or_init(fold).as_base()
    }

    /// Folds the log up to the record that the rows cover.
    fn fold(&self, state: &mut State) -> Result<(), Error> {
        let mut scan = Scan::new(&self.log, &self.store, self.start.clone(), Limit::End);
        while scan.place.seq < self.end.seq {
            let record = scan.next().map_err(Stop::error)?;
            state.apply(&record.ok_or_else(|| scan.place.damage(Flaw::Lost).error())?);
        }
        if scan.place.hash == self.end.hash { Ok(()) } else { Err(scan.place.damage(Flaw::Head).error()) }
    }

    fn row(&self, found: heed::Result<Option<(&[u8], &[u8])>>) -> Result<Option<Pair>, ()> {
        match found {
            Ok(None) => Ok(None),
            Ok(Some((key, value))) => match checked(key, value) {
                Some(value) => Ok(Some((key.to_vec(), value.to_vec()))),
                None => Err(()),
            },
            Err(_) => Err(()),
        }
    }

    fn get_row(&self, key: &[u8]) -> Result<Option<Pair>, ()> {
        let txn = self.txn();
        self.row(self.rows.get(&txn, key).map(|value| value.map(|value| (key, value))))
    }

    fn first_row(&self, range: (Bound<&[u8]>, Bound<&[u8]>)) -> Result<Option<Pair>, ()> {
        let txn = self.txn();
        let found = self.rows.range(&txn, &range).and_then(|mut rows| rows.next().transpose());
        self.row(found)
    }

    fn last_row(&self, range: (Bound<&[u8]>, Bound<&[u8]>)) -> Result<Option<Pair>, ()> {
        let txn = self.txn();
        let found = self.rows.rev_range(&txn, &range).and_then(|mut rows| rows.next().transpose());
        self.row(found)
    }
}

/// What is asked of a range: nothing in it is the head entry, and no key of it is too long.
fn range<'a>(from: Bound<&'a [u8]>, to: Bound<&'a [u8]>) -> Option<(Bound<&'a [u8]>, Bound<&'a [u8]>)> {
    let from = if from == Bound::Unbounded { Bound::Excluded(COVERED) } else { from };
    let fits = |bound: &Bound<&[u8]>| match bound {
        Bound::Included(key) | Bound::Excluded(key) => key.len() <= KEY_LIMIT,
        Bound::Unbounded => true,
    };
    (fits(&from) && fits(&to)).then_some((from, to))
}

impl Base for View {
    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        if key.len() > KEY_LIMIT {
            return None;
        }
        if self.rescue.get().is_none()
            && let Ok(row) = self.get_row(key)
        {
            return row.map(|(_, value)| value);
        }
        self.rescue().get(key)
    }

    fn first(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Option<Pair> {
        let range = range(from, to)?;
        if self.rescue.get().is_none()
            && let Ok(row) = self.first_row(range)
        {
            return row;
        }
        self.rescue().first(from, to)
    }

    fn last(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Option<Pair> {
        let range = range(from, to)?;
        if self.rescue.get().is_none()
            && let Ok(row) = self.last_row(range)
        {
            return row;
        }
        self.rescue().last(from, to)
    }
}
