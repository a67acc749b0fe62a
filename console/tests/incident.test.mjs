/** State and note of an incident that two operators have open, and an incident that falls silent. */
import { test } from "node:test";
import assert from "node:assert/strict";
import { answer, axe, login, open, withServer } from "./support.mjs";
import { incidents, paged } from "./samples.mjs";

let server, browser;
withServer((it) => ({ server, browser } = it));

/** Incidents of a gateway whose states are kept as the control plane does. */
function desk() {
  const list = incidents(3);
  const kept = { list, states: [] };
  /** Another operator writes a state beside the browser. */
  kept.write = (key, state, by, note) => (kept.list = kept.list.map((of) => (of.key === key ? { ...of, state, workflow: { key, state, by, at: Date.now(), note } } : of)));
  kept.show = async (page, by) => {
    await answer(page, "/security/_incidents", (url) => paged(kept.list.filter(({ state }) => state !== "resolved"), "incidents")(url));
    await answer(page, "/events/_search", { events: [], next: null, complete: true, searched_from: null, examined: 0 });
    await answer(page, "/security/_incident_state", (_, request) => {
      const { key, state, note } = request.postDataJSON();
      kept.states.push([state, note]);
      const workflow = { key, state, by, at: Date.now(), note };
      kept.list = kept.list.map((of) => (of.key === key ? { ...of, state, workflow: state === "open" ? null : workflow } : of));
      return { body: { done: true, workflow } };
    });
  };
  return kept;
}

test("a colleague's note is not written over unseen", async () => {
  const kept = desk();
  const { key } = kept.list[0];
  const path = `/console/incidents/${encodeURIComponent(key)}`;
  const [one, two] = [await open(browser, server), await open(browser, server)];
  await one.clock.install();
  await kept.show(one, "alice");
  await kept.show(two, "bob");
  await login(one, path);
  await login(two, path);
  const note = (page) => page.getByRole("textbox", { name: "Note" });
  await note(two).fill("bob looks at it");
  await two.getByRole("button", { name: "Acknowledge" }).click();
  await two.getByText("The incident is acknowledged.").waitFor();
  assert.equal(await note(two).inputValue(), "bob looks at it");
  // Untouched, the note follows.
  await one.clock.runFor(15_500);
  await one.waitForFunction(() => document.querySelector("textarea").value === "bob looks at it");
  // Touched, theirs is shown before it is written over.
  await note(one).fill("alice has solved it");
  await note(two).fill("bob knows more");
  await two.getByRole("button", { name: "Acknowledge" }).click();
  await two.waitForFunction(() => document.querySelectorAll(".toast").length === 2);
  await one.getByRole("button", { name: "Resolve" }).click();
  await one.getByRole("alert").getByText("bob knows more").waitFor();
  await axe(one, "a note of another operator");
  assert.deepEqual(kept.states.at(-1), ["acknowledged", "bob knows more"]);
  assert.ok(await one.getByRole("button", { name: "Resolve" }).isDisabled());
  await one.getByRole("button", { name: "Keep mine" }).click();
  assert.equal(await note(one).inputValue(), "alice has solved it");
  await one.getByRole("button", { name: "Acknowledge" }).click();
  await one.getByText("The incident is acknowledged.").waitFor();
  assert.deepEqual(kept.states.at(-1), ["acknowledged", "alice has solved it"]);
  // The poll tells it as well.
  await note(two).fill("bob types");
  await two.getByRole("button", { name: "Resolve" }).click();
  await two.getByRole("alert").getByText("alice has solved it").waitFor();
  await two.getByRole("button", { name: "Take theirs" }).click();
  assert.equal(await note(two).inputValue(), "alice has solved it");
  await one.done();
  await two.done();
});

test("Undo leads to the state that was there, also after another operator's, and not over a newer one", async () => {
  const kept = desk();
  const page = await open(browser, server);
  const { key } = kept.list[0];
  await kept.show(page, "alice");
  await login(page, `/console/incidents/${encodeURIComponent(key)}`);
  const pressed = () => page.locator("button[aria-pressed=true]").allTextContents();
  const undo = () => page.locator(".toast").last().getByRole("button", { name: "Undo" }).click();
  const note = page.getByRole("textbox", { name: "Note" });
  await note.fill("solved");
  kept.write(key, "acknowledged", "bob", "bob has it");
  await page.getByRole("button", { name: "Resolve" }).click();
  await page.getByRole("alert").getByText("bob has it").waitFor();
  assert.deepEqual(await pressed(), ["Acknowledge"], "the state before theirs is shown");
  await page.getByRole("button", { name: "Keep mine" }).click();
  await page.getByRole("button", { name: "Resolve" }).click();
  await page.getByText("The incident is resolved.").waitFor();
  // It is not listed any more.
  await page.getByText("There is no incident of this identity any more").waitFor();
  assert.deepEqual(await pressed(), ["Resolve"], "the state before is shown");
  await undo();
  await page.getByText("Undone.").waitFor();
  assert.deepEqual(kept.states, [["resolved", "solved"], ["acknowledged", "bob has it"]]);
  assert.deepEqual([await pressed(), await note.inputValue()], [["Acknowledge"], "bob has it"]);

  await page.getByRole("button", { name: "Open", exact: true }).click();
  await page.getByText("The incident is open.").waitFor();
  kept.write(key, "acknowledged", "bob", "bob again");
  await undo();
  await page.getByText("bob has changed state and note meanwhile: nothing is undone.").waitFor();
  assert.deepEqual(kept.states.at(-1), ["open", ""], "a newer state is written over");
  await page.done();
});

test("messages give way, those with Undo from ten on", async () => {
  const kept = desk();
  const page = await open(browser, server);
  await kept.show(page, "alice");
  await login(page, `/console/incidents/${encodeURIComponent(kept.list[0].key)}`);
  for (let turn = 1; turn <= 12; turn += 1) {
    await page.getByRole("button", { name: turn % 2 ? "Acknowledge" : "Open", exact: true }).click();
    while (kept.states.length < turn) await page.waitForTimeout(20);
    await page.locator(`button[aria-pressed=true]:not([disabled])`).waitFor();
  }
  await page.getByText("The incident is open.").last().waitFor();
  assert.equal(await page.locator(".toast").count(), 10);
  await page.done();
});

test("a note that would be thrown away is not taken", async () => {
  const kept = desk();
  const page = await open(browser, server);
  await kept.show(page, "alice");
  await login(page, `/console/incidents/${encodeURIComponent(kept.list[0].key)}`);
  await page.getByRole("textbox", { name: "Note" }).fill("for later");
  assert.ok(await page.getByRole("button", { name: "Open", exact: true }).isDisabled(), "a note can be given to a state that keeps none");
  await page.getByRole("button", { name: "Acknowledge" }).click();
  await page.getByText("The incident is acknowledged.").waitFor();
  await page.getByRole("button", { name: "Open", exact: true }).click();
  await page.getByText("The incident is open.").waitFor();
  assert.equal(await page.getByRole("textbox", { name: "Note" }).inputValue(), "");
  await page.locator(".toast").last().getByRole("button", { name: "Undo" }).click();
  await page.getByText("Undone.").waitFor();
  assert.deepEqual(kept.states, [["acknowledged", "for later"], ["open", ""], ["acknowledged", "for later"]]);
  await page.done();
});

test("an incident that falls silent keeps its page, what is typed and its dialog", async () => {
  const kept = desk();
  const page = await open(browser, server);
  await page.clock.install();
  await kept.show(page, "alice");
  await login(page, `/console/incidents/${encodeURIComponent(kept.list[0].key)}`);
  await page.getByRole("textbox", { name: "Note" }).fill("half of a");
  await page.getByRole("button", { name: "Ban", exact: true }).click();
  await page.getByLabel("Reason").fill("scans");
  kept.list = [];
  await page.clock.runFor(15_500);
  await page.getByText("There is no incident of this identity any more").waitFor();
  assert.equal(await page.getByLabel("Reason").inputValue(), "scans");
  await page.keyboard.press("Escape");
  assert.equal(await page.getByRole("textbox", { name: "Note" }).inputValue(), "half of a");
  await axe(page, "a silent incident");
  await page.reload();
  await page.getByText("There is no incident of this identity any more").waitFor();
  await page.done();
});
