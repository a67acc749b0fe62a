"""Programs that a recording runs: started on free loopback ports, stopped in reverse order."""

import os
import pathlib
import signal
import socket
import subprocess
import time


def free_port():
    """A TCP port that is free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port):
    """Whether something listens on a port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Services:
    """The running programs. Each has a log in the folder `log`."""

    def __init__(self, work):
        self.logs = pathlib.Path(work) / "log"
        self.logs.mkdir(parents=True, exist_ok=True)
        self.running = []

    def start(self, name, argv, port=None, env=None, cwd=None, seconds=90):
        """Starts a program in a process group of its own, and waits until its port answers."""
        log = self.logs / f"{name}.log"
        with log.open("ab") as out:
            process = subprocess.Popen(
                [str(part) for part in argv], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                env={**os.environ, **(env or {})}, cwd=cwd, start_new_session=True)
        self.running.append((name, process))
        until = time.monotonic() + seconds
        while port and not answers(port):
            if process.poll() is not None:
                raise SystemExit(f"{name} ended with {process.returncode}:\n{self.tail(name)}")
            if time.monotonic() > until:
                raise SystemExit(f"{name} does not answer on port {port}:\n{self.tail(name)}")
            time.sleep(0.1)
        return process

    def tail(self, name, length=3000):
        """The end of a program's log."""
        return (self.logs / f"{name}.log").read_text(errors="replace")[-length:]

    def run(self, name, argv, env=None, cwd=None, text=None):
        """Runs a program to its end; its output is what it wrote."""
        done = subprocess.run(
            [str(part) for part in argv], input=text, capture_output=True, text=True, errors="replace",
            env={**os.environ, **(env or {})}, cwd=cwd, check=False)
        with (self.logs / f"{name}.log").open("a") as out:
            out.write(done.stdout + done.stderr)
        if done.returncode:
            raise SystemExit(f"{name} ended with {done.returncode}:\n{done.stdout[-1500:]}{done.stderr[-1500:]}")
        return done.stdout

    def stop(self):
        """Stops all of them with what they started, the last one first."""
        while self.running:
            name, process = self.running.pop()
            for sign, seconds in ((signal.SIGTERM, 20), (signal.SIGKILL, 5)):
                try:
                    os.killpg(process.pid, sign)
                    process.wait(seconds)
                    break
                except ProcessLookupError:
                    break
                except subprocess.TimeoutExpired:
                    print(f"{name} does not end by {sign.name}", flush=True)


class Database:
    """A MariaDB server with data in a temporary folder."""

    PASSWORD = "oak-Table-31"

    def __init__(self, services, work):
        self.services, self.port = services, free_port()
        data, self.socket = work / "mariadb", work / "mariadb.sock"
        services.run("mariadb-install", [
            "mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={data}",
            "--auth-root-authentication-method=normal", "--skip-test-db"])
        services.start("mariadb", [
            "mariadbd", "--no-defaults", "--user=root", f"--datadir={data}", f"--socket={self.socket}",
            "--bind-address=127.0.0.1", f"--port={self.port}", f"--pid-file={work}/mariadb.pid", "--skip-log-bin",
            "--innodb-flush-log-at-trx-commit=0", "--character-set-server=utf8mb4", "--max-connections=300"], self.port)

    def run(self, sql, database=None):
        """Runs statements as root."""
        argv = ["mariadb", "--no-defaults", "-u", "root", "-S", self.socket, "--default-character-set=utf8mb4"]
        return self.services.run("mariadb-client", argv + ([database] if database else []), text=sql)

    def create(self, name):
        """A database, and a user of the same name who may do everything in it."""
        self.run(f"CREATE DATABASE {name} CHARACTER SET utf8mb4;"
                 f"CREATE USER '{name}'@'127.0.0.1' IDENTIFIED BY '{self.PASSWORD}';"
                 f"GRANT ALL ON {name}.* TO '{name}'@'127.0.0.1';")


# What a proxy in front says about a connection, as an operator tells PHP behind one.
PREPEND = r"""<?php
$_SERVER['HTTPS'] = 'on';
$_SERVER['SERVER_PORT'] = '443';
$_SERVER['SERVER_NAME'] = $_SERVER['HTTP_HOST'] ?? 'localhost';
$_SERVER['REQUEST_SCHEME'] = 'https';
if (!empty($_SERVER['HTTP_X_FORWARDED_FOR'])) {
    $hops = explode(',', $_SERVER['HTTP_X_FORWARDED_FOR']);
    $_SERVER['REMOTE_ADDR'] = trim(end($hops));
}
"""


def serve_php(services, work, name, root, workers=4, prepend="", env=None):
    """PHP's own server with a document root; gives its port."""
    port, first = free_port(), work / f"{name}-prepend.php"
    first.write_text(PREPEND + prepend)
    settings = {
        "opcache.enable_cli": 1, "opcache.memory_consumption": 96, "auto_prepend_file": first, "memory_limit": "256M",
        "upload_max_filesize": "8M", "post_max_size": "8M", "max_input_vars": 5000, "display_errors": 0,
        "session.save_path": work / "sessions", "session.gc_probability": 0, "error_reporting": "E_ERROR",
    }
    (work / "sessions").mkdir(exist_ok=True)
    flags = [part for key, value in settings.items() for part in ("-d", f"{key}={value}")]
    services.start(name, ["php", *flags, "-S", f"127.0.0.1:{port}", "-t", root], port, cwd=root,
                   env={"PHP_CLI_SERVER_WORKERS": str(workers), **(env or {})})
    return port
