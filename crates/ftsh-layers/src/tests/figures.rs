//! Figures, printed on request: `FTSH_TEST_FIGURES=1`.

use std::fs;
use std::time::{Duration, Instant};

use super::{begin, is_nobody, is_root, scratch, sh};

#[test]
fn figures_as_root() {
    if is_root() {
        print_figures("root");
    }
}

#[test]
fn figures_as_nobody() {
    if is_nobody("figures::figures_as_nobody") {
        print_figures("nobody");
    }
}

fn print_figures(user: &str) {
    if std::env::var_os("FTSH_TEST_FIGURES").is_none() {
        return;
    }
    let scratch = scratch();
    let directory = scratch.path().join("it");
    fs::create_dir(&directory).expect("a directory");
    let (mut begins, mut discards) = (Vec::new(), Vec::new());
    for _ in 0..200 {
        let start = Instant::now();
        let Some(attempt) = begin(&[&directory]) else { return };
        begins.push(start.elapsed());
        let start = Instant::now();
        attempt.discard().expect("nothing");
        discards.push(start.elapsed());
    }
    println!("{user}: begin {:?}, discard {:?}", median(begins), median(discards));
    let many = "mkdir new; i=0; while [ $i -lt 5000 ]; do echo $i > WHERE$i; i=$((i+1)); done";
    for (name, place) in [("one new directory", "new/"), ("an old directory", "")] {
        let mut commits = Vec::new();
        for _ in 0..5 {
            let Some(attempt) = begin(&[&directory]) else { return };
            assert_eq!(sh(&attempt, &directory, &many.replace("WHERE", place)), 0);
            let start = Instant::now();
            let _ = attempt.commit().expect("a commit");
            commits.push(start.elapsed());
            fs::remove_dir_all(&directory).expect("a directory");
            fs::create_dir(&directory).expect("a directory");
        }
        println!("{user}: commit of 5,000 files in {name}: {:?}", median(commits));
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
