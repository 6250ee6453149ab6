//! Tables over a base, and their keys.

use super::*;

#[test]
fn tuples_do_not_run_into_each_other() {
    let mut tables = Tables::default();
    tables.put(Key::new(Table::Receipt).text("ab").text("c"), &1);
    tables.put(Key::new(Table::Receipt).text("a").text("bc"), &2);
    assert_eq!(tables.scan::<u32>(&Key::new(Table::Receipt).text("a")).collect::<Vec<_>>(), [2]);
    assert_eq!(tables.get::<u32>(&Key::new(Table::Receipt).text("ab").text("c")), Some(1));
}

#[test]
fn scans_go_both_ways_and_stop_at_their_prefix() {
    let mut tables = Tables::default();
    for number in 0..4u64 {
        tables.put(Key::new(Table::Kind).text("s").number(number), &number);
    }
    tables.put(Key::new(Table::Member).text("s"), &9u64);
    let prefix = Key::new(Table::Kind).text("s");
    assert_eq!(tables.scan::<u64>(&prefix).collect::<Vec<_>>(), [0, 1, 2, 3]);
    let before = prefix.clone().number(2);
    assert_eq!(tables.scan_back::<u64>(&prefix, Some(&before)).collect::<Vec<_>>(), [1, 0]);
    assert_eq!(tables.scan_back::<u64>(&prefix, None).next(), Some(3));
}

fn numbered(rows: &[(u64, u64)]) -> Tables {
    let mut tables = Tables::default();
    for (number, value) in rows {
        tables.put(Key::new(Table::Kind).text("s").number(*number), value);
    }
    tables
}

#[test]
fn what_changed_lies_over_a_base() {
    let key = |number| Key::new(Table::Kind).text("s").number(number);
    let mut tables = Tables::on(Arc::new(numbered(&[(0, 0), (2, 2), (4, 4), (6, 6)])));
    tables.delete(key(2));
    tables.put(key(3), &3u64);
    tables.put(key(4), &40u64);
    tables.put(key(9), &9u64);
    tables.delete(key(6));
    let prefix = Key::new(Table::Kind).text("s");
    assert_eq!(tables.scan::<u64>(&prefix).collect::<Vec<_>>(), [0, 3, 40, 9]);
    assert_eq!(tables.scan_back::<u64>(&prefix, None).collect::<Vec<_>>(), [9, 40, 3, 0]);
    assert_eq!(tables.scan_back::<u64>(&prefix, Some(&key(4))).collect::<Vec<_>>(), [3, 0]);
    assert_eq!((tables.get::<u64>(&key(2)), tables.get::<u64>(&key(4))), (None, Some(40)));
    assert_eq!(tables, numbered(&[(0, 0), (3, 3), (4, 40), (9, 9)]));
    assert_ne!(tables, numbered(&[(0, 0), (3, 3), (4, 4), (9, 9)]));
    assert_eq!(tables.len(), 4);
}

#[test]
fn a_value_is_changed_where_it_stands_and_in_no_other_state() {
    let key = |number| Key::new(Table::Kind).text("s").number(number);
    let add = |value: &mut u64| *value += 1;
    let mut tables = numbered(&[(1, 1), (2, 2)]);
    let kept = tables.clone();
    for _ in 0..2 {
        tables.change(key(1), add);
        tables.change(key(3), add);
    }
    assert_eq!((tables.get::<u64>(&key(1)), kept.get::<u64>(&key(1))), (Some(3), Some(1)));
    let mut over = Tables::on(Arc::new(kept.clone()));
    over.delete(key(2));
    for number in 1..4 {
        over.change(key(number), add);
    }
    assert_eq!(over, numbered(&[(1, 2)]));
    assert_eq!((over.holds(&key(1)), over.holds(&key(2)), over.holds(&key(3))), (true, false, false));
    assert_eq!(kept, numbered(&[(1, 1), (2, 2)]));
}

#[test]
fn a_value_under_several_keys_is_changed_under_one() {
    let key = |number| Key::new(Table::Kind).text("s").number(number);
    let (mut tables, value) = (Tables::default(), Ready::new(&7u64));
    tables.put_ready(key(1), &value);
    tables.put_ready(key(2), &value);
    tables.change(key(1), |value: &mut u64| *value += 1);
    assert_eq!(tables, numbered(&[(1, 8), (2, 7)]));
    assert_eq!(tables.get::<u64>(&key(2)), Some(7));
}
