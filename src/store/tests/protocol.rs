//! The write protocol as a caller meets it.

use super::*;

#[test]
fn a_new_store_has_one_record_and_takes_more() {
    let home = Home::new();
    let store = home.open();
    assert_eq!(store.read().unwrap().position.unwrap().seq, 1);
    let answer = write(&store).unwrap();
    assert_eq!(answer.outcome, Ok(2));
    assert_eq!(answer.position.unwrap().seq, 2);
    assert!(answer.notes.is_empty(), "{:?}", answer.notes);
    let again = home.open();
    let snapshot = again.read().unwrap();
    assert_eq!(snapshot.position, answer.position);
    assert_eq!(snapshot.state.meta().conflicts, 1);
    assert!(snapshot.warnings.is_empty());
    for number in 3..20 {
        assert_eq!(write(&store).unwrap().outcome, Ok(number));
    }
    let back: Vec<u64> = store.records_back().unwrap().map(|record| record.unwrap().seq).collect();
    assert_eq!(back, (1..20).rev().collect::<Vec<u64>>());
    let forward: Vec<u64> = store.records(5).map(|record| record.unwrap().seq).collect();
    assert_eq!(forward, (5..20).collect::<Vec<u64>>());
}
