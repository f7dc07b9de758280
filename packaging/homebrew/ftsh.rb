# Untested: no Homebrew was available where this file was written. Before use, put in the address of the release and
# the sums that its SHA256SUMS lists.
class Ftsh < Formula
  desc "Fault-tolerant shell: scripts around commands that fail"
  homepage "https://example.org/ftsh"
  version "0.1.0"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on :linux

  on_intel do
    url "https://example.org/ftsh/releases/download/v0.1.0/ftsh-0.1.0-x86_64-unknown-linux-musl.tar.gz"
    sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  end

  on_arm do
    url "https://example.org/ftsh/releases/download/v0.1.0/ftsh-0.1.0-aarch64-unknown-linux-musl.tar.gz"
    sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  end

  def install
    bin.install Dir["bin/*"]
    man1.install Dir["share/man/man1/*"]
    man7.install Dir["share/man/man7/*"]
    bash_completion.install Dir["share/bash-completion/completions/*"]
    zsh_completion.install Dir["share/zsh/site-functions/*"]
    fish_completion.install Dir["share/fish/vendor_completions.d/*"]
    doc.install Dir["share/doc/ftsh/*"]
    pkgshare.install Dir["share/ftsh/*"]
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/ftsh --version")
    shell_output("#{bin}/ftsh try 3 times every 1 ms -- false", 1)
  end
end
