//! Variables of branches.

use insta::assert_snapshot;

use super::{assert_quiet, warnings};

#[test]
fn assignments_in_branches_are_lost() {
    assert_snapshot!(warnings("n=0\nforall x in a b keep going\n  try 2 times\n    n=$n .add. 1\n    n=$n .add. 2\n  end\nend\necho $n"), @"
warning[lost-assignment]: the value of `n` is lost at the end of the branch
 --> t:4:5
  |
2 | forall x in a b keep going
  | -------------------------- each branch of this `forall` has a copy of the variables
 ...
4 |     n=$n .add. 1
  |     ^^^^^^^^^^^^
  = hint: print the value, or write the value to one file per branch
");
    assert_quiet(&[
        "forall x in a b; n=$x; echo $n; end; n=1; echo $n",
        "n=0; for x in a b; n=$x; end; echo $n",
        "x=0; forall y in a; for x in b; echo $x; end; end; echo $x",
        "function f; n=1; echo $n; end; forall x in a; f; m=2; echo $m; end",
    ]);
}
