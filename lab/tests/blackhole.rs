//! A black hole among replicas.

use crate::support::{number, rows};

#[test]
fn aloha_stalls_for_a_minute_where_ethernet_defers_for_five_seconds() {
    let rows = rows("blackhole", &["blackhole", "--trials", "10"]);
    let [aloha, ethernet] = &rows[..] else { panic!("{rows:?}") };
    let each = |row, time, count| number(row, time) / number(row, count);
    assert!((each(aloha, "stalled_s", "stalls") - 60.0).abs() < 0.1, "{aloha}");
    assert!((each(ethernet, "deferred_s", "deferrals") - 5.0).abs() < 0.1, "{ethernet}");
    assert!(number(ethernet, "stalls") < 0.1 * number(aloha, "stalls"), "{ethernet}");
    assert!(number(ethernet, "transfers") > 1.4 * number(aloha, "transfers"), "{ethernet}");
}

#[test]
fn without_a_hole_no_client_stalls() {
    let rows = rows("blackhole", &["blackhole", "--holes", "0", "--trials", "3"]);
    for row in &rows {
        assert_eq!(row["stalls"].as_f64(), Some(0.0), "{row}");
        assert!(number(row, "transfers") > 150.0, "{row}");
    }
}
