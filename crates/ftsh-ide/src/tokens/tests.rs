use std::collections::BTreeSet;
use std::path::Path;

use super::*;
use crate::complete::complete;
use crate::highlight::highlight;
use crate::known::SessionSnapshot;

/// Returns every token as the first letter of its role and its text.
fn shown(text: &str) -> String {
    let tokens = scan(text).all.into_iter().filter(|it| it.role != Role::Separator);
    let shown = tokens.map(|token| {
        let role = match token.role {
            Role::Keyword => "K",
            Role::Clause => "L",
            Role::Operator => "O",
            Role::Command => "C",
            Role::Assignment(_) => "A",
            Role::Word => "W",
            Role::Symbol => "S",
            Role::Separator => ";",
            Role::Comment => "#",
            Role::Document => "D",
        };
        format!("{role}:{}", text[token.range].replace('\n', "~"))
    });
    shown.collect::<Vec<_>>().join(" ")
}

#[test]
fn words_have_their_roles() {
    insta::assert_snapshot!(shown("ls -l a.b > f 2>&1 | sort;pwd # end"),
        @"C:ls W:-l W:a.b S:> W:f S:2>& W:1 S:| C:sort C:pwd #:# end");
    insta::assert_snapshot!(shown("try for 5 minutes every 2 s; cp try end; end"),
        @"K:try L:for W:5 L:minutes L:every W:2 L:s C:cp W:try W:end K:end");
    insta::assert_snapshot!(shown("if .succeeds. (grep -q a,b f) .and. $x .eq. f(1,2)"),
        @"K:if O:.succeeds. S:( C:grep W:-q W:a,b W:f S:) O:.and. W:$x O:.eq. W:f S:( W:1 S:, W:2 S:)");
    insta::assert_snapshot!(shown("# a\nargs b\nuse c.ftsh # d\nuse e f\nuse g"),
        @"#:# a K:args W:b K:use W:c.ftsh #:# d C:use W:e W:f C:use W:g");
    insta::assert_snapshot!(shown("# a\nargs \"b c\" url -n|--new --out=FILE files... # d\nargs x | -y"),
        @r#"#:# a K:args W:"b c" W:url W:-n|--new W:--out=FILE W:files... #:# d C:args W:x S:| C:-y"#);
    insta::assert_snapshot!(shown("x=$a + 1 - (2 * -3); if ! $a == b && $op .eq. + || !($x<=3 > 2)"),
        @"A:x=$a O:+ W:1 O:- S:( W:2 O:* W:-3 S:) K:if O:! W:$a O:== W:b O:&& W:$op O:.eq. W:+ O:|| O:! S:( C:$x S:< W:=3 O:> W:2 S:)");
    insta::assert_snapshot!(shown("while ! .exists. f || ! .yes. (a); if ! .eq. $x"),
        @"K:while O:! O:.exists. W:f O:|| O:! O:.yes. S:( C:a S:) K:if W:! O:.eq. W:$x");
    insta::assert_snapshot!(shown("for x in a - (b < $c) * f(/, -) ! d; y=!; return 1 <= 2; z=1 > f"),
        @"K:for W:x L:in W:a W:- S:( W:b O:< W:$c S:) O:* W:f S:( W:/ S:, W:- S:) W:! W:d A:y=! K:return W:1 O:<= W:2 A:z=1 S:> W:f");
    insta::assert_snapshot!(shown("try while $n < 5 or $m * 2 times backoff full jitter 10 % by 3 / 2; forall x in a - b at most $n - 1"),
        @"K:try L:while W:$n O:< W:5 L:or W:$m O:* W:2 L:times L:backoff L:full L:jitter W:10 W:% L:by W:3 O:/ W:2 K:forall W:x L:in W:a W:- W:b L:at L:most W:$n O:- W:1");
    insta::assert_snapshot!(shown("A=1 env + 2; echo 1 + 2 > f; if .succeeds. (a - b || c) || d | e"),
        @"A:A=1 C:env W:+ W:2 C:echo W:1 W:+ W:2 S:> W:f K:if O:.succeeds. S:( C:a W:- W:b S:| S:| C:c S:) O:|| C:d S:| C:e");
    insta::assert_snapshot!(shown("x=$a .add. 1\nA=1 env\nelse if true"),
        @"A:x=$a O:.add. W:1 A:A=1 C:env K:else K:if W:true");
    insta::assert_snapshot!(shown("cat <<< end\nend 3<< E\nend\nE\nx=.not. a .and. b"),
        @"C:cat S:<<< W:end K:end S:3<< W:E D:end~E~ A:x=.not. W:a O:.and. W:b");
    insta::assert_snapshot!(shown("x=f(1, $y) .add. (2); A=(b) c; y=.succeeds. (ls -l); z=a(b c"),
        @"A:x=f S:( W:1 S:, W:$y S:) O:.add. S:( W:2 S:) A:A= S:( W:b S:) W:c A:y=.succeeds. S:( C:ls W:-l S:) A:z=a S:( W:b W:c");
    insta::assert_snapshot!(shown("for x in a in; forall y in $l at most 3; echo (a)"),
        @"K:for W:x L:in W:a L:in K:forall W:y L:in W:$l L:at L:most W:3 C:echo W:(a)");
    insta::assert_snapshot!(shown("forall x in keep at least 2 keep going; ok"),
        @"K:forall W:x L:in W:keep L:at L:least W:2 L:keep L:going C:ok");
    insta::assert_snapshot!(shown("cat <<A -> v\na b\nA\nls"),
        @"C:cat S:<< W:A S:-> W:v D:a b~A~ C:ls");
    insta::assert_snapshot!(shown("ls | while true\nbreak; end > f |& for x in a; end | sort"),
        @"C:ls S:| K:while W:true K:break K:end S:> W:f S:|& K:for W:x L:in W:a K:end S:| C:sort");
    insta::assert_snapshot!(shown("channel at at most 4 rate 10 per second\ntry through for every 2 s; x; end"),
        @"K:channel W:at L:at L:most W:4 L:rate W:10 L:per L:second K:try L:through W:for L:every W:2 L:s C:x K:end");
    insta::assert_snapshot!(shown("A=1 accept 24,3 keep cp a | accept x; keep accept 1 f; keep; if .yes. (accept 2 grep 3)"),
        @"A:A=1 K:accept L:24,3 K:keep C:cp W:a S:| C:accept W:x K:keep K:accept L:1 C:f C:keep K:if O:.yes. S:( K:accept L:2 C:grep W:3 S:)");
    insta::assert_snapshot!(shown("break; break 2; continue # so\n"),
        @"K:break C:break W:2 K:continue #:# so");
    insta::assert_snapshot!(shown("when a; case f($x)\nwhen a b* .eq.\nif true; when c; end; else; end; case"),
        @"C:when W:a K:case W:f S:( W:$x S:) K:when W:a W:b* W:.eq. K:if W:true K:when W:c K:end K:else K:end C:case");
}

#[test]
fn open_and_stray_structures_are_found() {
    let scanned = scan("try; if true; end; ls");
    assert_eq!(scanned.open, [0]);
    assert_eq!(scan("ls; end").stray, [2]);
    assert_eq!(scan("catch").stray, [0]);
    assert!(scan("try; catch; end; echo end").stray.is_empty());
}

#[test]
fn any_text_is_split() {
    let pieces = [
        "'",
        "\"",
        "$",
        "${",
        "$(",
        "\\",
        "<<",
        "a",
        "é",
        "\n",
        "(",
        ")",
        "|",
        "&",
        ";",
        "#",
        "=",
        " ",
        "try",
        ".succeeds.",
        "1>",
        "\t",
        "-<",
    ];
    let mut state = 1_u64;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..8 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            text.push_str(pieces[(state >> 33) as usize % pieces.len()]);
        }
        let mut at = 0;
        for token in scan(&text).all {
            assert!(token.range.start >= at && !token.range.is_empty(), "{text:?}");
            assert!(text.get(token.range.clone()).is_some(), "{text:?}");
            for (part, _) in &token.parts {
                assert!(text.get(part.clone()).is_some(), "{text:?}");
                assert!(part.start >= token.range.start && part.end <= token.range.end);
            }
            at = token.range.end;
        }
    }
}

/// Heads that crashed the prompt while they were typed.
const CRASHES: [&str; 5] = [
    "for n in 0 .to. $n - 1",
    "for x in 1 2 -- echo",
    "for n in 1 -",
    "list l in $a *",
    "forall x in $a + ",
];

#[test]
fn each_line_can_be_typed() {
    let known = SessionSnapshot { directory: "/nowhere".into(), ..SessionSnapshot::default() };
    for line in CRASHES {
        for end in 0..=line.len() {
            let typed = &line[..end];
            assert!(highlight("", typed, &known).len() >= typed.len(), "{typed:?}");
            assert!(complete(typed, &known).0 <= end, "{typed:?}");
        }
    }
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut lines = BTreeSet::new();
    for directory in ["examples", "tests/scripts/loops", "tests/scripts/expressions"] {
        for entry in std::fs::read_dir(root.join(directory)).expect("a directory") {
            let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("a script");
            lines.extend(text.lines().map(|line| line.trim_start().to_owned()));
        }
    }
    assert!(lines.len() > 500, "{}", lines.len());
    // The end of a word, and each place that is not inside of a word.
    let is_inside = |line: &str, end: usize| {
        let is_letter = |c: char| c.is_ascii_alphanumeric();
        line[..end].ends_with(is_letter) && line[end..].starts_with(is_letter)
    };
    for line in lines.iter().filter(|line| !line.starts_with('#')) {
        for end in (0..=line.len()).filter(|end| line.is_char_boundary(*end)) {
            if !is_inside(line, end) {
                let last = scan(&line[..end]).all.last().map_or(0, |token| token.range.end);
                assert!(last <= end, "{line:?}");
            }
        }
    }
}
