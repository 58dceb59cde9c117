class Narthex < Formula
  desc "@SUMMARY@"
  homepage "@HOMEPAGE@"
  version "@VERSION@"
  license "Apache-2.0"

  # @PLATFORMS@

  def install
    bin.install "narthex"
    man1.install Dir["man/man1/*.1"]
    bash_completion.install "completions/narthex.bash" => "narthex"
    zsh_completion.install "completions/_narthex"
    fish_completion.install "completions/narthex.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/narthex --version")
  end
end
