#!/usr/bin/env python3
"""image.py: the Dockerfile, as far as it goes without an engine and without a registry.

    image.py [--binary FILE] [--keep]

Its first stage begins with an image that has to be fetched; here the same files are copied to an
empty folder and built there as it says, static, against musl where Rust's target and Debian's
musl-tools are installed, and against this machine's own libc elsewhere. The second stage is buildah's, literally. Then the image is looked at (user, entry point, health check),
and run in a chroot as the user that it names: the program knows its version, plays its demo, has
certificates to trust, serves a configuration that is mounted where the Dockerfile says, is healthy
by its own health check, holds a conversation, and ends with 0 when it is told to stop.

Not part of check.sh: it compiles everything another time. Needs root and Debian's buildah; a
machine that has neither is told so. By hand: `apt-get install buildah`.
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
# A conversation that is played again, from the tests' vectors.
RECORDING = ROOT / "tests/vectors/replay"
CONFIG = """
[agents.played]
endpoint = "replay:/etc/acp-relay/%s"
[[listeners]]
endpoint = "ws://127.0.0.1:9000"
"""


class Wrong(Exception):
    """The image is not as it should be."""


def stages():
    """The lines of the first stage and of the second, each whole."""
    text = re.sub(r"\\\n", " ", DOCKERFILE.read_text())
    lines = [line for line in text.split("\n") if line and not line.startswith("#")]
    second = next(at for at, line in enumerate(lines) if line.startswith("FROM scratch"))
    return lines[:second], lines[second:]


def build(first, folder):
    """The program, from what the first stage copies, as it says; static."""
    for line in first:
        if line.startswith("COPY "):
            *names, to = line.split()[1:]
            for name in names:
                source, target = ROOT / name, folder / to / (name if to.endswith("/") else "")
                shutil.copytree(source, target) if source.is_dir() else shutil.copy2(source, target)
    command = next(line.removeprefix("RUN ") for line in first if line.startswith("RUN cargo build"))
    host = re.search(r"host: (\S+)", asked("rustc", "-vV"))[1]
    musl = host.replace("-gnu", "-musl")
    if shutil.which("musl-gcc") and (Path(asked("rustc", "--print", "sysroot").strip()) / "lib/rustlib" / musl).exists():
        host = musl
    target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "static"
    # Named, so that what runs while compiling is not static: macros are shared objects.
    subprocess.run([*command.split(), "--quiet", "--target", host], cwd=folder, check=True,
                   env={**os.environ, "RUSTFLAGS": "-C target-feature=+crt-static", "CARGO_TARGET_DIR": str(target)})
    print("ok    built for %s of what the Dockerfile copies" % host)
    return target / host / "release/acp-relay"


def asked(*words):
    return subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout


class Buildah:
    """buildah with a storage of its own, which goes with the folder."""

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
    """The image, of the second stage as it stands; its configuration."""
    context = folder / "context"
    context.mkdir()
    shutil.copy2(binary, context / "acp-relay")
    shutil.copy2(CERTIFICATES, context / "ca-certificates.crt")
    stand_in = ["FROM scratch AS build", "COPY ca-certificates.crt %s" % CERTIFICATES,
                "COPY acp-relay /src/target/release/acp-relay"]
    (context / "Dockerfile").write_text("\n".join([*stand_in, *second]) + "\n")
    # OCI's own format knows no health checks.
    buildah("bud", "--format", "docker", "--isolation", "chroot", "-t", "acp-relay", context)
    return json.loads(buildah("inspect", "--type", "image", "acp-relay"))["Docker"]["config"]


def check(buildah, config, folder):
    wanted = {"User": "65532:65532", "Entrypoint": ["/acp-relay"], "StopSignal": "SIGTERM"}
    for key, value in wanted.items():
        if config.get(key) != value:
            raise Wrong("%s is %r, not %r" % (key, config.get(key), value))
    health = config["Healthcheck"]["Test"]
    if health[0] != "CMD":
        raise Wrong("the health check wants a shell: %r" % health)
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
    # What the Dockerfile advises for a container that is hardened.
    scratch = folder / "tmp"
    scratch.mkdir()
    scratch.chmod(0o777)
    run = ["run", "--isolation", "chroot", "-v", "%s:/etc/acp-relay:ro" % mounted, "-v", "%s:/tmp" % scratch,
           container, "--"]
    print("ok    %s" % buildah(*run, "/acp-relay", "--version").split("\n")[0])
    buildah(*run, "/acp-relay", "demo")
    print("ok    the demo, as user %s" % config["User"])
    said = open(folder / "said", "w+")
    serve = subprocess.Popen([*buildah.words, *run, *config["Entrypoint"], "serve"], stdin=subprocess.DEVNULL,
                             stdout=said, stderr=said)
    try:
        until = time.monotonic() + 20
        while "listening on" not in (folder / "said").read_text():
            if serve.poll() is not None or time.monotonic() > until:
                raise Wrong("serve: %s" % (folder / "said").read_text())
            time.sleep(0.05)
        buildah(*run, *health[1:])
        print("ok    healthy, by %s" % " ".join(health[1:]))
        greeting = json.loads(recording.read_text().split("\n")[0])
        answer = buildah(*run, "/acp-relay", "connect", "ws://127.0.0.1:9000", stdin=None,
                         input=json.dumps(greeting.get("msg", greeting)) + "\n")
        if '"result"' not in answer:
            raise Wrong("the agent answers %r" % answer)
        print("ok    a conversation with the agent of the mounted configuration")
        # As an engine does it: the first process alone.
        os.kill(min(int(pid) for pid in os.listdir("/proc") if pid.isdigit() and is_ours(pid)), signal.SIGTERM)
        if serve.wait(40) != 0:
            raise Wrong("told to stop it ended with %d: %s" % (serve.returncode, (folder / "said").read_text()))
        print("ok    it ends with 0 when it is told to stop")
    finally:
        if serve.poll() is None:
            serve.kill()
            serve.wait()
    return container


def is_ours(pid):
    """Whether a process is the program in the container, serving."""
    try:
        words = Path("/proc/%s/cmdline" % pid).read_bytes().split(b"\0")
        return words[:2] == [b"/acp-relay", b"serve"]
    except OSError:
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", help="a static program, instead of one that is built")
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    for there, what in ((os.getuid() == 0, "root"), (shutil.which("buildah"), "buildah"),
                        (CERTIFICATES.exists(), "Debian's ca-certificates")):
        if not there:
            print("skip  the image needs %s, which is not here" % what)
            return 0
    first, second = stages()
    folder = Path(tempfile.mkdtemp(prefix="acp-image-"))
    folder.chmod(0o755)
    source = folder / "src"
    source.mkdir()
    binary = Path(args.binary) if args.binary else build(first, source)
    if not isolation.leave_network():
        print("skip  the image wants a network of its own, which is not to be had here")
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
