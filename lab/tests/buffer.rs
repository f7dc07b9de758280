//! A shared disk buffer.

use crate::support::{number, rows};

#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn collisions_fall_from_fixed_to_aloha_to_ethernet() {
    let args = ["buffer", "--producers", "2,20", "--buffer", "20", "--time", "3min"];
    let rows = rows("buffer", &args);
    let find = |name: &str, producers: f64| {
        let is = |row: &&serde_json::Value| {
            row["discipline"] == name && row["producers"].as_f64() == Some(producers)
        };
        rows.iter().find(is).expect("a row")
    };
    for name in ["fixed", "aloha", "ethernet"] {
        let few = find(name, 2.0);
        assert!(number(few, "collisions") < 0.05 * number(few, "productions"), "{few}");
        // All the while there is something to consume, at 1 MB/s.
        let many = find(name, 20.0);
        assert!(number(many, "consumed_mb") > 170.0, "{many}");
    }
    let collisions = |name| number(find(name, 20.0), "collisions");
    let [fixed, aloha, ethernet] = ["fixed", "aloha", "ethernet"].map(collisions);
    assert!(fixed > 10.0 * aloha && aloha > 2.0 * ethernet, "{fixed} {aloha} {ethernet}");
}
