# Untested: no Nix was available where this file was written.
{
  description = "Fault-tolerant shell: scripts around commands that fail";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" ];
      forEach = build: nixpkgs.lib.genAttrs systems (system: build nixpkgs.legacyPackages.${system});
    in
    {
      packages = forEach (pkgs: {
        default = pkgs.rustPlatform.buildRustPackage {
          pname = "ftsh";
          version = (nixpkgs.lib.importTOML ./Cargo.toml).workspace.package.version;
          src = self;
          cargoLock.lockFile = ./Cargo.lock;
          nativeBuildInputs = [ pkgs.installShellFiles ];
          # The tests start daemons and send signals, which the sandbox of a build restricts.
          doCheck = false;
          postInstall = ''
            cargo run --offline --example dist -- pages
            installManPage pages/ftsh.1 pages/ftsh-language.7 pages/ftsh-cookbook.7
            installShellCompletion --bash pages/ftsh.bash --zsh pages/_ftsh --fish pages/ftsh.fish
          '';
          meta = {
            description = "Fault-tolerant shell: scripts around commands that fail";
            license = with nixpkgs.lib.licenses; [ mit asl20 ];
            platforms = systems;
            mainProgram = "ftsh";
          };
        };
      });
    };
}
