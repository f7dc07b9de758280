//! Pictures in files.

use crate::support::{SMALL_OVERLOAD, printed};

#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn pictures_are_drawn_as_svg_and_png() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, beginning) in [("a.svg", &b"<svg"[..]), ("a.png", b"\x89PNG")] {
        let path = folder.path().join(name);
        let plot = path.to_str().expect("text");
        printed(&["delays", "full", "--samples", "10", "--plot", plot]);
        let bytes = std::fs::read(&path).expect("a picture");
        assert!(bytes.starts_with(beginning), "{name}");
    }
    let svg = std::fs::read_to_string(folder.path().join("a.svg")).expect("text");
    for words in ["full from 1 s to 1 min by 2", "delay, s", "retry", "median"] {
        assert!(svg.contains(words), "no {words}");
    }
}

#[test]
fn a_picture_shows_shares_by_a_deadline_for_any_number_of_threads() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.svg");
    let plot = ["--plot", path.to_str().expect("text")];
    let draw = |more: &[&str]| {
        let args = ["--deadline", "1min", "--trials", "2", "--policy", "full from 1 s"];
        let text = printed(&[&SMALL_OVERLOAD[..], &args, more].concat());
        (text, std::fs::read_to_string(&path).unwrap_or_default())
    };
    let (table, nothing) = draw(&[]);
    assert_eq!(nothing, "");
    let one = draw(&[&plot[..], &["--threads", "1"]].concat());
    assert_eq!(one.0, table, "a picture doesn't change what is printed");
    for words in ["Answers by a deadline of 1 min", "full, without"] {
        assert!(one.1.contains(words), "no {words}");
    }
    assert_eq!(one, draw(&[&plot[..], &["--threads", "3"]].concat()));
    assert_ne!(one.1, draw(&[&plot[..], &["--seed", "2"]].concat()).1);
}

#[test]
fn a_shorter_picture_replaces_a_longer_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.svg");
    std::fs::write(&path, "x".repeat(1_000_000)).expect("a file");
    printed(&["delays", "fixed", "--samples", "1", "--plot", path.to_str().expect("text")]);
    let svg = std::fs::read_to_string(&path).expect("text");
    assert!(svg.trim_end().ends_with("</svg>"));
}

#[test]
fn figures_of_articles_name_source_command_and_seed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.svg");
    let figures = [
        ("brooker", "Brooker, Exponential Backoff", "Figure 8: time with three kinds of jitter"),
        ("revisited", "Exponential back-off, revisited, 2024", "Figure 4: all three"),
        ("overload", "Smirnov, Exponential", "Figure 2: delays, logarithmic scale"),
    ];
    for (article, source, figure) in figures {
        let plot = path.to_str().expect("text");
        printed(&["paper", article, "--trials", "1", "--plot", plot, "--seed=7", "--threads", "2"]);
        let svg = std::fs::read_to_string(&path).expect("text");
        let command = format!("ftsh-lab paper {article} --trials 1 --seed 7\n");
        for words in [source, figure, &command] {
            assert!(svg.contains(words), "no {words}");
        }
    }
}

#[test]
fn a_line_under_another_is_wider() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.svg");
    let plot = ["--plot", path.to_str().expect("text"), "--samples", "1"];
    let wide = |policies: &[&str]| {
        printed(&[&["delays"], policies, &plot].concat());
        let svg = std::fs::read_to_string(&path).expect("text");
        svg.lines().any(|line| line.contains("#0072B2") && line.contains("stroke-width=\"8\""))
    };
    assert!(wide(&["fixed from 1 s", "fixed from 1001 ms"]));
    assert!(!wide(&["fixed from 1 s", "fixed from 2 s"]));
}
