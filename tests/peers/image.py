#!/usr/bin/env python3
"""image.py: the Dockerfile, as far as it goes without an engine and without a registry.

    image.py [--binary FILE] [--keep]

Its first stage starts from an image that has to be fetched; here the same files are copied to an
empty folder and built there with the same command, static, with musl where Rust's target and Debian's
musl-tools are installed, and with this machine's libc elsewhere. buildah builds the second stage
unchanged. Then the image is inspected (user, entry point, health check), and run in a chroot as the
user that it names: the program prints its version, runs its demo, has CA certificates, serves a
configuration that is mounted at the path of the Dockerfile, passes its own health check, runs a
conversation, and exits with 0 on SIGTERM.

Not part of check.sh: it compiles everything again. Needs root and Debian's buildah; otherwise it
is skipped. By hand: `apt-get install buildah`.
"""
import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import isolation

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "Dockerfile"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
# A conversation to replay, from the tests' vectors.
RECORDING = ROOT / "tests/vectors/replay"
CONFIG = """
[agents.played]
endpoint = "replay:/etc/acp-relay/%s"
[[listeners]]
endpoint = "ws://127.0.0.1:9000"
"""


class Wrong(Exception):
    """A fault of the image."""


def stages():
    """The lines of the first and of the second stage, with continuation lines joined."""
    text = re.sub(r"\\\n", " ", DOCKERFILE.read_text())
    lines = [line for line in text.split("\n") if line and not line.startswith("#")]
    second = next(at for at, line in enumerate(lines) if line.startswith("FROM scratch"))
    return lines[:second], lines[second:]


def build(first, folder):
    """Builds the static program from the files and with the command of the first stage."""
    for line in first:
        if line.startswith("COPY "):
            *names, to = line.split()[1:]
            for name in names:
                source, target = ROOT / name, folder / to / (name if to.endswith("/") else "")
                shutil.copytree(source, target) if source.is_dir() else shutil.copy2(source, target)
    command = next(line.removeprefix("RUN ") for line in first if line.startswith("RUN cargo build"))
    host = re.search(r"host: (\S+)", output_of("rustc", "-vV"))[1]
    musl = host.replace("-gnu", "-musl")
    if shutil.which("musl-gcc") and (Path(output_of("rustc", "--print", "sysroot").strip()) / "lib/rustlib" / musl).exists():
        host = musl
    target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "static"
    # With --target, build scripts and macros are not static: macros are shared objects.
    subprocess.run([*command.split(), "--quiet", "--target", host], cwd=folder, check=True,
                   env={**os.environ, "RUSTFLAGS": "-C target-feature=+crt-static", "CARGO_TARGET_DIR": str(target)})
    print("ok    built for %s from the files that the Dockerfile copies" % host)
    return target / host / "release/acp-relay"


def output_of(*words):
    return subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout


class Buildah:
    """buildah with its own storage, which is deleted with the folder."""

    def __init__(self, folder):
        self.words = ["buildah", "--root", str(folder / "store"), "--runroot", str(folder / "run"),
                      "--storage-driver", "vfs"]

    def __call__(self, *words, **more):
        done = subprocess.run([*self.words, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, **{"stdin": subprocess.DEVNULL, "timeout": 300, **more})
        if done.returncode != 0:
            raise Wrong("buildah %s: %s" % (words[0], (done.stdout + done.stderr)[-2000:]))
        return done.stdout.strip()


def image(buildah, second, binary, folder):
    """Builds the image from the unchanged second stage; returns its configuration."""
    context = folder / "context"
    context.mkdir()
    shutil.copy2(binary, context / "acp-relay")
    shutil.copy2(CERTIFICATES, context / "ca-certificates.crt")
    stand_in = ["FROM scratch AS build", "COPY ca-certificates.crt %s" % CERTIFICATES,
                "COPY acp-relay /src/target/release/acp-relay"]
    (context / "Dockerfile").write_text("\n".join([*stand_in, *second]) + "\n")
    # The OCI format has no health checks.
    buildah("bud", "--format", "docker", "--isolation", "chroot", "-t", "acp-relay", context)
    return json.loads(buildah("inspect", "--type", "image", "acp-relay"))["Docker"]["config"]


def check(buildah, config, folder):
    wanted = {"User": "65532:65532", "Entrypoint": ["/acp-relay"], "StopSignal": "SIGTERM"}
    for key, value in wanted.items():
        if config.get(key) != value:
            raise Wrong("%s is %r, not %r" % (key, config.get(key), value))
    health = config["Healthcheck"]["Test"]
    if health[0] != "CMD":
        raise Wrong("the health check needs a shell: %r" % health)
    container = buildah("from", "--pull-never", "acp-relay")
    tree = Path(buildah("mount", container))
    files = sorted(str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file())
    print("ok    the image holds %s; %.1f MB" % (", ".join(files), (tree / "acp-relay").stat().st_size / 1e6))
    mounted = folder / "etc"
    mounted.mkdir()
    recording = sorted(RECORDING.glob("*.jsonl"))[0]
    shutil.copy2(recording, mounted / recording.name)
    (mounted / "acp-relay.toml").write_text(CONFIG % recording.name)
    for path in (mounted, *mounted.iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)
    # As the Dockerfile recommends for a hardened container.
    scratch = folder / "tmp"
    scratch.mkdir()
    scratch.chmod(0o777)
    run = ["run", "--isolation", "chroot", "-v", "%s:/etc/acp-relay:ro" % mounted, "-v", "%s:/tmp" % scratch,
           container, "--"]
    print("ok    %s" % buildah(*run, "/acp-relay", "--version").split("\n")[0])
    buildah(*run, "/acp-relay", "demo")
    print("ok    the demo, as user %s" % config["User"])
    output = folder / "output"
    file = open(output, "w+")
    serve = subprocess.Popen([*buildah.words, *run, *config["Entrypoint"], "serve"], stdin=subprocess.DEVNULL,
                             stdout=file, stderr=file)
    try:
        until = time.monotonic() + 20
        while "listening on" not in output.read_text():
            if serve.poll() is not None or time.monotonic() > until:
                raise Wrong("serve: %s" % output.read_text())
            time.sleep(0.05)
        buildah(*run, *health[1:])
        print("ok    healthy, by %s" % " ".join(health[1:]))
        initialize = json.loads(recording.read_text().split("\n")[0])
        answer = buildah(*run, "/acp-relay", "connect", "ws://127.0.0.1:9000", stdin=None,
                         input=json.dumps(initialize.get("msg", initialize)) + "\n")
        if '"result"' not in answer:
            raise Wrong("the agent's answer is %r" % answer)
        print("ok    a conversation with the agent of the mounted configuration")
        # As an engine does: only the first process gets the signal.
        os.kill(min(int(pid) for pid in os.listdir("/proc") if pid.isdigit() and is_ours(pid)), signal.SIGTERM)
        if serve.wait(40) != 0:
            raise Wrong("after SIGTERM it exited with %d: %s" % (serve.returncode, output.read_text()))
        print("ok    it exits with 0 on SIGTERM")
    finally:
        if serve.poll() is None:
            serve.kill()
            serve.wait()
    return container


def is_ours(pid):
    """Whether a process is `acp-relay serve` in the container."""
    try:
        words = Path("/proc/%s/cmdline" % pid).read_bytes().split(b"\0")
        return words[:2] == [b"/acp-relay", b"serve"]
    except OSError:
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", help="a static program, instead of building one")
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    for there, what in ((os.getuid() == 0, "root"), (shutil.which("buildah"), "buildah"),
                        (CERTIFICATES.exists(), "Debian's ca-certificates")):
        if not there:
            print("skip  the image needs %s, which is not available" % what)
            return 0
    first, second = stages()
    folder = Path(tempfile.mkdtemp(prefix="acp-image-"))
    folder.chmod(0o755)
    source = folder / "src"
    source.mkdir()
    binary = Path(args.binary) if args.binary else build(first, source)
    if not isolation.leave_network():
        print("skip  the image needs its own network, which is not available")
        return 0
    buildah = Buildah(folder)
    try:
        config = image(buildah, second, binary, folder)
        buildah("rm", check(buildah, config, folder))
    except Wrong as error:
        print("FAIL  %s" % error)
        return 1
    finally:
        if not args.keep:
            subprocess.run([*buildah.words, "rm", "--all"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
