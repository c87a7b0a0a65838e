#!/usr/bin/env python3
"""ssh_install.py: `ssh://` brings acp-relay to a machine without it, over a real sshd on loopback.

    ssh_install.py [--relay BINARY]

The other machine is a home directory that is empty at first, with the agent `goose` where an installer has put
it. Consent is given in a terminal, once; then `connect` copies by itself. Each case names what must hold on the
other machine afterwards: what has the name of the program there is whole, and nothing else was touched. Without
sshd it is skipped, with a notice; the cases that mount a file system need root.
"""
import argparse
import contextlib
import json
import os
import pty
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import isolation
import sshd
from paths import RELAY
from returns import Fault

PATIENCE = 120
AGENT = r"""#!%s -u
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {
            "protocolVersion": 1, "agentCapabilities": {}, "agentInfo": {"name": "goose", "version": os.environ["PATH"]}}}))
"""
HELLO = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
    "protocolVersion": 1, "clientCapabilities": {}}}) + "\n"
AT = "ssh://agents.example/goose"
# Where installers put agents, and the file of each shell that tells its users so.
PLACES = {
    "bash": (".nvm/versions/node/v22.1.0/bin", ".bashrc", 'export PATH="$HOME/.nvm/versions/node/v22.1.0/bin:$PATH"\n'),
    "bash, told in its profile": ("opt/agents/bin", ".bash_profile", 'export PATH="$HOME/opt/agents/bin:$PATH"\n'),
    "zsh": (".pyenv/shims", ".zshrc", 'export PATH="$HOME/.pyenv/shims:$PATH"\n'),
    "fish": ("opt/fish/bin", ".config/fish/config.fish", "set -gx PATH $HOME/opt/fish/bin $PATH\n"),
    "bash, told nowhere": (".volta/bin", ".bashrc", "echo a profile that prints\n"),
    "bash, with an older version beside": (".nvm/versions/node/v22.12.0/bin", ".bashrc", ""),
    "bash, which waits for ever": (".deno/bin", ".bashrc", "case $- in *i*) sleep 1000;; esac\n"),
    "bash, which becomes another shell": (".bun/bin", ".bashrc", "case $- in *i*) exec sh -i;; esac\n"),
}


class Machine:
    """The two sides: `there` is the other machine's home, behind its sshd."""

    def __init__(self, relay, folder, name, shell="bash"):
        self.folder, self.mark, self.relay = folder / name, isolation.Mark(), relay
        self.there, self.programs = self.folder / "there", self.folder / "bin"
        for place in (self.there, self.programs, self.folder / "here"):
            place.mkdir(parents=True)
        env = {**isolation.environment(self.folder / "here"), **self.mark.env}
        there = {"HOME": str(self.there), "ACP_RELAY_OVER_SSH_IDLE": "1s", "SHELL": shutil.which(shell), **self.mark.env,
                 "PATH": "%s/first:/usr/local/bin:/usr/bin:/bin" % self.there}
        self.daemon, options = sshd.start(self.folder / "keys", "agents.example", isolation.free_port(), there,
                                          'ForceCommand exec $SHELL -c "$SSH_ORIGINAL_COMMAND"\n')
        self.ssh = "/usr/bin/ssh %s" % shlex.join(options)
        self.wrap('exec %s "$@"' % self.ssh)
        self.env = {**env, "PATH": "%s:%s" % (self.programs, env["PATH"])}

    def wrap(self, script):
        """What stands before ssh here."""
        (self.programs / "ssh").write_text("#!/bin/sh\n%s\n" % script)
        (self.programs / "ssh").chmod(0o755)

    def agent(self, place=".local/bin"):
        program = self.there / place / "goose"
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(AGENT % sys.executable)
        program.chmod(0o755)

    def start(self, *options, subcommand="connect"):
        return subprocess.Popen([self.relay, subcommand, *options, AT], env=self.env, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def connect(self, *options):
        """The answer to `initialize`, and what is printed on stderr."""
        process = self.start(*options)
        printed, said = process.communicate(HELLO, PATIENCE)
        return json.loads(printed.splitlines()[0]), said

    def in_terminal(self, answer, *words):
        """What a subcommand prints when `answer` is typed."""
        ours, theirs = pty.openpty()
        os.write(ours, answer.encode())
        done = subprocess.run([self.relay, *words], env=self.env, stdin=theirs, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
        os.close(ours)
        os.close(theirs)
        return done.stdout

    @property
    def copies(self):
        """All files of the folder there, from the folder of versions."""
        top = self.there / ".local/share/acp-relay"
        return sorted(str(path.relative_to(top)) for path in top.rglob("*") if path.is_file())

    @property
    def version(self):
        return subprocess.run([self.relay, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]

    def stop(self):
        self.daemon.terminate()
        self.daemon.wait()
        self.mark.kill_rest()


def expect(what, holds, seen=""):
    if not holds:
        raise Fault("%s: %s" % (what, seen))


def answers(machine, *options):
    answer, said = machine.connect(*options)
    expect("the agent answers", "result" in answer, "%s %s" % (answer, said))
    expect("the copy is whole", machine.copies == [machine.version + "/acp-relay"], machine.copies)
    return answer["result"]["agentInfo"]["version"]


def refused(machine, *words, copies=()):
    """`connect` answers with an error that has these words, in one line; nothing half is there."""
    answer, _ = machine.connect("--ssh-install", "always")
    text = answer.get("error", {}).get("message", str(answer))
    expect("the error says %s" % (words,), all(word in text for word in words) and "\n" not in text, text)
    expect("what is there", machine.copies == list(copies), machine.copies)


def consent(machine):
    machine.agent()
    answer, _ = machine.connect()
    text = answer["error"]["message"]
    expect("without consent the line to type is named", "`acp-relay try %s`" % AT in text, text)
    said = machine.in_terminal("n\n", "try", AT)
    expect("no is no", "Copy this program" in said and not machine.copies, said)
    said = machine.in_terminal("y\n\x04", "try", AT)
    expect("yes is yes", "goose" in said and machine.copies == [machine.version + "/acp-relay"], said)
    said = machine.in_terminal("\x04", "try", AT)
    expect("it asks once", "Copy this program" not in said and "goose" in said, said)
    shutil.rmtree(machine.there / ".local/share/acp-relay")
    answers(machine)
    shutil.rmtree(machine.there / ".local/share/acp-relay")
    answer, _ = machine.connect("--ssh-install", "never")
    expect("never is never", "error" in answer and not machine.copies, answer)
    others = {path.name for path in machine.there.iterdir()} - {".local"}
    local = {path.name for path in (machine.there / ".local").iterdir()} - {"bin", "share", "state"}
    expect("nothing else is touched", not others and not local, (others, local))


def editor(machine):
    """One command here, none there: an editor's entry, and a turn's agent behind it."""
    machine.agent()
    said = machine.in_terminal("y\n", "install", "zed", AT)
    expect("the entry is added and the agent reached", "can be reached" in said and machine.copies, said)
    settings = (machine.folder / "here/config/zed/settings.json").read_text()
    expect("the settings have it", AT in settings, settings)
    answers(machine)
    said = machine.in_terminal("", "doctor", "--no-probe")
    expect("doctor", "FIX" not in said, said)


def at_once(machine):
    machine.agent()
    both = [machine.start("--ssh-install", "always") for _ in range(2)]
    for process in both:
        printed, said = process.communicate(HELLO, PATIENCE)
        expect("both answer", '"result"' in printed, printed + said)
    expect("one is left", machine.copies == [machine.version + "/acp-relay"], machine.copies)


def broken(machine):
    machine.agent()
    copying = 'case "$*" in *"acp-relay copy"*) %s;; *) exec %s "$@";; esac'
    for what, script in {
        "cut": 'head -c 1000000 | %s "$@"' % machine.ssh,
        "changed": '{ head -c 1000000; printf x; cat; } | %s "$@"' % machine.ssh,
        "killed": '{ %s "$@" & } <&0; sleep 1; kill -9 $!; exit 255' % machine.ssh,
    }.items():
        machine.wrap(copying % (script, machine.ssh))
        answer, said = machine.connect("--ssh-install", "always")
        expect("%s: an error" % what, "error" in answer, answer)
        deadline = time.monotonic() + PATIENCE
        while machine.copies and time.monotonic() < deadline:
            time.sleep(0.1)
        expect("%s: nothing is left" % what, not machine.copies, machine.copies)
    machine.wrap('exec %s "$@"' % machine.ssh)
    answers(machine, "--ssh-install", "always")


def kinds(machine):
    """Machines for which there is no program here."""
    machine.agent()
    uname = machine.there / "first/uname"
    uname.parent.mkdir()
    for system, text in {"Linux riscv64": "acp-relay-linux-riscv64", "../.. /etc": "/acp-relay--etc,",
                         "Darwin arm64": "acp-relay-macos-aarch64"}.items():
        # The script there asks for the two words one by one.
        uname.write_text("#!/bin/sh\nset -- $1 %s\n[ $1 = -s ] && echo $2 || echo $3\n" % system)
        uname.chmod(0o755)
        refused(machine, text)
    # A build for that machine lies beside the program; here it runs, too.
    beside = Path(machine.relay).with_name("acp-relay-macos-aarch64")
    beside.symlink_to(machine.relay)
    try:
        answers(machine, "--ssh-install", "always")
    finally:
        beside.unlink()


def old_version(machine):
    """An acp-relay there that is too old, or that does not run there, is not in the way."""
    machine.agent()
    own = machine.there / ".local/bin/acp-relay"
    for text in ("#!/bin/sh\necho 'error: unrecognized subcommand over-ssh' >&2\nexit 64\n",
                 "#!/bin/sh\necho 'acp-relay: /lib/libc.so.6: version `GLIBC_2.99'\"'\"' not found' >&2\nexit 1\n",
                 "#!/bin/sh\necho acp-relay over-ssh 99\n", "#!/no/such/loader\n"):
        own.write_text(text)
        own.chmod(0o755)
        answer, _ = machine.connect()
        expect("without consent an error", "`acp-relay try" in answer.get("error", {}).get("message", ""), answer)
        answers(machine, "--ssh-install", "always")
        expect("the other program stays", own.read_text() == text)
        shutil.rmtree(machine.there / ".local/share/acp-relay")


def unused_versions(machine):
    machine.agent()
    answers(machine, "--ssh-install", "always")
    top = machine.there / ".local/share/acp-relay"
    month = time.time() - 31 * 86400
    kept = subprocess.Popen(["sleep", "1000"])
    try:
        for name, age in {"0.0.1": month, "0.0.2": time.time(), "0.0.3": month}.items():
            shutil.copytree(top / machine.version, top / name)
            os.utime(top / name / "acp-relay", (age, age))
        # What runs from a version uses it.
        used = subprocess.Popen([top / "0.0.3/acp-relay", "serve", "--listen", "ws://127.0.0.1:0/acp", "--", "cat"],
                                env=machine.env, stderr=subprocess.PIPE, text=True)
        used.stderr.readline()
        os.utime(top / "0.0.3/acp-relay", (month, month))
        answer, said = machine.connect()
        expect("the agent answers", "result" in answer, said)
        left = ["%s/acp-relay" % name for name in sorted([machine.version, "0.0.2", "0.0.3"])]
        expect("only the old one is removed that nothing uses", machine.copies == left, machine.copies)
        used.terminate()
        used.wait()
    finally:
        kept.kill()
        kept.wait()


@contextlib.contextmanager
def mounted(place, options):
    place.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def disks(machine):
    machine.agent()
    share = machine.there / ".local/share"
    with mounted(share, "noexec"):
        refused(machine, "noexec")
    share.rmdir()
    with mounted(share, "size=1M"):
        refused(machine, "No space left")
    share.rmdir()
    with mounted(share, "ro"):
        refused(machine, "Read-only file system")
    share.rmdir()
    answers(machine, "--ssh-install", "always")


CASES = {"consent": consent, "an editor's entry": editor, "two at once": at_once, "a copy that breaks": broken,
         "other machines": kinds, "an older program there": old_version, "unused versions": unused_versions}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--relay", default=RELAY)
    asked = parser.parse_args()
    if not sshd.PROGRAM.exists():
        print("skip  sshd is not installed")
        return 0
    relay, good = str(Path(asked.relay).resolve()), True
    with tempfile.TemporaryDirectory(prefix="acp-copy-") as folder:
        # A program without what only debuggers read takes a tenth of the time.
        lean = Path(folder) / "acp-relay"
        subprocess.run(["strip", "-o", lean, relay], check=True)

        def case(name, check, shell="bash"):
            machine = Machine(str(lean), Path(folder), "m%d" % len(list(Path(folder).iterdir())), shell)
            begun = time.monotonic()
            try:
                check(machine)
                print("ok    %s  %.0f s" % (name, time.monotonic() - begun), flush=True)
                return True
            except (Fault, OSError, ValueError, KeyError, IndexError, subprocess.SubprocessError) as fault:
                print("FAIL  %s: %s: %s" % (name, type(fault).__name__, fault), flush=True)
                return False
            finally:
                machine.stop()
        for name, check in CASES.items():
            good &= case(name, check)
        if os.getuid() == 0:
            good &= case("a disk that is full, read-only or without programs", disks)
        for name, (place, profile, line) in PLACES.items():
            shell = name.split(",")[0]
            if not shutil.which(shell):
                print("skip  %s is not installed" % shell)
                continue

            def found(machine):
                machine.agent(place)
                if "older" in name:
                    for version in ("v9.11.2", "v22.3.0"):
                        old = machine.there / ".nvm/versions/node" / version / "bin/goose"
                        old.parent.mkdir(parents=True)
                        old.symlink_to("/bin/false")
                (machine.there / profile).parent.mkdir(parents=True, exist_ok=True)
                (machine.there / profile).write_text(line)
                own = machine.there / ".local/bin/acp-relay"
                own.parent.mkdir(parents=True, exist_ok=True)
                own.symlink_to(machine.relay)
                answer, said = machine.connect()
                path = answer.get("result", {}).get("agentInfo", {}).get("version", "")
                expect("the agent has the folder on its PATH", "%s/%s" % (machine.there, place) in path.split(":"), (path, said))
            good &= case("an agent in ~/%s, by %s" % (place, name), found, shell)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
