//! Programs of bash and their translations, as `docs/start/from-sh.md` has them, print the same.

use std::fs;

use crate::support::Ftsh;
use crate::support::run::Finished;
use crate::support::side_by_side::none;

/// Arguments of each program.
const ARGUMENTS: [&str; 5] = ["-v", "-o", "out", "one", "two words"];

/// A program in bash, and its translation.
struct Pair {
    theirs: String,
    ours: String,
}

/// Returns the rows of the tables with whole programs.
fn rows(text: &str) -> Vec<Pair> {
    let tables = text.split("| in bash | here |\n|---|---|\n").skip(1);
    let rows = tables.flat_map(|table| table.lines().take_while(|line| line.starts_with('|')));
    rows.map(|row| {
        let (theirs, ours) = row.split_once("` | `").expect("two cells of code");
        let code = |cell: &str| cell.trim_matches(['|', ' ', '`']).replace("\\|", "|") + "\n";
        Pair { theirs: code(theirs), ours: code(ours) }
    })
    .collect()
}

/// Returns the blocks of bash that a block of ftsh follows.
fn blocks(text: &str) -> Vec<Pair> {
    let pair = |block: &str| {
        let (theirs, rest) = block.split_once("```\n\n```ftsh\n")?;
        let ours = rest.split("```\n").next()?;
        Some(Pair { theirs: theirs.to_owned(), ours: ours.to_owned() })
    };
    text.split("```bash\n").skip(1).filter_map(pair).collect()
}

fn run(program: &str, wrapper: &str) -> Finished {
    let run = Ftsh::new().file("a.txt", "one\ntwo words\n").file("b c.txt", "blank\n");
    // The first argument is the shell under test.
    run.file("program", program).through(["sh", "-c", wrapper, "sh"]).args(ARGUMENTS).run()
}

#[test]
fn programs_of_bash_print_the_same_in_their_translation() {
    let text = fs::read_to_string("docs/start/from-sh.md").expect("a document");
    let mut pairs = rows(&text);
    assert!(pairs.len() >= 40, "{} rows", pairs.len());
    pairs.extend(blocks(&text));
    none(pairs, |Pair { theirs, ours }| {
        let bash = run(&theirs, "shift; exec bash program \"$@\"");
        let ftsh = run(&ours, "shell=$1; shift; exec \"$shell\" program \"$@\"");
        let end = |finished: &Finished| (finished.text(), finished.status.and_then(|it| it.code()));
        let checked = Ftsh::script(&ours).options(["-n"]).run();
        let is_same = end(&bash) == end(&ftsh) && checked.errors().is_empty();
        (!is_same).then(|| {
            format!("{theirs}{}\n{ours}{}\n{}", bash.story(), ftsh.story(), checked.errors())
        })
    });
}
