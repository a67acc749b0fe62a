"""What programs without a browser share: connections with a person's own address, and what they write."""

import json
import pathlib
import random
import re
import socket
import ssl
import threading

import urllib3
import urllib3.util.connection

CONTENT = json.loads((pathlib.Path(__file__).parent / "content.json").read_text())
current = threading.local()


def connect(address, *_args, **_more):
    """A connection to the gateway that says whose it is."""
    connection = socket.socket()
    connection.settimeout(60)
    connection.connect(("127.0.0.1", current.gateway))
    six = ":" in current.address
    own = "2001:db8::443" if six else "192.0.2.1"
    line = f"PROXY TCP{6 if six else 4} {current.address} {own} {connection.getsockname()[1]} {address[1]}\r\n"
    connection.sendall(line.encode())
    return connection


def through(gateway):
    """Lets the standard library's and urllib3's connections of this program go through the gateway."""
    socket.create_connection = connect
    urllib3.util.connection.create_connection = connect
    urllib3.disable_warnings()
    return gateway


def be(gateway, person):
    """Makes this thread one of the people."""
    current.gateway, current.address = gateway, person["address"]


def trusting():
    """TLS that takes the gateway's own certificate."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class Content:
    """Sentences, titles and code from `content.json` and a seed, as `content.mjs` makes them for browsers."""

    def __init__(self, seed, language, people):
        self.chance, self.language, self.people = random.Random(seed), language, people

    def number(self, low, high):
        return self.chance.randint(low, high)

    def pick(self, values):
        return self.chance.choice(list(values))

    def often(self, share):
        return self.chance.random() < share

    def tongue(self):
        return self.language if self.often(0.6) else self.pick(CONTENT["words"])

    def word(self, language=None):
        return self.pick(CONTENT["words"][language or self.tongue()])

    def fill(self, pattern, language=None):
        language = language or self.tongue()
        marks = {
            "w": lambda: self.word(language), "n": lambda: str(self.number(1, 99)), "s": self.sentence,
            "name": lambda: self.pick(self.people)["name"], "code": lambda: escape(self.code()),
            "id": lambda: f"{self.pick(('count', 'find', 'load', 'sort'))}_{self.pick(('boats', 'rows', 'files'))}{self.number(1, 99)}",
        }
        return re.sub("§(name|code|id|[wns])", lambda mark: marks[mark[1]](), pattern)

    def sentence(self, language=None):
        language = language or self.tongue()
        return self.fill(self.pick(CONTENT["sentences"][language]), language)

    def title(self):
        return f"{self.word()} {self.word()} {self.number(1, 9999)}"

    def text(self, low=1, high=4):
        return self.pick((" ", "\n\n")).join(self.sentence() for _ in range(self.number(low, high)))

    def code(self, kind=None):
        return self.fill(self.pick(CONTENT["code"][kind or self.pick(CONTENT["code"])]), "en")

    def html(self, low=1, high=5):
        return "\n".join(self.fill(self.pick(CONTENT["html"])) for _ in range(self.number(low, high)))

    def search(self):
        return self.fill(self.pick(CONTENT["searches"])) if self.often(0.6) else f"{self.word()} {self.word()}"

    def file(self):
        """A small file: its name, its type and its bytes."""
        name = f"{self.pick(('notes', 'plan', 'log', 'table'))}-{self.number(1, 99999)}"
        if self.often(0.5):
            return f"{name}.txt", "text/plain", self.text(2, 8).encode()
        rows = "\r\n".join(f'{self.number(1, 999)};"{self.word()}";{self.number(1, 99)},5' for _ in range(10))
        return f"{name}.csv", "text/csv", rows.encode()


def escape(text):
    """Text as it is written in HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
