//! Runs against a plain map: whatever is put out, every lookup and the walk give what the map gives.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn fresh() -> Option<File> {
    tempfile::tempfile().ok()
}

type Change = (Vec<u8>, Option<Vec<u8>>);

fn changes() -> impl Strategy<Value = Vec<BTreeMap<Vec<u8>, Option<Vec<u8>>>>> {
    let key = proptest::collection::vec(0u8..4, 1..4);
    let value = proptest::option::weighted(0.7, proptest::collection::vec(any::<u8>(), 0..90));
    proptest::collection::vec(proptest::collection::btree_map(key, value, 0..20), 1..12)
}

fn put_out(runs: &mut Runs, batch: &BTreeMap<Vec<u8>, Option<Vec<u8>>>) {
    let changes = batch.iter().map(|(key, value)| {
        let write = value.as_ref().map(|value| |into: &mut Vec<u8>| into.extend_from_slice(value));
        (key.as_slice(), write)
    });
    runs.put_out(changes, &fresh).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_lookup_is_what_a_map_gives(
        batches in changes(),
        from in changes(),
        open in any::<(bool, bool)>(),
    ) {
        let (mut runs, mut map) = (Runs::default(), BTreeMap::new());
        for batch in &batches {
            put_out(&mut runs, batch);
            for (key, value) in batch {
                match value {
                    Some(value) => drop(map.insert(key.clone(), value.clone())),
                    None => drop(map.remove(key)),
                }
            }
        }
        prop_assert!(runs.runs.len() < batches.len() || batches.len() < 2);
        let keys: Vec<&Vec<u8>> = from.iter().flat_map(BTreeMap::keys).collect();
        for pair in keys.windows(2) {
            prop_assert_eq!(runs.get(pair[0]), map.get(pair[0]).cloned());
            let (low, high) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
            if low == high {
                continue;
            }
            let bound = |open, key| if open { Bound::Excluded(key) } else { Bound::Included(key) };
            let (low, high) = (bound(open.0, low.as_slice()), bound(open.1, high.as_slice()));
            let own = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
            prop_assert_eq!(runs.first(low, high), map.range::<[u8], _>((low, high)).next().map(own));
            prop_assert_eq!(runs.last(low, high), map.range::<[u8], _>((low, high)).next_back().map(own));
            let high = Bound::Unbounded;
            prop_assert_eq!(runs.first(low, high), map.range::<[u8], _>((low, high)).next().map(own));
        }
        let (mut walk, mut walked) = (runs.walk().unwrap(), Vec::<Change>::new());
        while let Some((key, value)) = walk.row() {
            walked.push((key.to_vec(), value.map(<[u8]>::to_vec)));
            walk.step().unwrap();
        }
        prop_assert!(walked.is_sorted_by(|one, next| one.0 < next.0));
        walked.retain(|(_, value)| value.is_some());
        prop_assert_eq!(walked, map.into_iter().map(|(key, value)| (key, Some(value))).collect::<Vec<_>>());
        prop_assert!(runs.is_sound());
    }
}

#[test]
fn what_cannot_be_read_again_is_told() {
    let mut runs = Runs::default();
    let batch = (0..100u8).map(|at| (vec![at], Some(vec![at; 20]))).collect();
    put_out(&mut runs, &batch);
    assert_eq!(runs.get(&[70]), Some(vec![70; 20]));
    runs.runs[0].file.set_len(100).unwrap();
    assert_eq!(runs.get(&[99]), None);
    assert!(!runs.is_sound());
    assert!(runs.walk().and_then(|mut walk| (0..100).try_for_each(|_| walk.step())).is_err());
}

#[test]
fn where_no_file_is_to_be_had_nothing_has_changed() {
    let mut runs = Runs::default();
    put_out(&mut runs, &BTreeMap::from([(vec![1], Some(vec![2]))]));
    let refused =
        runs.put_out([([3u8].as_slice(), Some(|into: &mut Vec<u8>| into.push(4)))].into_iter(), &|| None);
    assert!(refused.is_err());
    assert_eq!((runs.get(&[1]), runs.get(&[3])), (Some(vec![2]), None));
}
