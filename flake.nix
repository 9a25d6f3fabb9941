# The program from these sources: `nix run git+URL`, `nix profile install git+URL`.
{
  description = "Benchmark runner for LLM serving engines";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      each = nixpkgs.lib.genAttrs [ "x86_64-linux" "aarch64-linux" ];
      package = pkgs: pkgs.rustPlatform.buildRustPackage {
        pname = "runner-llm";
        version = (builtins.fromTOML (builtins.readFile ./Cargo.toml)).workspace.package.version;
        src = self;
        cargoLock.lockFile = ./Cargo.lock;
        nativeBuildInputs = [ pkgs.lld ];
        # Plugins are compiled without the environment's settings of cargo, and need a linker.
        buildPhase = ''
          printf '\n[target.wasm32-unknown-unknown]\nlinker = "wasm-ld"\n' >> .cargo/config.toml
          cargo xtask dist
        '';
        doCheck = false;
        installPhase = "PREFIX=$out INSTALL_PROGRAM=target/dist/runner sh install.sh";
        meta = { mainProgram = "runner"; license = pkgs.lib.licenses.asl20; };
      };
    in
    {
      packages = each (system: { default = package nixpkgs.legacyPackages.${system}; });
      apps = each (system: {
        default = { type = "app"; program = "${self.packages.${system}.default}/bin/runner"; };
      });
    };
}
