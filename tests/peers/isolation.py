"""Isolates a run: its environment, its network, and its processes.

A process belongs to a run when it has the run's mark in its environment, which every child inherits,
independent of the process tree. Linux only, because of `/proc`.
"""
import ctypes
import fcntl
import os
import random
import re
import signal
import socket
import struct
import subprocess
import threading
import time
import uuid

PORTS_LOCK, USED_PORTS = threading.Lock(), set()

MARK = "ACP_RELAY_PEERS_RUN"

# With these variables an agent would use the developer's account, or another host.
SECRETS = re.compile(r"API_KEY|_TOKEN|AWS_|OPENAI|ANTHROPIC|GEMINI|GOOGLE|_PROXY$", re.IGNORECASE)


def environment(home):
    """The environment of a new user: no configuration, no account."""
    kept = {name: value for name, value in os.environ.items() if not SECRETS.search(name)}
    return {
        **kept,
        "HOME": str(home),
        **{"XDG_%s_HOME" % kind: "%s/%s" % (home, kind.lower()) for kind in ("CONFIG", "DATA", "CACHE", "STATE")},
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "DO_NOT_TRACK": "1",
    }


class Mark:
    """Names the processes of one run."""

    def __init__(self):
        self.value = uuid.uuid4().hex
        self.env = {MARK: self.value}

    def processes(self):
        """(pid, command line) of every living process of the run."""
        wanted = ("%s=%s" % (MARK, self.value)).encode()
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/environ" % pid, "rb") as environ:
                    marked = wanted in environ.read().split(b"\0")
                if marked:
                    with open("/proc/%s/cmdline" % pid, "rb") as line:
                        found.append((int(pid), line.read().replace(b"\0", b" ").decode(errors="replace")))
            except OSError:
                continue  # the process has ended, or is another user's
        return found

    def programs(self):
        """As `processes`, without watchdogs: a watchdog's command line ends with its agent's."""
        return [(pid, line) for pid, line in self.processes() if " __watchdog " not in line]

    def wait_until_gone(self, but, seconds):
        """The processes that are left after `seconds`, except the pids in `but`, and the zombies
        of those. Empty as soon as nothing is left."""
        deadline = time.monotonic() + seconds
        while True:
            left = ["%d %.60s" % found for found in self.processes() if found[0] not in but]
            left += ["%d a zombie of %d" % pair for pair in zombies() if pair[1] in but]
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(0.05)

    def kill_rest(self):
        for pid, _ in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def zombies():
    """(pid, parent) of every process that has ended and was not reaped."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid) as stat:
                # The name is in parentheses and may contain any character.
                state, parent = stat.read().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state == "Z":
            yield int(pid), int(parent)


def free_port():
    """A port for a program that cannot listen on port 0. It is below the kernel's ephemeral ports,
    so that no other connection or listener gets it, and is returned only once, because runs
    are concurrent."""
    while True:
        port = random.randrange(10000, 30000)
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        with PORTS_LOCK:
            if port not in USED_PORTS:
                USED_PORTS.add(port)
                return port


def wait_for_port(port, process, seconds):
    """True once `process` listens on the loopback port; false when it ended or took too long."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        except OSError:
            time.sleep(0.05)
    return False


def certificates(folder, *names):
    """Makes a folder with a certificate authority (ca.pem), and its certificate (cert.pem, key.pem) for `DNS:NAME`s
    or `IP:ADDRESS`es; the folder."""
    folder.mkdir()
    fresh = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]

    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, stderr=subprocess.DEVNULL, timeout=30)
    (folder / "names").write_text("subjectAltName=%s\nbasicConstraints=CA:FALSE\n" % ",".join(names))
    openssl("req", "-x509", *fresh, "-days", "2", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem",
            "-addext", "basicConstraints=critical,CA:TRUE")
    openssl("req", *fresh, "-subj", "/CN=server", "-keyout", "key.pem", "-out", "cert.csr")
    openssl("x509", "-req", "-in", "cert.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "1",
            "-extfile", "names", "-out", "cert.pem")
    return folder


def leave_network():
    """Moves this process and its children into a network with only loopback. False when the kernel
    refuses, as in some containers. Call it before any thread is started."""
    new_user, new_net = 0x10000000, 0x40000000
    user, group = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(new_net if user == 0 else new_user | new_net) != 0:
        return False
    if user != 0:
        # Without a mapping our files would belong to the user `nobody`.
        for name, text in (("setgroups", "deny"), ("uid_map", "%d %d 1" % (user, user)),
                           ("gid_map", "%d %d 1" % (group, group))):
            with open("/proc/self/" + name, "w") as file:
                file.write(text)
    # SIOCSIFFLAGS with IFF_UP: a new network's loopback is down.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, 0x8914, struct.pack("16sh14x", b"lo", 1))
    return True
