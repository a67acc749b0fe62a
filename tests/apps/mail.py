"""Mail for the webmail application: an IMAP server, and an SMTP server that delivers to its folders."""

import shutil
import socketserver
import threading
import time

from services import free_port


def deliver(folder, login, data, unique=[0]):
    """Puts a message into an inbox."""
    box = folder / login / "Maildir"
    for part in ("new", "cur", "tmp"):
        (box / part).mkdir(parents=True, exist_ok=True)
    unique[0] += 1
    name = f"{int(time.time())}.{unique[0]}.mail"
    (box / "tmp" / name).write_bytes(data)
    (box / "tmp" / name).chmod(0o666)
    (box / "tmp" / name).rename(box / "new" / name)


class Session(socketserver.StreamRequestHandler):
    """One SMTP connection; any user may send."""

    def handle(self):
        self.say("220 mail.example ESMTP")
        receivers = []
        while line := self.rfile.readline():
            word = line.decode(errors="replace").strip()
            verb = word.upper().split(" ")[0]
            if verb in ("EHLO", "HELO"):
                self.say("250-mail.example\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250 SIZE 20000000")
            elif verb == "RCPT":
                receivers.append(word.partition("<")[2].partition("@")[0])
                self.say("250 OK")
            elif verb == "DATA":
                self.say("354 Go on")
                message = self.data()
                for login in receivers:
                    deliver(self.server.folder, login.lower(), message)
                receivers = []
                self.say("250 OK")
            elif verb == "QUIT":
                self.say("221 Bye")
                return
            else:
                self.say("250 OK")

    def say(self, text):
        self.wfile.write(text.encode() + b"\r\n")

    def data(self):
        lines = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            lines.append(line[1:] if line.startswith(b"..") else line)
        return b"".join(lines)


class Server(socketserver.ThreadingTCPServer):
    """The SMTP server."""

    allow_reuse_address = True
    daemon_threads = True


def smtp(folder):
    """Starts the SMTP server; gives its port."""
    server = Server(("127.0.0.1", 0), Session)
    server.folder = folder
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def imap(services, work, people):
    """Starts the IMAP server with a mailbox for each of the people; gives its port."""
    port, folder, users = free_port(), work / "mail", work / "dovecot.users"
    folder.mkdir()
    # Its workers run as another user than root: the folders above are opened for them.
    for above in (work, folder):
        above.chmod(0o755)
    users.write_text("".join(f"{one['login']}:{{PLAIN}}{one['password']}\n" for one in people))
    users.chmod(0o644)
    for one in people:
        deliver(folder, one["login"], f"From: post@mail.example\r\nTo: {one['email']}\r\nSubject: Welcome\r\n\r\nHello.\r\n".encode())
    shutil.chown(folder, "mail", "mail")
    for path in folder.rglob("*"):
        shutil.chown(path, "mail", "mail")
    config = work / "dovecot.conf"
    config.write_text(f"""
base_dir = {work}/dovecot
log_path = {work}/log/dovecot.log
protocols = imap
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
first_valid_uid = 1
mail_location = maildir:{folder}/%n/Maildir
mail_uid = mail
mail_gid = mail
mail_max_userip_connections = 100
passdb {{
  driver = passwd-file
  args = {users}
}}
userdb {{
  driver = static
  args = uid=mail gid=mail home={folder}/%n
}}
namespace inbox {{
  inbox = yes
  mailbox Sent {{
    auto = subscribe
  }}
  mailbox Drafts {{
    auto = subscribe
  }}
  mailbox Trash {{
    auto = subscribe
  }}
}}
service imap-login {{
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
""")
    services.start("dovecot", ["/usr/sbin/dovecot", "-F", "-c", config], port)
    return port
