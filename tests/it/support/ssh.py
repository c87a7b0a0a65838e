# A stand-in for ssh and the machine that it reaches, this machine with another home:
#   ssh.py machine SOCKET       runs the command lines that it is sent; kills all that is left when
#                               its stdin ends
#   ssh.py ssh SOCKET CALLS ARGUMENTS...
#                               sends its command line and its standard files; adds its arguments
#                               to the file CALLS. Some hosts fail as the real ssh would.
import ctypes, json, os, signal, socket, subprocess, sys, threading, time

FAILURES = {
    "closed": "ssh: connect to host closed port 22: Connection refused",
    "unknown": "ssh: Could not resolve hostname unknown: Name or service not known",
    "denied": "Warning: Permanently added 'denied' to the list of known hosts.\n"
              "me@denied: Permission denied (publickey).",
    "changed": "Host key verification failed.",
    "reset": "kex_exchange_identification: read: Connection reset by peer",
}
# What the first login to a host prints on stdout, and on stderr before it fails.
FIRST = {
    "flaky": ("", FAILURES["reset"]),
    "cut": ("acp-relay over-ssh 2\n", "client_loop: send disconnect: Broken pipe"),
}
# Of the host `slow`, in bytes a second.
RATE = int(os.environ.get("SLOW_RATE", 64 << 10))
# What a host does before the command line.
PREFIXES = {
    "chatty": "echo Welcome; echo '{\"not\": \"a message\"}'; printf 'half a line'; ",
    "flood": "yes; ",
    "bare": "PATH=/usr/bin:/bin; HOME=/nonexistent; ",
    "old": "echo \"error: unrecognized subcommand 'over-ssh'\" >&2; exit 64; ",
    "silent": "exit 0; ",
}

def ssh(place, calls, words):
    with open(calls, "a") as file:
        file.write(json.dumps(words) + "\n")
    host, command = words[-2:]
    with open(calls) as file:
        if len(file.readlines()) == 1 and host in FIRST:
            print(FIRST[host][0], end="", flush=True)
            print(FIRST[host][1], file=sys.stderr)
            return 255
    if host in FAILURES:
        print(FAILURES[host], file=sys.stderr)
        return 255
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(place)
        command = PREFIXES.get(host, "") + command
        carried = slow_down() if host == "slow" else None
        socket.send_fds(line, [command.encode()], [0, 1, 2])
        # So that only the other side holds them.
        for file in (0, 1, 2):
            os.close(file)
        code = int(line.recv(16) or 255)
        if carried:
            carried.join()
        return code

# Carries stdin and stdout at RATE bytes a second from now on; returns what carries stdout.
def slow_down():
    def carry(source, target):
        while data := os.read(source, RATE // 8):
            os.write(target, data)
            time.sleep(0.125)
        os.close(target)
    for file in (0, 1):
        read, write = os.pipe()
        own = os.dup(file)
        far, near = (read, write) if file == 0 else (write, read)
        os.dup2(far, file)
        os.close(far)
        source, target = (own, near) if file == 0 else (near, own)
        thread = threading.Thread(target=carry, args=(source, target), daemon=True)
        thread.start()
    return thread

def login(line):
    with line:
        command, files, _, _ = socket.recv_fds(line, 1 << 16, 3)
        ran = subprocess.Popen(["sh", "-c", command], stdin=files[0], stdout=files[1], stderr=files[2],
                               start_new_session=True)
        for file in files:
            os.close(file)
        code = ran.wait()
        try:
            line.sendall(b"%d" % (code if code >= 0 else 128 - code))
        except OSError:
            pass

def left():
    found = []
    for task in os.listdir("/proc/self/task"):
        with open("/proc/self/task/%s/children" % task) as children:
            found += map(int, children.read().split())
    return found

def machine(place):
    # It gets the processes whose parents end.
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(place)
    listener.listen()
    print("ready", flush=True)
    def accept():
        while True:
            threading.Thread(target=login, args=(listener.accept()[0],), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()
    sys.stdin.read()
    while children := left():
        for child in children:
            try:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, os.WNOHANG)
            except OSError:
                pass
        time.sleep(0.01)

if sys.argv[1] == "machine":
    machine(sys.argv[2])
else:
    sys.exit(ssh(sys.argv[2], sys.argv[3], sys.argv[4:]))
