#!/usr/bin/env python3
"""viewer.py: the viewer's page in a real browser.

    viewer.py [--relay BINARY] [--only WORDS] [--shots DIR] [--big MIB]

Runs viewer.mjs, which has the checks, with the Chromium and the playwright-core that
install.sh found or installed. Without a browser it prints a notice and passes: the server's responses
are also tested by `cargo test`.
"""
import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from paths import PEERS, RELAY
from peers import SDK

HERE = Path(__file__).resolve().parent
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

# All checks take about a minute on two cores, and several on busy ones; writing and reading a big recording adds to that.
PATIENCE = 1200


def main():
    parser = argparse.ArgumentParser(description="the viewer's page in a real browser")
    parser.add_argument("--relay", default=RELAY)
    parser.add_argument("--only", help="only the checks with these words in their names")
    parser.add_argument("--shots", help="keep screenshots in this directory")
    parser.add_argument("--big", help="also open a recording of so many MiB, and print the time")
    args = parser.parse_args()

    browser = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    playwright = PEERS / "browser/node_modules/playwright-core"
    if not browser:
        return skip("there is no Chromium (install.sh installs it with apt; CHROMIUM sets another)")
    if not playwright.is_dir():
        return skip("there is no playwright-core: run install.sh")
    command = ["node", str(HERE / "viewer.mjs"), "--relay", os.path.abspath(args.relay),
               "--playwright", str(playwright), "--chromium", browser]
    if SDK.is_dir():
        command += ["--sdk", str(SDK)]
    for name in ("only", "shots", "big"):
        if value := getattr(args, name):
            command += ["--" + name, os.path.abspath(value) if name == "shots" else value]
    return subprocess.run(command, timeout=PATIENCE).returncode


def skip(reason):
    print("viewer: skipped: " + reason)
    return 0


if __name__ == "__main__":
    sys.exit(main())
