//! Words of a command line with a head before the command: each is itself, and no sign of the language.

use crate::support::Ftsh;

/// Words that a list or a command of the language would read as more than themselves.
const SIGNS: [&str; 24] = [
    "+", "-", "*", "/", "%", "--x", "1.", ".to.", "1..3", "$x", "a=b", "end", "or", "at", "in",
    "a;b", "#a", "x.(y)", "(", "!", "at most", "&&", "\n", "\\",
];

#[test]
fn words_of_lists_and_commands_are_no_signs_of_the_language() {
    let words: Vec<_> = SIGNS.iter().flat_map(|sign| ["1", sign, "$n"]).collect();
    let expected = words.join("|") + "|";
    let list =
        [&["forall", "in"], &words[..], &["at", "most", "1", "--", "printf", "%s|"]].concat();
    Ftsh::new().args(list).stdout(&expected).success();
    Ftsh::new()
        .args(["try", "2", "times", "--", "printf", "%s|"])
        .args(&words)
        .stdout(&expected)
        .success();
    for sign in SIGNS {
        let name = format!("./{}", sign.replace('/', "d"));
        for name in [&name, &name[2..]] {
            let run = Ftsh::new().args(["limit", "1", "min", "--", name, "1", sign, "2"]);
            let run = run.program(name.trim_start_matches("./"), "#!/bin/sh\necho $#\n");
            run.env("PATH", ".:/usr/bin:/bin").stdout("3\n").success();
        }
    }
}

#[test]
fn words_inside_a_word_are_no_head() {
    for (head, word) in [("try", "3 times -- echo b"), ("try", "3 times #"), ("limit", "1 min; cd")]
    {
        let finished = Ftsh::new().args([head, word, "--", "touch", "ran"]).failure(2);
        assert!(finished.errors().contains("this is no head"), "{}", finished.errors());
    }
}

#[test]
fn a_limit_that_looks_like_a_delay_is_warned_of() {
    let words = "try 2 times backoff none 1 min -- true".split(' ');
    let errors = Ftsh::new().args(words).success().errors();
    assert!(errors.contains("not a delay") && errors.contains("[limit-after-policy]"), "{errors}");
    let words = "try 1 min or 2 times backoff none -- true".split(' ');
    assert_eq!(Ftsh::new().args(words).success().errors(), "");
}

#[test]
fn words_of_scripts_are_no_heads() {
    for (line, expected) in [
        (
            "for x in a b -- touch ran",
            "a word of scripts: `ftsh -c 'for x in a b -- COMMAND'`, or `ftsh forall x in a b at mo",
        ),
        ("while true -- touch ran", "scripts: `ftsh -c 'while COMMAND; COMMAND; end'` [script-"),
        ("in / -- touch ran", "scripts: `ftsh -c 'in DIR -- COMMAND'` [script-file]"),
        ("function f -- touch ran", "`function` is a word of scripts: `ftsh -c 'SCRIPT'` [script"),
        ("limit 1s touch 3", "no `--` before the command: write `ftsh limit 1s -- touch 3`"),
        ("limit 1h30m touch ran", "no `--` before the command: write `ftsh limit 1h30m -- touch r"),
        ("limit 1s touch -- touch ran", "limit 1s «touch»: expected a duration, like `5 minutes`;"),
        (
            "forall n in 1 .to. 3 -- touch ran",
            "forall n in 1 «.to.» 3: a range is for scripts: `ftsh -c 'forall n in 1 .to. 3 -- COM",
        ),
        (
            "try 2 times forany in x -1 .to. 3 y -- touch ran",
            "«.to.» 3 y: a range is for scripts: `",
        ),
    ] {
        let refused = Ftsh::new().args(line.split(' ')).failure(2);
        let errors = refused.errors();
        assert!(errors.contains(expected) && errors.lines().count() == 1, "{line}\n{errors}");
        assert!(!refused.directory.path().join("ran").exists(), "{line}");
    }
}

#[test]
fn a_pipeline_in_one_word_is_explained_before_the_attempts() {
    let run = Ftsh::new().args(["try", "2", "times", "backoff", "none", "--", "a | b"]);
    let errors = run.failure(127).errors();
    assert!(errors.contains("write `sh -c 'a | b'`, 2 attempts in "), "{errors}");
}

#[test]
fn files_of_branches_are_words_with_marks() {
    let words = ["forall", "in", "a", "b c", "takes", "$x", "gives", "{}.out", "--"];
    let run = || Ftsh::new().args(words).args(["touch", "{}.out"]);
    run().file("$x", "").success();
    let errors = run().failure(1).errors();
    assert!(errors.contains("the branch cannot take `$x`"), "{errors}");
    let printed = |words: &[&str]| Ftsh::new().arg("-p").args(words).success().text();
    assert_eq!(
        printed(&["on", "ssh", "h1", "h2", "takes", "a b", "in", "gives", "out", "--", "./work"]),
        "forall job in ./work on ssh 'h1 h2' takes 'a b' 'in' gives 'out' -- ./work\n"
    );
    assert_eq!(
        printed(&["forall", "n", "in", "takes", "gives", "{n}", "keep", "going", "--", "./work"]),
        "forall n in takes keep going gives \"$n\" -- n=\"$n\" ./work \"$n\"\n"
    );
    assert_eq!(
        printed(&["forany", "in", "it", "takes", "two", "--", "./work"]),
        "forany word in it takes two -- ./work \"$word\" < /dev/null\n"
    );
}
