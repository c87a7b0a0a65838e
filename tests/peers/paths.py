"""Paths of the relay and of its peers; environment variables override them."""
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
# The relay binary; performance tests use the release build.
RELAY = os.environ.get("ACP_RELAY_BIN") or str(TARGET / "debug/acp-relay")
# Installed by install.sh.
PEERS = Path(os.environ.get("ACP_RELAY_PEERS") or ROOT / "target/peers")
