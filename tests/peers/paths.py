"""Where the relay is and where its peers are, unless the environment says otherwise."""
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
# The program; tests of speed want the release build instead.
RELAY = os.environ.get("ACP_RELAY_BIN") or str(TARGET / "debug/acp-relay")
# What install.sh has installed.
PEERS = Path(os.environ.get("ACP_RELAY_PEERS") or ROOT / "target/peers")
