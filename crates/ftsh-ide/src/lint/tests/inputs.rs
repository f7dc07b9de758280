//! Inputs of loops.

use insta::assert_snapshot;

use super::{assert_quiet, messages, warnings};

#[test]
fn commands_consume_the_input_of_a_loop() {
    assert_snapshot!(warnings("while .succeeds. (read host)\n  try 3 times\n    ssh host uptime\n  end\nend < hosts"), @"
warning[loop-input]: `ssh` reads the rest of this loop's input
 --> t:3:5
  |
1 | while .succeeds. (read host)
  | ---------------------------- this loop then ends after one pass
 ...
3 |     ssh host uptime
  |     ^^^
  = hint: split the text into lines first, `for line in lines($text)`; or `ssh … < /dev/null`
");
    assert_eq!(
        messages("while .not. .not. .succeeds. (read f); timeout 5 ffmpeg -i f | cat; end").len(),
        1
    );
    assert_quiet(&[
        "while .succeeds. (read h); ssh -n h a; ssh h a < /dev/null; echo a | ssh h; end < hosts",
        "while .succeeds. (read h); try 2 times; ssh h a; end < other; end < hosts",
        "while .succeeds. (read h); forall x in a b; ssh h $x; end; echo ssh; end < hosts",
        "while $n .lt. 5; ssh a; n=$n .add. 1; end",
        "for h in lines($hosts); ssh h a; end",
    ]);
}
