//! Input of resumed runs: files are read on, pipes are gone.

use crate::resuming::{VICTIMS, Victim, again, killed, over, recorded};

#[test]
fn standard_input_that_is_a_file_is_read_on() {
    let text = "read one\ntry 2 times every 1 ms\nSTAYS\nend\nread two\necho \"$one $two\"";
    let finished = killed(recorded(text).stdin("first\nsecond\nthird\n"), Victim::Both);
    over(again(finished).stdin("first\nsecond\nthird\n").stdout("first second\n").success());
}

#[test]
fn words_of_a_file_come_once() {
    let text = "for word from input
            echo $word >> out
            try 2 times every 1 ms
                STAYS
            end
            AFTER
        end
        cat >> out";
    for after in ["", "if $word .eq. b; break; end"] {
        let run = recorded(&text.replace("AFTER", after)).stdin("a\nb\nc\nd\n");
        let finished = over(again(killed(run, Victim::Both)).stdin("a\nb\nc\nd\n").success());
        assert_eq!(finished.read("out"), "a\nb\nc\nd\n", "{after}");
    }
}

#[test]
fn input_between_atomic_attempts_is_not_read_again() {
    let fails = "try 1 time atomic
            read line
            failure \"$line is of no use\"
        catch
        end\n";
    let succeeds = "try atomic\nread line\nend\n";
    let goes_on = "try 2 times every 1 ms\nSTAYS\nend\nread line\necho $line";
    for before in [format!("{fails}read line\n"), format!("{succeeds}{fails}")] {
        let run = recorded(&format!("{before}{goes_on}")).stdin("1\n2\n3\n");
        let again = again(killed(run, Victim::Both)).stdin("1\n2\n3\n");
        over(again.stdout("2\n").success());
    }
}

#[test]
fn a_pipe_is_gone_and_never_looks_like_an_end() {
    // The shell reads, because it cannot see the writer's end when both are killed.
    let text = "function drain
            while .succeeds. (read line)
            end
            echo whole >> out
        end
        try 2 times every 1 ms
            echo attempt >> out
            sh -c 'echo a; test -e ready || { echo > ready; exec sleep 1000; }' | drain
        end";
    for victim in VICTIMS {
        let finished = over(again(killed(recorded(text), victim)).success());
        assert_eq!(finished.read("out"), "attempt\nattempt\nwhole\n", "{victim:?}");
    }
}
