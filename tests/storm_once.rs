//! `once in FILE`, while the shell is killed repeatedly at random moments. A recorded word never runs
//! again, no record is lost, and in the end each word is recorded once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use crate::storm::killed;
use crate::support::Ftsh;
use crate::support::rounds;
use crate::support::run::Finished;

const WORDS: usize = 150;

/// Time limit of the first kill after the start, and its increase with each kill.
const LONGEST: Duration = Duration::from_millis(80);
const MORE: Duration = Duration::from_millis(15);

/// Minimum number of kills in each round.
const LEAST: usize = 4;

/// Command that appends its word to a file. Each seventh word fails the first time.
const STEP: &str = "#!/bin/sh
echo $1 >> effects
if test $(($1 % 7)) = 0 && ! test -e failed.$1; then
    echo > failed.$1
    exit 1
fi
sleep 0.01
";

const SCRIPT: &str = "
forall word in 1 .to. 150 at most 5 keep going once in done
    step $word
end
";

#[test]
fn recorded_words_never_run_again_despite_kills_of_the_shell() {
    rounds::rounds(&["0"], |round| {
        let kills = storm(u64::try_from(round.number).expect("small"));
        eprintln!("storm of `once in` {}: {kills} kills", round.number);
        assert!(kills >= LEAST, "{kills} kills are no storm");
    });
}

/// Runs the script until every word is recorded, with choices determined by a number. Returns the
/// number of kills.
fn storm(number: u64) -> usize {
    let mut random = ChaCha8Rng::seed_from_u64(number);
    let mut run = Ftsh::script(SCRIPT).program("bin/step", STEP);
    let mut before = Snapshot::default();
    let mut kills = 0;
    let finished = loop {
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", run.path("bin").display());
        let longest = LONGEST + MORE * u32::try_from(kills).expect("few kills");
        let finished = killed(run.env("PATH", path), longest, &mut random);
        finished.check_health();
        let now = Snapshot::of(finished.directory.path());
        now.follows(&before);
        before = now;
        match finished.status.and_then(|status| status.code()) {
            Some(0) => break finished,
            // Words that fail the first time run again.
            Some(1) => {}
            _ => kills += 1,
        }
        run = Ftsh::after(finished).arg("script.ftsh");
    };
    check(&finished, &before);
    kills
}

/// Files of the run between two starts.
#[derive(Default)]
struct Snapshot {
    /// Recorded words in order.
    recorded: Vec<String>,
    /// Number of times that each word ran.
    ran: BTreeMap<String, usize>,
}

impl Snapshot {
    fn of(directory: &Path) -> Self {
        let text = fs::read_to_string(directory.join("done")).unwrap_or_default();
        // A killed writer may leave a part of a line.
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        let recorded = whole.lines().map(str::to_owned).collect();
        let mut ran = BTreeMap::new();
        let effects = fs::read_to_string(directory.join("effects")).unwrap_or_default();
        for word in effects.lines() {
            *ran.entry(word.to_owned()).or_default() += 1;
        }
        Self { recorded, ran }
    }

    /// Checks that records stay, and that no word recorded before has run since.
    fn follows(&self, before: &Self) {
        assert!(
            self.recorded.starts_with(&before.recorded),
            "records are lost: {:?}, then {:?}",
            before.recorded,
            self.recorded
        );
        for word in &before.recorded {
            let (then, now) = (before.ran.get(word), self.ran.get(word));
            assert_eq!(then, now, "the recorded word {word} has run again");
        }
    }
}

/// Checks that each word is recorded once, and ran.
fn check(finished: &Finished, last: &Snapshot) {
    let words: BTreeSet<String> = (1..=WORDS).map(|word| word.to_string()).collect();
    let mut recorded: Vec<&String> =
        last.recorded.iter().filter(|line| words.contains(*line)).collect();
    recorded.sort();
    let all: Vec<&String> = words.iter().collect();
    assert_eq!(recorded, all, "{:?}", finished.errors());
    assert!(words.iter().all(|word| last.ran.contains_key(word)), "{:?}", last.ran);
}
