"""An sshd on loopback, with keys and known hosts of its own, whose machine is this one."""
import os
import subprocess
from pathlib import Path

import isolation
from paths import PEERS

# The one of the system, or the one that install.sh unpacks.
UNPACKED = PEERS / "openssh-server/usr/sbin/sshd"
PROGRAM = next((path for path in (Path("/usr/sbin/sshd"), UNPACKED) if path.exists()), UNPACKED)


def start(folder, host, port, env, lines=""):
    """Starts it, with its files in a new `folder` and these lines in its configuration; logins get the variables
    `env`. Returns the process, and the options with which ssh reaches it as `host`."""
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    folder.mkdir(mode=0o700)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    (folder / "user.pub").rename(folder / "authorized")
    variables = " ".join("%s=%s" % pair for pair in env.items())
    (folder / "sshd").write_text("ListenAddress 127.0.0.1:%d\nHostKey %s/host\nAuthorizedKeysFile %s/authorized\n"
                                 "StrictModes no\nPidFile none\nPermitRootLogin yes\nUsePAM no\nSetEnv %s\n%s"
                                 % (port, folder, folder, variables, lines))
    (folder / "ssh").write_text("Host %s\nHostName 127.0.0.1\nPort %d\nIdentityFile %s/user\n"
                                "StrictHostKeyChecking accept-new\nUserKnownHostsFile %s/known\nLogLevel ERROR\n"
                                % (host, port, folder, folder))
    libraries = ":".join(map(str, (PEERS / "libwrap0").glob("usr/lib/*")))
    daemon = subprocess.Popen([PROGRAM, "-D", "-e", "-f", folder / "sshd"],
                              env={**os.environ, **env, **({"LD_LIBRARY_PATH": libraries} if PROGRAM == UNPACKED else {})},
                              stderr=subprocess.DEVNULL)
    if not isolation.wait_for_port(port, daemon, 10):
        raise OSError("sshd does not start")
    return daemon, ["-F", str(folder / "ssh")]
