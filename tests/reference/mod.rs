//! Comparison of the shell with a second, obvious evaluator on random programs: the same output in
//! the same order, and the same status.
//!
//! `FTSH_REFERENCE_PROGRAMS` sets the number of programs, and `FTSH_REFERENCE_SEED` the first seed.

mod model;
mod program;
mod text;
mod tree;
mod values;

use ftsh_syntax::clauses::ROWS;

use super::support::Ftsh;
use program::{FILE, Program, USED};

const ARGUMENTS: [&str; 2] = ["one", "two words"];

#[test]
fn programs_match_the_model() {
    let variable = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |value| value.parse().expect("a number"))
    };
    let first = variable("FTSH_REFERENCE_SEED", 1);
    let mut left = variable("FTSH_REFERENCE_PROGRAMS", 60);
    for seed in first.. {
        if left == 0 {
            break;
        }
        let program = Program::random(seed);
        let expected = model::run(&program.script, &program.functions, &ARGUMENTS);
        let Some((output, status)) = expected else { continue };
        left -= 1;
        let text = program.text();
        let used = program.used_text();
        let finished = Ftsh::script(&text).file(USED, &used).file(FILE, "").args(ARGUMENTS).run();
        let code = finished.status.and_then(|status| status.code());
        assert!(
            finished.text() == output && code == Some(status.into()),
            "FTSH_REFERENCE_SEED={seed}\n{text}\n{USED}:\n{used}\nthe model: status {status}\n{output}\n\
             the shell: {}",
            finished.story()
        );
    }
}

#[test]
fn the_model_knows_every_clause() {
    let texts: Vec<_> = (1..1000).map(|seed| Program::random(seed).text()).collect();
    for row in ROWS.iter().filter(|row| row.head != "channel") {
        let words = row.words.join(" ");
        let words_alone = format!(" {words} ");
        let has =
            |line: &str| line.starts_with(row.head) && format!("{line} ").contains(&words_alone);
        let is_known = texts.iter().any(|text| text.lines().any(has));
        assert!(is_known, "`{}` of `{}`", words, row.head);
    }
}
