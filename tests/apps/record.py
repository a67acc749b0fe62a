"""Records how people and programs use Debian's web applications through an Envoy with its tap filter.

Everything runs on free loopback ports with data in a temporary folder, and ends with the recording.
"""

import argparse
import concurrent.futures
import json
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import gateway
import install
import mail
import pack
import people
import redmine
from services import Database, Services

# What has to be there, and Debian's packages for it.
NEEDED = {
    "/usr/sbin/mariadbd": "mariadb-server", "/usr/bin/php": "php-cli", "/usr/share/wordpress/wp-login.php": "wordpress",
    "/usr/share/wordpress/wp-content/themes/twentytwentyone/index.php": "wordpress-theme-twentytwentyone",
    "/usr/share/mediawiki/index.php": "mediawiki", "/usr/share/dokuwiki/doku.php": "dokuwiki", "/usr/share/phpmyadmin/index.php": "phpmyadmin",
    "/usr/share/roundcube/index.php": "roundcube", "/usr/share/roundcube/program/actions/mail/index.php": "roundcube-core",
    "/usr/share/redmine/config.ru": "redmine", "/usr/bin/puma": "puma", "/usr/lib/dovecot/imap": "dovecot-imapd", "/usr/bin/node": "nodejs",
    "/usr/bin/openssl": "openssl", "/usr/lib/python3/dist-packages/requests/__init__.py": "python3-requests",
}
MODULES = {"mysqli": "php-mysql", "pdo_sqlite": "php-sqlite3", "gd": "php-gd", "intl": "php-intl", "mbstring": "php-mbstring", "xml": "php-xml", "zip": "php-zip", "curl": "php-curl"}
GEMS = {"sqlite3": "ruby-sqlite3"}
# What a recording takes while it is made, in bytes.
ROOM = 4 << 30


def missing():
    """Debian's packages that are not installed."""
    packages = [package for file, package in NEEDED.items() if not pathlib.Path(file).exists()]
    if shutil.which("php"):
        loaded = subprocess.run(["php", "-m"], capture_output=True, text=True, check=False).stdout.lower().split()
        packages += [package for module, package in MODULES.items() if module not in loaded]
    if shutil.which("gem"):
        packages += [package for gem, package in GEMS.items() if subprocess.run(["gem", "list", "-i", f"^{gem}$"], capture_output=True, check=False).returncode]
    return packages


def memory():
    """A folder in memory if there is room for the databases and the traces: a disk takes several times as long."""
    shared = pathlib.Path("/dev/shm")
    return shared if shared.is_dir() and shutil.disk_usage(shared).free > ROOM else None


def version(chromium):
    """The user agent's version: the browser's first number, as browsers show it."""
    text = subprocess.run([chromium, "--version"], capture_output=True, text=True, check=True).stdout
    return f"{[word for word in text.split() if word[0].isdigit()][0].split('.')[0]}.0.0.0"


def started(services, work, everyone, names):
    """Installs and starts the applications; gives their ports by host."""
    database = Database(services, work)
    ports = {"imap": mail.imap(services, work, everyone), "smtp": mail.smtp(work / "mail")}
    place = install.Place(services, work, database, everyone, ports)

    def one(name):
        begin = time.monotonic()
        port = (redmine.redmine if name == "redmine" else getattr(install, name))(place)
        print(f"{name} is installed after {time.monotonic() - begin:.0f} s", flush=True)
        return install.HOSTS[name], port

    # The tracker takes longest.
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return dict(pool.map(one, sorted(names, key=lambda name: name != "redmine")))


def plan(options, work, port, everyone, names):
    """What `drive.mjs` and `clients.py` are told."""
    # Not everybody uses everything with a browser: so a recording is made in less time. Programs act for everybody.
    chance = random.Random(options.seed)
    numbers = list(range(len(everyone)))
    visitors = {}
    for name in names:
        # Administrators of an application are among its visitors.
        visitors[name] = sorted(set(numbers[:4]) | set(chance.sample(numbers[4:], max(0, options.visitors - 4))))
    keys = {name: json.loads(file.read_text()) for name in names if (file := work / f"{name}-keys.json").exists()}
    file = work / "plan.json"
    file.write_text(json.dumps({
        "playwright": str(options.playwright), "chromium": options.chromium, "certificate": str(work / "gateway.pem"), "gateway": port,
        "seed": options.seed, "people": everyone, "visitors": visitors, "hosts": {name: install.HOSTS[name] for name in names}, "keys": keys}))
    return file


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--envoy", type=pathlib.Path, required=True)
    parser.add_argument("--chromium", required=True)
    parser.add_argument("--playwright", type=pathlib.Path, required=True, help="an installed playwright-core")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the folder of the recordings")
    parser.add_argument("--only", help="some of the applications, separated by commas")
    parser.add_argument("--visitors", type=int, default=24, help="how many people use each application with a browser")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if lacking := missing():
        sys.exit(f"install Debian's packages {' '.join(sorted(set(lacking)))} (without recommended ones; none has to be configured or started)")
    # What was started ends in any case.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    names = options.only.split(",") if options.only else list(install.HOSTS)
    begin, here = time.monotonic(), pathlib.Path(__file__).parent
    everyone = people.people(options.seed, version(options.chromium))
    with tempfile.TemporaryDirectory(prefix="palisade-apps-", dir=memory()) as folder:
        work = pathlib.Path(folder)
        services = Services(work)
        try:
            behind = started(services, work, everyone, names)
            port = gateway.start(services, work, options.envoy, behind)
            file = plan(options, work, port, everyone, names)
            drivers = [subprocess.Popen([str(part) for part in argv], start_new_session=True)
                       for argv in (["node", here / "drive.mjs", file], [sys.executable, here / "clients.py", file])]
            services.running += zip(("browsers", "programs"), drivers)
            failed = [pathlib.Path(driver.args[1]).name for driver in drivers if driver.wait()]
            if failed:
                sys.exit(f"{' and '.join(failed)} failed")
        finally:
            services.stop()
        print(f"recorded after {time.monotonic() - begin:.0f} s", flush=True)
        pack.pack(work / "tap", options.out, {name: install.HOSTS[name] for name in names})


if __name__ == "__main__":
    main()
