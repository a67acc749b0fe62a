/** A proxy before a control plane that answers some paths itself: streams, and lists longer than a test can make. */
import { createServer, request as ask } from "node:http";
import { wantedBy } from "./samples.mjs";
import { NS } from "./support.mjs";

/** `answers`: by path below the API, what answers in the place of the control plane. Answers `{url, close}`. */
export async function proxy(server, answers) {
  const open = createServer((request, response) => {
    const url = new URL(request.url, server.url);
    const own = answers[url.pathname.startsWith(NS) ? url.pathname.slice(NS.length) : url.pathname];
    if (own) return void own(request, response, url);
    const onward = ask(new URL(request.url, server.url), { method: request.method, headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    request.pipe(onward);
  });
  await new Promise((resolve) => open.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${open.address().port}`,
    close: () => {
      open.closeAllConnections();
      open.close();
    },
  };
}

/** Answers pages of a list from texts that are made once, as `_bans` and `_incidents` do. */
export function listed(list, field) {
  const rows = list.map((row) => JSON.stringify(row));
  return (_, response, url) => {
    const [page, size] = [Number(url.searchParams.get("page") ?? 1), Number(url.searchParams.get("pageSize") ?? 1000)];
    const wanted = wantedBy(url);
    const found = rows.filter((_, index) => wanted(list[index]));
    response.writeHead(200, { "content-type": "application/json", "cache-control": "no-store", "x-total": found.length, "x-pages": Math.max(1, Math.ceil(found.length / size)) });
    response.end(`{"${field}":[${found.slice((page - 1) * size, page * size).join(",")}]}`);
  };
}
