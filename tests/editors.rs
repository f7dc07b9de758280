//! Comparison of the editors' grammars with the highlighter of the prompt. Grammars of editors that
//! are not installed are skipped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ftsh_ide::lexemes::TokenPart;
use ftsh_ide::tokens::{Role, scan};
use ftsh_syntax::parse::parse;
use ftsh_syntax::vocabulary::OPERATORS;

use crate::support::FTSH;
use crate::support::skipped::skipped;

/// Any grammar may do as it likes: blanks, and what is behind the name in `${name:-word}`.
const ANY: u8 = b' ';
/// Lines of a here-document: text, or a variable in it.
const DOCUMENT: u8 = b'D';
/// Letter of text that a grammar marks as an error.
const ERROR: u8 = b'!';

/// A letter for each byte: `K`eyword, c`L`ause, `O`perator, `S`tring, `V`ariable, `C`omment, `D`ocument, or `.`.
fn classes(text: &str) -> Vec<u8> {
    let mut classes = vec![b'.'; text.len()];
    let mut before = "";
    for token in scan(text).all {
        let class = match token.role {
            Role::Keyword => b'K',
            Role::Clause => b'L',
            Role::Operator => b'O',
            Role::Comment => b'C',
            Role::Document => DOCUMENT,
            Role::Command | Role::Assignment(_) | Role::Word | Role::Symbol | Role::Separator => {
                b'.'
            }
        };
        classes[token.range.clone()].fill(class);
        if let Role::Assignment(name) = token.role {
            let value = token.range.start + name + 1..token.range.end;
            if OPERATORS.contains(&&text[value.clone()]) {
                classes[value].fill(b'O');
            }
        }
        for (range, part) in token.parts {
            match part {
                TokenPart::Quoted(_) => classes[range].fill(b'S'),
                TokenPart::Variable => {
                    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                    let rest = text[range.clone()].trim_start_matches(['$', '{', '(']);
                    let name =
                        range.end - rest.len() + rest.find(|c| !is_name(c)).unwrap_or(rest.len());
                    classes[range.clone()].fill(ANY);
                    classes[range.start..name.max(range.start + 2)].fill(b'V');
                }
            }
        }
        // The word that ends a here-document.
        if before.ends_with("<<") || before.ends_with("<<-") {
            classes[token.range.clone()].fill(ANY);
        }
        before = &text[token.range];
    }
    for (at, byte) in text.bytes().enumerate() {
        if byte.is_ascii_whitespace() || byte == b'\\' {
            classes[at] = ANY;
        }
    }
    classes
}

/// Returns the places where a grammar differs: line, column, the line, and the two letters.
fn differences(text: &str, theirs: &[u8]) -> Vec<String> {
    let ours = classes(text);
    let mut differences = Vec::new();
    for (at, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        let is_same = match *ours {
            _ if *theirs == ERROR => false,
            ANY => true,
            DOCUMENT => matches!(theirs, b'S' | b'V'),
            ours => ours == *theirs,
        };
        if !is_same {
            let start =
                text.as_bytes()[..at].iter().rposition(|it| *it == b'\n').map_or(0, |end| end + 1);
            let line = text.as_bytes()[..at].split(|it| *it == b'\n').count();
            let shown = text[start..].lines().next().unwrap_or_default();
            let (ours, theirs) = (char::from(*ours), char::from(*theirs));
            differences
                .push(format!("{line}:{}: `{shown}` is {theirs}, not {ours}", at - start + 1));
        }
    }
    if ours.len() != theirs.len() {
        differences.push(format!("{} letters for {} bytes", theirs.len(), ours.len()));
    }
    differences
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every script of the project.
fn scripts() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> =
        ["tests/scripts", "examples", "lab/scripts"].map(|it| root().join(it)).to_vec();
    let mut scripts = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "ftsh")
                && fs::read_to_string(&path).is_ok()
            {
                scripts.push(path);
            }
        }
    }
    scripts
}

/// Variable that makes a missing editor a failure.
const REQUIRED: &str = "FTSH_TEST_EDITORS";

/// Has a command tell letters, if it can: it knows the list of scripts, where to write, and where else there is place
/// by variables. The lines in `except` it may colour otherwise.
fn check(mut command: Command, scripts: &[PathBuf], except: &[&str], lacks: &str) {
    let place = tempfile::tempdir().expect("a directory");
    let (list, letters) = (place.path().join("scripts"), place.path().join("letters"));
    command.env("PLACE", place.path());
    let names: Vec<_> = scripts.iter().map(|path| path.display().to_string()).collect();
    fs::write(&list, names.join("\n") + "\n").expect("a list");
    command.env("SCRIPTS", &list).env("LETTERS", &letters);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let is_run = command.status().is_ok();
    let Some(letters) = fs::read_to_string(letters).ok().filter(|_| is_run) else {
        assert!(std::env::var_os(REQUIRED).is_none(), "there is no {lacks}");
        return skipped(lacks);
    };
    let mut lines = letters.lines();
    let mut problems = Vec::new();
    let mut count = 0;
    while let (Some(path), Some(theirs)) = (lines.next(), lines.next()) {
        let text = fs::read_to_string(path).unwrap_or_else(|_| panic!("{letters}"));
        // The first tells it.
        let mut found = differences(&text, theirs.as_bytes()).into_iter();
        let first = found.find(|it| !except.iter().any(|line| it.contains(line)));
        problems.extend(first.map(|it| format!("{path}:{it}")));
        count += 1;
    }
    assert_eq!(count, scripts.len());
    super::tidy::assert_none(&problems);
}

#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn vim_colours_scripts_as_the_prompt_does() {
    let mut vim = Command::new("vim");
    vim.args(["-es", "-N", "-u", "NONE", "-i", "NONE", "-S"])
        .arg(root().join("editors/check/letters.vim"))
        .env("FTSH_VIM", root().join("editors/vim"));
    check(vim, &scripts(), &[], "vim with colours");
}

#[test]
fn vim_finds_the_places_of_errors_and_warnings() {
    let place = tempfile::tempdir().expect("a directory");
    let (script, errors) = (place.path().join("script.ftsh"), place.path().join("errors"));
    let folder = FTSH.rsplit_once('/').expect("a path").0;
    for (text, start) in [("echo a\n  (cd /tmp)\n", "2:3 "), ("exit 0\necho a\n", "2:1 ")] {
        fs::write(&script, text).expect("a script");
        let mut vim = Command::new("vim");
        vim.args(["-es", "-N", "-u", "NONE", "-i", "NONE", "-S"])
            .arg(root().join("editors/check/quickfix.vim"))
            .env("FTSH_VIM", root().join("editors/vim"))
            .env("PATH", format!("{folder}:{}", std::env::var("PATH").expect("PATH")))
            .env("SCRIPT", &script)
            .env("ERRORS", &errors);
        vim.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let is_run = vim.status().is_ok();
        let Some(found) = fs::read_to_string(&errors).ok().filter(|_| is_run) else {
            assert!(std::env::var_os(REQUIRED).is_none(), "there is no vim");
            return skipped("vim");
        };
        assert!(found.starts_with(start) && found.lines().count() == 1, "{found}");
    }
}

#[test]
fn vscode_colours_scripts_as_the_prompt_does() {
    let mut node = Command::new("node");
    node.arg(root().join("editors/check/letters.js"))
        .env("GRAMMAR", root().join("editors/vscode/syntaxes/ftsh.tmLanguage.json"));
    check(node, &scripts(), &[], "node with vscode-textmate and vscode-oniguruma along NODE_PATH");
}

#[test]
fn highlight_js_colors_scripts_as_the_prompt_does() {
    let mut node = Command::new("node");
    node.arg(root().join("editors/check/spans.js"))
        .env("GRAMMAR", root().join("editors/highlightjs/ftsh.js"));
    let except = ["`for x in for in end`", "`echo h;# i`"];
    check(node, &scripts(), &except, "node with highlight.js along NODE_PATH");
}

/// Lines that tree-sitter's grammar colors better than the prompt, or cannot know.
const DIFFERENT: [&str; 12] = [
    // Symbols in the end of a range are words for this grammar.
    "`for n in 1 .to. count($dumps) - $keep`",
    // An expression after `export` is a command for this grammar.
    "export total=$double + 1`",
    "export no=.not. true`",
    "`for x in for in end`",
    "while $error_kind .ne. memory`",
    // A variable in the default of another.
    r#" "${unset:-${other}}"`"#,
    "`echo ${x:-${broken()}}`",
    "`echo ${unset:-${upper(default)}}",
    // Functions and programs called like keywords or symbols.
    "`accept lp`",
    "`args 9 -n`",
    "`x=1 + 2 3`",
    "`y=!(a)`",
];

/// Those that ftsh refuses it may refuse or not.
#[test]
fn tree_sitter_parses_and_colours_scripts_as_the_prompt_does() {
    let mut node = Command::new("node");
    node.arg(root().join("editors/check/captures.js"))
        .env("GRAMMAR", root().join("editors/tree-sitter"));
    let mut scripts = scripts();
    // Functions called `case` and `limit`, limits without `or` between them, and symbols in the ends
    // of ranges.
    let except = [
        "groups/own_case",
        "groups/own_in",
        "attempts/limit",
        "attempts/spellings_of_2003",
        "loops/range_calculations",
    ];
    scripts.retain(|path| !except.iter().any(|it| path.with_extension("").ends_with(it)));
    scripts.retain(|path| parse("script", &fs::read_to_string(path).expect("a script")).is_ok());
    check(node, &scripts, &DIFFERENT, "node with tree-sitter and a compiler of C along PATH");
}

#[test]
fn differences_are_found() {
    assert_eq!(differences("try # é", b"KKK CCCC"), [""; 0]);
    assert_eq!(differences("try\nend", b"KKK K.K").len(), 1);
    assert_eq!(differences("a b", b".!.").len(), 1);
    assert_eq!(differences("a", b"..").len(), 1);
}
