use super::*;
use crate::lsp::rename::rename;
use ftsh_machine::builtins;
use ftsh_syntax::vocabulary::{ALONE, FORMS};

/// Returns the text with the name at the cursor changed, or the reason against it.
fn renamed(text: &str, new: &str) -> String {
    let (mut document, place) = cursor(text);
    let is_outside = |name: &str| variables().contains_key(name);
    let changes = match rename(&document, place, new, &is_outside) {
        Ok(edit) => edit.changes.unwrap_or_default().into_values().flatten().collect::<Vec<_>>(),
        Err(reason) => return format!("no: {reason}"),
    };
    // From the last, so that none is moved by another.
    let changes = changes.into_iter().rev().map(|it| lsp_types::TextDocumentContentChangeEvent {
        range: Some(it.range),
        range_length: None,
        text: it.new_text,
    });
    document.change(2, changes.collect());
    document.text().to_owned()
}

#[test]
fn operands_of_the_script_are_renamed_but_no_options() {
    insta::assert_snapshot!(renamed("args url -n|--dry-run\necho $u‸rl $dry_run", "address"), @r"
    args address -n|--dry-run
    echo $address $dry_run
    ");
    insta::assert_snapshot!(renamed("args url -n|--dry-run\necho $url $dry‸_run", "try_it"), @"no: callers of the script use its option `-n`");
}

#[test]
fn variables_are_renamed_everywhere() {
    let text = "echo 🦀é; v=1\nlocal_v=$v\nread v w\nfor x in $v ${v} \"$(v)é${v}\"\n  cat -> v -< v <<E\n🦀 $v\nE\nend\ntry for $v seconds while $‸v .eq. 2\n  a\nend > $v";
    insta::assert_snapshot!(renamed(text, "number"), @r#"
    echo 🦀é; number=1
    local_v=$number
    read number w
    for x in $number ${number} "$(number)é${number}"
      cat -> number -< number <<E
    🦀 $number
    E
    end
    try for $number seconds while $number .eq. 2
      a
    end > $number
    "#);
    insta::assert_snapshot!(renamed("function f\n  local \\\n  n‸=$1\n  return $n .add. length($n)\nend\nx=f(1)", "m"), @r"
    function f
      local \
      m=$1
      return $m .add. length($m)
    end
    x=f(1)
    ");
    insta::assert_snapshot!(renamed("for a‸ in 1 2; echo $a; end | sort", "b"), @"for b in 1 2; echo $b; end | sort");
    assert_eq!(renamed("v=1; echo $‸v", "v"), "v=1; echo $v");
}

#[test]
fn functions_are_renamed_everywhere() {
    let text = "‸f a\nfunction f\n  return $1\nend\nx=f(f(2)) .add. 1\n\"f\" f | f\nif .succeeds. (f f)\n  forall y in f lines(f(1)); f; end\nend";
    insta::assert_snapshot!(renamed(text, "get-it"), @r#"
    get-it a
    function get-it
      return $1
    end
    x=get-it(get-it(2)) .add. 1
    get-it f | get-it
    if .succeeds. (get-it f)
      forall y in f lines(get-it(1)); get-it; end
    end
    "#);
}

#[test]
fn renamings_with_another_meaning_are_refused() {
    let refused = |text: &str, new: &str| {
        let renamed = renamed(text, new);
        assert!(renamed.starts_with("no: "), "{text}: {renamed}");
        renamed
    };
    let all = [
        // Names that others know.
        ("export v; v‸=1", "w"),
        ("v‸=1; v=2 env", "w"),
        ("MAIL_TO‸=me", "w"),
        ("FTSH_PROMPT‸=x", "w"),
        ("try; echo $att‸empt; end", "n"),
        ("echo $v‸", "w"),
        ("channel m‸ at most 1\ntry through m\n a\nend", "n"),
        ("w‸get x", "curl"),
        ("v‸=1\nsource other", "w"),
        ("function f‸\n a\nend", "g"),
        ("#!/usr/bin/ftsh --redact v\nv‸=1", "w"),
        // Names that are computed.
        ("v‸=1; echo a -> $v", "w"),
        ("v‸=1; read a$v", "w"),
        ("function f‸\n a\nend\n$x 1", "g"),
        // Names that are taken, or can't be.
        ("v‸=1; w=2", "w"),
        ("v‸=1", "HOME"),
        ("v‸=1", "error"),
        ("v‸=1", "a-b"),
        ("v‸=1", ""),
        ("function f‸\n a\nend\nf; g", "g"),
        ("function f‸\n a\nend\nf", "try"),
        ("function f‸\n a\nend\nf", "finally"),
        ("function f‸\n a\nend\nf", "echo"),
        ("function f‸\n a\nend\nf", "a b"),
        ("function f‸\n a\nend\nf", "a;b"),
        ("function f‸\n a\nend\nf", "#a"),
        ("function f‸\n a\nend\nf", ""),
        ("function f‸\n a\nend\nf", "v=1"),
        // No names, or nobody knows.
        ("echo v‸; v=1", "w"),
        ("v‸=1\ntry", "w"),
    ];
    let refusals: Vec<String> = all.iter().map(|(text, new)| refused(text, new)).collect();
    insta::assert_snapshot!(refusals.join("\n"), @"
    no: commands find `v` in their environment
    no: commands find `v` in their environment
    no: `MAIL_TO` is also in the environment
    no: the shell itself sets `FTSH_PROMPT`
    no: the shell itself sets `attempt`
    no: `v` may come from the environment: line 1 reads it where the script may not have set it
    no: all your scripts share the channel `m` by its name
    no: `wget` is not a function of this script
    no: `source` runs other scripts with the same names
    no: the script only defines functions: others will `source` it
    no: the first line of the script mentions `v`
    no: a variable's name is computed, and may be this name
    no: a variable's name is computed, and may be this name
    no: a command's name is computed, and may be the name of the function
    no: `w` is a variable of the script already
    no: the shell itself sets `HOME`
    no: the shell itself sets `error`
    no: `a-b` can't be the name of a variable: a name has letters, digits and `_`, and doesn't begin with a digit
    no: `` can't be the name of a variable: a name has letters, digits and `_`, and doesn't begin with a digit
    no: `g` is a command of the script already
    no: `try` is a word of the language already
    no: `finally` is a word of the language already
    no: `echo` is a builtin already
    no: `a b` would have another meaning in one of the places
    no: `a;b` would have another meaning in one of the places
    no: `#a` would have another meaning in one of the places
    no: `` would have another meaning in one of the places
    no: `v=1` would have another meaning in one of the places
    no: there is no variable and no function here
    no: the script has errors, and the places of its names are uncertain
    ");
}

/// Renames in every script; after a renaming back, the script must be unchanged.
#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn renamings_can_be_reversed() {
    let is_outside = |name: &str| variables().contains_key(name);
    let mut count = 0;
    for (name, text) in scripts() {
        let original = document(&text);
        let Ok(script) = original.parsed() else { continue };
        for it in crate::lsp::names::Names::of(script).all {
            let place = original.range(it.span).start;
            let Ok(edit) = rename(&original, place, "a_new_name", &is_outside) else { continue };
            if builtins::named(&it.name).is_some()
                || ALONE.contains(&&*it.name)
                || FORMS.contains(&&*it.name)
            {
                // A function may be called so, but isn't to be by accident.
                continue;
            }
            count += 1;
            let edits = edit.changes.unwrap_or_default().into_values().flatten();
            let mut other = document(&text);
            let changes = edits.collect::<Vec<_>>().into_iter().rev().map(|it| {
                lsp_types::TextDocumentContentChangeEvent {
                    range: Some(it.range),
                    range_length: None,
                    text: it.new_text,
                }
            });
            other.change(2, changes.collect());
            let here = other.text().find("a_new_name").expect("it is there");
            let place = other.range(Span::new(here, here)).start;
            let back = rename(&other, place, &it.name, &is_outside);
            let back = back.unwrap_or_else(|reason| panic!("{name}: {}: {reason}", it.name));
            assert!(back.changes.is_some(), "{name}: {}", it.name);
        }
    }
    assert!(count > 100, "{count}");
}
