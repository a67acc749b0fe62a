"""Programs that use the applications' interfaces: REST, XML-RPC and the wiki's API.

usage: clients.py PLAN.json

The plan is that of `drive.mjs`, with the keys of the people.
"""

import collections
import concurrent.futures
import json
import pathlib
import sys
import urllib.parse
import urllib.request
import xmlrpc.client

import requests

import client
from client import Content

AGENTS = {
    # Libraries say their own name where no other is given.
    "library": None, "phone": "HarbourReader/3.4 (Android 14; okhttp)", "sync": "harbour-sync/1.2 (+https://example.org/sync)",
}


class Session(requests.Session):
    """A session of the library `requests` with one application."""

    def __init__(self, host, agent=None, **headers):
        super().__init__()
        self.host, self.verify = host, False
        self.trust_env = False
        if agent:
            self.headers["user-agent"] = agent
        self.headers.update(headers)

    def call(self, method, path, **more):
        """A request to a path of the application."""
        return self.request(method, f"https://{self.host}{path}", timeout=60, **more)


def block(content):
    """A paragraph, a list or code, as blog editors on phones write them."""
    return content.pick((
        lambda: f"<!-- wp:paragraph -->\n<p>{client.escape(content.text())}</p>\n<!-- /wp:paragraph -->", lambda: content.html(2, 5),
        lambda: f"<!-- wp:code -->\n<pre class=\"wp-block-code\"><code>{client.escape(content.code())}</code></pre>\n<!-- /wp:code -->"))()


def wordpress(person, plan, content, step):
    """The blog's REST interface."""
    session = Session(plan["hosts"]["wordpress"], AGENTS[content.pick(AGENTS)])
    session.auth = (person["login"], plan["keys"]["wordpress"][person["login"]])
    made = []

    def post():
        answer = session.call("POST", "/wp-json/wp/v2/posts", json={
            "title": content.title(), "content": "\n\n".join(block(content) for _ in range(content.number(1, 4))), "status": content.pick(("publish", "draft")),
            "excerpt": content.sentence(), "meta": {}, "format": "standard"})
        made.append(answer.json()["id"])

    for _ in range(12):
        step("post", post)
    for _ in range(5):
        step("edit", lambda: session.call("PUT", f"/wp-json/wp/v2/posts/{content.pick(made)}", json={"content": content.html(), "title": {"raw": content.title()}}))
        step("comment", lambda: session.call("POST", "/wp-json/wp/v2/comments", json={"post": content.pick(made), "content": content.text(1, 3), "author_name": person["name"]}))
        step("search", lambda: session.call("GET", "/wp-json/wp/v2/posts", params={"search": content.search(), "per_page": 10, "context": "edit", "orderby": "relevance"}))
    for _ in range(3):
        name, kind, data = content.file()
        step("media", lambda: session.call("POST", "/wp-json/wp/v2/media", data=data, headers={"content-type": kind, "content-disposition": f'attachment; filename="{name}"'}))
        step("page", lambda: session.call("POST", "/wp-json/wp/v2/pages", data=json.dumps({"title": content.title(), "content": content.html()}, ensure_ascii=False).encode(), headers={"content-type": "application/json; charset=utf-8"}))
        step("form", lambda: session.call("POST", "/wp-json/wp/v2/tags", data={"name": content.title(), "description": content.sentence()}))
    step("batch", lambda: session.call("POST", "/wp-json/batch/v1", json={"requests": [{"method": "POST", "path": "/wp/v2/tags", "body": {"name": content.title()}} for _ in range(3)]}))
    step("delete", lambda: session.call("DELETE", f"/wp-json/wp/v2/posts/{made[0]}", params={"force": "true"}))


def wordpress_xmlrpc(person, plan, content, step):
    """The blog's XML-RPC interface, with the standard library's client."""
    server = xmlrpc.client.ServerProxy(f"https://{plan['hosts']['wordpress']}/xmlrpc.php", context=client.trusting(), allow_none=False)
    who = (1, person["login"], plan["keys"]["wordpress"][person["login"]])
    made = []
    step("methods", server.system.listMethods)
    for _ in range(9):
        step("post", lambda: made.append(server.wp.newPost(*who, {
            "post_title": content.title(), "post_content": block(content), "post_status": "publish", "comment_status": "open", "terms_names": {"post_tag": [content.word(), content.word()]}})))
    for _ in range(4):
        step("blogger", lambda: server.metaWeblog.newPost(*who, {"title": content.title(), "description": content.html(), "mt_excerpt": content.sentence(), "mt_keywords": content.word()}, True))
        step("edit", lambda: server.wp.editPost(*who, content.pick(made), {"post_content": block(content)}))
        step("comment", lambda: server.wp.newComment(*who, int(content.pick(made)), {"content": content.text(1, 3)}))
        step("list", lambda: server.wp.getPosts(*who, {"number": content.number(1, 20), "s": content.search(), "orderby": "date"}, ["post_id", "post_title"]))
    name, kind, data = content.file()
    step("file", lambda: server.wp.uploadFile(*who, {"name": name, "type": kind, "bits": xmlrpc.client.Binary(data), "overwrite": True}))
    step("options", lambda: server.wp.setOptions(*who, {"blog_tagline": content.sentence()}))
    step("term", lambda: server.wp.newTerm(*who, {"name": content.title(), "taxonomy": "category", "description": content.sentence()}))
    many = xmlrpc.client.MultiCall(server)
    many.wp.getTaxonomies(*who)
    many.wp.getOptions(*who, ["blog_title", content.word()])
    step("many", many)


def wikitext(content):
    """A page of the wiki."""
    return "\n\n".join(content.pick((
        content.text, lambda: f"== {content.title()} ==\n{content.sentence()}", lambda: f"<pre>{content.code()}</pre>", lambda: f"<nowiki>{content.code('html')}</nowiki>",
        lambda: f"* [[{content.title()}]]\n* '''{content.sentence()}'''", lambda: f"{{| class=\"wikitable\"\n|-\n| {content.word()} || {content.number(1, 99)}\n|}}"))() for _ in range(content.number(1, 5)))


def mediawiki(person, plan, content, step):
    """A bot of the wiki."""
    session = Session(plan["hosts"]["mediawiki"], content.pick((None, "HarbourBot/0.9 (https://wiki.example/index.php?title=User:Keeper; keeper@mail.example) python-requests", "pagebot/2.1")))

    def api(method="POST", files=None, **fields):
        fields = {"format": "json", "formatversion": "2", **fields}
        return session.call(method, "/api.php", **({"params": fields} if method == "GET" else {"data": fields, "files": files})).json()

    def token(kind):
        return api("GET", action="query", meta="tokens", type=kind)["query"]["tokens"][f"{kind}token"]

    step("sign in", lambda: api(action="clientlogin", username=person["login"], password=person["password"], logintoken=token("login"), loginreturnurl="https://example.org/"))
    right = step("token", lambda: token("csrf"))
    pages = [content.title() for _ in range(9)]
    for _ in range(17):
        step("edit", lambda: api(action="edit", title=content.pick(pages), text=wikitext(content), summary=content.sentence(), token=right, bot="1", assert_="user"))
    for _ in range(5):
        step("append", lambda: api(action="edit", title=content.pick(pages), appendtext="\n" + wikitext(content), section="new", sectiontitle=content.title(), token=right))
        step("parse", lambda: api(action="parse", text=wikitext(content), contentmodel="wikitext", prop="text|links|templates|categories", title=content.pick(pages)))
        step("search", lambda: api("GET", action="query", list="search", srsearch=content.search(), srlimit=content.number(5, 50), srprop="snippet|timestamp", **{"continue": ""}))
    for _ in range(4):
        step("read", lambda: api("GET", action="query", prop="revisions|info|links", titles="|".join(pages[:content.number(2, 5)]), rvprop="ids|timestamp|user|comment|content", rvslots="main", inprop="url"))
        name, kind, data = content.file()
        step("upload", lambda: api(action="upload", filename=name, comment=content.sentence(), text=wikitext(content), ignorewarnings="1", token=right, files={"file": (name, data, kind)}))
        step("compare", lambda: api(action="compare", fromtitle=pages[0], totext=wikitext(content), toslots="main", **{"totext-main": wikitext(content)}))
    step("expand", lambda: api(action="expandtemplates", text=wikitext(content), prop="wikitext", title=pages[0]))


def dokuwiki(person, plan, content, step):
    """The handbook's XML-RPC interface."""
    who = f"{urllib.parse.quote(person['login'])}:{urllib.parse.quote(person['password'])}"
    server = xmlrpc.client.ServerProxy(f"https://{who}@{plan['hosts']['dokuwiki']}/lib/exe/xmlrpc.php", context=client.trusting())

    def page():
        return f"sync:{person['login']}:{content.word('en').replace(chr(39), '')}_{content.number(1, 99)}"

    def text():
        return "\n\n".join(content.pick((content.text, lambda: f"===== {content.title()} =====", lambda: f"<code>\n{content.code()}\n</code>", lambda: f"  * **{content.sentence()}**\n  * //{content.word()}//"))() for _ in range(content.number(1, 5)))

    step("version", server.dokuwiki.getVersion)
    for _ in range(16):
        step("page", lambda: server.wiki.putPage(page(), text(), {"sum": content.sentence(), "minor": content.often(0.3)}))
    for _ in range(7):
        step("append", lambda: server.dokuwiki.appendPage(page(), "\n" + text(), {"sum": content.word(), "minor": True}))
        step("search", lambda: server.dokuwiki.search(content.search()))
    for _ in range(5):
        step("read", lambda: server.wiki.getPage(page()))
        step("list", lambda: server.dokuwiki.getPagelist(content.pick(("sync", "notes", f"sync:{person['login']}")), {"depth": content.number(1, 5), "hash": True}))
    for _ in range(4):
        name, _kind, data = content.file()
        step("file", lambda: server.wiki.putAttachment(f"sync:{name}", xmlrpc.client.Binary(data), {"ow": True}))
        step("changes", lambda: server.wiki.getRecentChanges(content.number(1_700_000_000, 1_790_000_000)))


def xml(name, **fields):
    """A document of the tracker's interface."""
    parts = "".join(f"<{key}>{client.escape(str(value))}</{key}>" for key, value in fields.items())
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<{name}>{parts}</{name}>'.encode()


def redmine(person, plan, content, step):
    """The tracker's REST interface, in JSON and in XML."""
    key = plan["keys"]["redmine"][person["login"]]
    session = Session(plan["hosts"]["redmine"], AGENTS[content.pick(AGENTS)], **{"x-redmine-api-key": key})
    made = ["1"]

    def text():
        return "\n\n".join(content.pick((content.text, lambda: f"```\n{content.code()}\n```", lambda: f"* {content.sentence()}\n* `{content.word()}`"))() for _ in range(content.number(1, 4)))

    def issue():
        value = {"project_id": content.number(1, 4), "subject": content.title(), "description": text(), "priority_id": content.number(1, 5), "tracker_id": content.number(1, 3)}
        if content.often(0.3):
            # An older client, with the standard library alone.
            request = urllib.request.Request(f"https://{session.host}/issues.xml", xml("issue", **value), {"content-type": "application/xml", "x-redmine-api-key": key})
            urllib.request.urlopen(request, context=client.trusting(), timeout=60).read()
            return
        made.append(session.call("POST", "/issues.json", json={"issue": value}).json()["issue"]["id"])

    for _ in range(13):
        step("issue", issue)
    for _ in range(8):
        step("note", lambda: session.call("PUT", f"/issues/{content.pick(made)}.json", json={"issue": {"notes": text(), "done_ratio": content.number(0, 10) * 10, "private_notes": False}}))
        step("list", lambda: session.call("GET", "/issues.json", params={"subject": f"~{content.search()}", "sort": "updated_on:desc", "limit": content.number(1, 100), "status_id": "*", "created_on": ">=2026-01-01"}))
    for _ in range(5):
        name = f"Sync_{content.number(1, 9999)}"
        step("wiki", lambda: session.call("PUT", f"/projects/{content.pick(('boats', 'harbour', 'website'))}/wiki/{name}.json", json={"wiki_page": {"text": f"# {content.title()}\n\n{text()}", "comments": content.sentence()}}))
        step("time", lambda: session.call("POST", "/time_entries.xml", data=xml("time_entry", issue_id=content.pick(made), hours=f"{content.number(1, 9)}.25", activity_id=8, comments=content.sentence()[:200]), headers={"content-type": "application/xml"}))
        step("search", lambda: session.call("GET", "/search.json", params={"q": content.search(), "issues": "1", "attachments": "0"}))
    for _ in range(3):
        name, _kind, data = content.file()
        step("upload", lambda: session.call("POST", "/uploads.json", params={"filename": name}, data=data, headers={"content-type": "application/octet-stream"}))


def main():
    plan = json.loads(pathlib.Path(sys.argv[1]).read_text())
    gateway = client.through(plan["gateway"])
    people = plan["people"]
    failed, steps = collections.Counter(), collections.Counter()

    def run(kind, person):
        client.be(gateway, person)
        content = Content(plan["seed"] * 104_729 + person["number"] * 17 + len(kind.__name__), person["language"], plan["people"])

        def step(label, action):
            steps[kind.__name__] += 1
            try:
                return action()
            except Exception as error:  # A step that fails is told and left out.
                failed[f"{kind.__name__}, {label}: {type(error).__name__} {str(error)[:120]}"] += 1
                return None

        try:
            kind(person, plan, content, step)
        except Exception as error:
            failed[f"{kind.__name__}: {type(error).__name__} {str(error)[:120]}"] += 1

    kinds = [kind for kind in (wordpress, wordpress_xmlrpc, mediawiki, dokuwiki, redmine) if kind.__name__.partition("_")[0] in plan["hosts"]]
    def lane(kind):
        for number, person in enumerate(people, 1):
            run(kind, person)
            if number % 16 == 0:
                print(f"programs, {kind.__name__}: {number} of {len(people)} people", flush=True)

    # One program at an application at a time.
    with concurrent.futures.ThreadPoolExecutor(len(kinds)) as pool:
        list(pool.map(lane, kinds))
    print("programs: " + ", ".join(f"{name} {count} steps" for name, count in steps.items()) + f", {sum(failed.values())} failed")
    for why, count in failed.most_common(6):
        print(f"  {count} times {why}")


if __name__ == "__main__":
    main()
