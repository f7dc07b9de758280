//! Completion of heads before a command, from the rows of clauses.

use std::fmt::Write as _;

use clap_complete::Shell;
use ftsh::cli::options;
use ftsh::cli::options::flags::{self, HEADS, INSTEAD_OF_SCRIPT};
use ftsh_syntax::backoff::PolicyKind;
use ftsh_syntax::clauses::{self, ClauseRow, ValueForm};
use ftsh_syntax::duration::Unit;
use ftsh_syntax::engine::EngineId;
use ftsh_syntax::vocabulary::is_loop;

/// Adds the heads to the completions of clap.
pub(super) fn add(shell: Shell, completions: &str) -> String {
    let begin = "_ftsh() {\n";
    match shell {
        Shell::Bash | Shell::Zsh => {
            let heads = if shell == Shell::Bash { BASH } else { ZSH };
            let words = words_function();
            let call = format!("{words}\n{}\n{begin}    _ftsh_heads && return 0\n", filled(heads));
            completions.replacen(begin, &call, 1)
        }
        _ => format!("{completions}{}{}", fish_words(), filled(FISH)),
    }
}

/// Words after the word `previous` in a head.
struct Continuation {
    head: &'static str,
    previous: &'static str,
    words: Vec<&'static str>,
}

/// Returns the rows of a head.
fn rows(head: &str) -> impl Iterator<Item = &'static ClauseRow> + Clone {
    clauses::rows(if head == "on" { "forall" } else { head })
}

/// Returns the continuations, except beginnings of clauses.
fn continuations() -> Vec<Continuation> {
    let mut continuations: Vec<Continuation> = Vec::new();
    let policies = || PolicyKind::ALL.into_iter().map(PolicyKind::name).collect::<Vec<_>>();
    let engines = || EngineId::BUILT_IN.into_iter().map(|it| it.row().name).collect::<Vec<_>>();
    for head in HEADS {
        let mut add = |previous: &'static str, words: Vec<&'static str>| {
            let known =
                continuations.iter_mut().find(|it| (it.head, it.previous) == (head, previous));
            match known {
                Some(known) => {
                    let new: Vec<_> =
                        words.into_iter().filter(|it| !known.words.contains(it)).collect();
                    known.words.extend(new);
                }
                None => continuations.push(Continuation { head, previous, words }),
            }
        };
        if is_loop(head) {
            add(head, vec!["in", "from"]);
            add("from", vec!["input"]);
            add("in", Vec::new());
        }
        if head == "on" || head == "forall" {
            add("on", engines());
        }
        if head == "limit" {
            add(head, Vec::new());
        }
        for row in rows(head) {
            // After `in` a list begins.
            for pair in row.words.windows(2).filter(|pair| pair[0] != "in") {
                add(pair[0], vec![pair[1]]);
            }
            let last = row.words[row.words.len() - 1];
            match (row.words, row.value) {
                (["backoff"], _) => add(last, policies()),
                (_, ValueForm::Nothing | ValueForm::Order) => {}
                _ => add(last, Vec::new()),
            }
        }
    }
    continuations
}

/// Returns the first words of clauses, the heads and `--`.
fn others(head: &str) -> Vec<&'static str> {
    let mut words: Vec<&'static str> = Vec::new();
    let clauses = rows(head).map(|row| row.words[0]);
    for word in clauses.chain((head == "forall").then_some("on")).chain(HEADS) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words.push("--");
    words
}

/// Returns the words after a number.
fn units() -> String {
    let is_usual = |name: &&str| *name == "ms" || name.ends_with('s') && name.len() > 4;
    Unit::names().filter(is_usual).chain(["times"]).collect::<Vec<_>>().join(" ")
}

/// Returns the function `_ftsh_words` of Bourne shells.
fn words_function() -> String {
    let mut text = String::from("# _ftsh_words HEAD WORD: the words that may follow\n");
    text += "_ftsh_words() {\n    case \"$1 $2\" in\n";
    // Writing to a string can't fail.
    for Continuation { head, previous, words } in continuations() {
        let _ = writeln!(
            text,
            "        \"{head} {previous}\") echo \"{}\"; return ;;",
            words.join(" ")
        );
    }
    let _ = writeln!(text, "        *\" \"[0-9]*) echo \"{}\" ;;\n    esac", units());
    text += "    case \"$1\" in\n";
    for head in HEADS {
        let _ = writeln!(text, "        {head}) echo \"{}\" ;;", others(head).join(" "));
    }
    text + "    esac\n}\n"
}

/// Returns the function `__ftsh_words` of fish.
fn fish_words() -> String {
    let mut text = String::from("\n# __ftsh_words HEAD WORD: the words that may follow\n");
    text += "function __ftsh_words\n    switch \"$argv[1] $argv[2]\"\n";
    let lines = |words: &str| format!("string split -n ' ' '{words}'");
    for Continuation { head, previous, words } in continuations() {
        let words = lines(&words.join(" "));
        let _ = writeln!(
            text,
            "        case '{head} {previous}'\n            {words}\n            return"
        );
    }
    text += "    end\n    if string match -qr '^[0-9]' -- $argv[2]\n";
    let _ = writeln!(text, "        {}\n    end\n    switch $argv[1]", lines(&units()));
    for head in HEADS {
        let words = lines(&others(head).join(" "));
        let _ = writeln!(text, "        case {head}\n            {words}");
    }
    text + "    end\nend\n"
}

/// Returns the names of options that always have a value.
fn valued() -> Vec<String> {
    let command = flags::command();
    let is_valued = |option: &&clap::Arg| {
        let is_optional = option.get_num_args().is_some_and(|number| number.min_values() == 0);
        option.get_action().takes_values() && !is_optional
    };
    command.get_arguments().filter(is_valued).flat_map(options::names).collect()
}

/// Fills the names of heads and options into a template.
fn filled(template: &str) -> String {
    let mut text = template.replace("@HEADS@", &HEADS.join(" "));
    for (mark, separator) in [("|@", "|"), (" @", " ")] {
        text = text.replace(&format!("@VALUED{mark}"), &valued().join(separator));
        text = text.replace(&format!("@INSTEAD{mark}"), &INSTEAD_OF_SCRIPT.join(separator));
    }
    text
}

const BASH: &str = r#"# Completes `ftsh try 3 times -- command`; fails for other command lines
_ftsh_heads() {
    local heads=" @HEADS@ " at=1 head= word cur="${COMP_WORDS[COMP_CWORD]}"
    while (( at < COMP_CWORD )); do
        case "${COMP_WORDS[at]}" in
            @INSTEAD|@) return 1 ;;
            @VALUED|@) (( at += 2 )) ;;
            =) (( at += 2 )) ;;
            -*) (( at += 1 )) ;;
            *) break ;;
        esac
    done
    if (( at > COMP_CWORD )) || (( at == COMP_CWORD )) && [[ $cur == -* ]]; then
        return 1
    fi
    if (( at == COMP_CWORD )); then
        compopt -o filenames 2> /dev/null
        local IFS=$'\n'
        COMPREPLY=($(IFS=' '; compgen -W "$heads" -- "$cur"; compgen -f -- "$cur"))
        return 0
    fi
    [[ $heads == *" ${COMP_WORDS[at]} "* ]] || return 1
    while (( at < COMP_CWORD )); do
        word=${COMP_WORDS[at]}
        if [[ $word == -- ]]; then
            if declare -F _comp_command_offset > /dev/null; then
                _comp_command_offset $(( at + 1 ))
            elif declare -F _command_offset > /dev/null; then
                _command_offset $(( at + 1 ))
            elif (( at + 1 == COMP_CWORD )); then
                COMPREPLY=($(compgen -c -- "$cur"))
            else
                COMPREPLY=()
            fi
            return 0
        fi
        if [[ $heads == *" $word "* && "$head $word" != "forall on" ]]; then
            head=$word
        fi
        (( at += 1 ))
    done
    # Where a value stands, there is nothing to offer, and no file either.
    compopt +o default +o bashdefault 2> /dev/null
    COMPREPLY=($(compgen -W "$(_ftsh_words "$head" "${COMP_WORDS[COMP_CWORD-1]}")" -- "$cur"))
    return 0
}
"#;

const ZSH: &str = r#"# Completes `ftsh try 3 times -- command`; fails for other command lines
_ftsh_heads() {
    local at=2 head= word
    local -a heads
    heads=(@HEADS@)
    while (( at < CURRENT )); do
        case "$words[at]" in
            (@INSTEAD|@) return 1 ;;
            (@VALUED|@) (( at += 2 )) ;;
            (-*) (( at += 1 )) ;;
            (*) break ;;
        esac
    done
    (( at > CURRENT )) && return 1
    if (( at == CURRENT )); then
        [[ "$words[at]" == -* ]] || compadd -- $heads
        # Options and files as well.
        return 1
    fi
    (( ${heads[(Ie)$words[at]]} )) || return 1
    while (( at < CURRENT )); do
        word=$words[at]
        if [[ "$word" == -- ]]; then
            words=("${(@)words[at+1,-1]}")
            (( CURRENT -= at ))
            _normal
            return 0
        fi
        if (( ${heads[(Ie)$word]} )) && [[ "$head $word" != "forall on" ]]; then
            head=$word
        fi
        (( at += 1 ))
    done
    compadd -- $(_ftsh_words "$head" "$words[CURRENT-1]")
    return 0
}
"#;

const FISH: &str = r#"
# __ftsh_place start|heads|command: succeeds in this part of the command line
function __ftsh_place
    set -l words (commandline -opc)
    set -e words[1]
    while set -q words[1]
        if contains -- $words[1] @INSTEAD @
            return 1
        else if contains -- $words[1] @VALUED @
            set -q words[2]; or return 1
            set -e words[1]
        else if not string match -q -- '-*' $words[1]
            break
        end
        set -e words[1]
    end
    if not set -q words[1]
        test $argv[1] = start
        return
    end
    contains -- $words[1] @HEADS@; or return 1
    if contains -- -- $words
        test $argv[1] = command
    else
        test $argv[1] = heads
    end
end

# Prints the words that may follow inside heads
function __ftsh_heads
    set -l words (commandline -opc)
    set -l head
    for word in $words
        if contains -- $word @HEADS@; and test "$head $word" != 'forall on'
            set head $word
        end
    end
    __ftsh_words $head $words[-1]
end

# Prints what may follow in the command after heads
function __ftsh_command
    set -l words (commandline -opc)
    set -l at (contains -i -- -- $words)
    set -e words[1..$at]
    complete -C (string join ' ' -- (string escape -- $words) (commandline -ct))
end

complete -c ftsh -n '__ftsh_place start' -a '@HEADS@' -d 'Head before a command'
complete -c ftsh -n '__ftsh_place heads' -f -a '(__ftsh_heads)'
complete -c ftsh -n '__ftsh_place command' -f -a '(__ftsh_command)'
"#;
