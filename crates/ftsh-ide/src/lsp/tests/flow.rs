use crate::lsp::rename_check::flow::read_before_set;
use ftsh_syntax::parse;

/// Returns the line in which `v` may be read before it is set; 0 if there is none.
fn line(text: &str) -> u32 {
    let script = parse("t", text).expect("a right script");
    read_before_set(&script, "v").map_or(0, |span| script.source.line(span.start))
}

#[test]
fn variables_set_before_their_uses() {
    for text in [
        "v=1; echo $v",
        "echo a -> v\necho $v",
        "read v; echo $v",
        "for v in a b; echo $v; end",
        "forany v in a b; a; end\necho $v",
        "if a; v=1; else; v=2; end\necho $v",
        "case a; when b; v=1; else; v=2; end\necho $v",
        "try\n v=1\ncatch\n v=2\nend\necho $v",
        "try\n v=1\nend\nif a; echo $v; end",
        "v=1\nf\nfunction f\n echo $v\nend",
        "function f\n local v=1\n echo $v\nend\nf",
        "v=\necho $v",
        "function f\n echo $v\nend",
        "try 3 times\n a\nend -> v\ncat -< v",
    ] {
        assert_eq!(line(text), 0, "{text}");
    }
}

#[test]
fn variables_possibly_unset_at_a_use() {
    for (text, expected) in [
        ("\necho $v", 2),
        ("v=$v", 1),
        ("\necho ${v:-1}; v=1", 2),
        ("if a; v=1; end\necho $v", 2),
        ("if a; v=1; else if b; v=2; end\necho $v", 2),
        ("for v in a; b; end\necho $v", 2),
        ("forall v in a; b; end\necho $v", 2),
        ("while a; v=1; end\necho $v", 2),
        ("try\n v=1\ncatch\n a\nend\necho $v", 6),
        ("try\n v=1\ncatch\n echo $v\nend", 4),
        ("a | read v\necho $v", 2),
        ("f\nv=1\nfunction f\n echo $v\nend", 4),
        ("x=f(1)\nv=1\nfunction f\n return g()\nend\nfunction g\n return $v\nend", 7),
        ("if .succeeds. (f)\nend\nfunction f\n echo $v\nend", 4),
        ("$a\nv=1\nfunction f\n echo $v\nend", 4),
        ("echo a ->> v", 1),
        ("cat -< v", 1),
        ("cat <<E\n\n$v\nE", 3),
        ("try for $v\n a\nend", 1),
        ("try 3 times backoff fixed from $v\n a\nend", 1),
        ("channel c rate 1 per $v\n", 1),
        ("a > \"x${w:-$v}\"", 1),
        ("function f\n if a; return 1; end\n v=1\nend\nf\necho $v", 6),
    ] {
        assert_eq!(line(text), expected, "{text}");
    }
}
