//! Command lines with their whole output and exit code: `tests/vectors/commands/*.trycmd`.
//!
//! `TRYCMD=overwrite cargo test --test it -- commands` writes the output of today into them.

#[test]
fn every_command_prints_what_its_file_says() {
    trycmd::TestCases::new()
        .env("ACP_RELAY_STATE_DIR", crate::support::program::STATE)
        .env("XDG_CONFIG_HOME", crate::support::program::STATE)
        .register_bin(
            "acp-relay",
            std::path::Path::new(env!("CARGO_BIN_EXE_acp-relay")),
        )
        .case("tests/vectors/commands/*.trycmd");
}
