// Lets people use the applications with a browser.
//
//   node drive.mjs PLAN.json
//
// The plan names the programs, the gateway, the hosts and the people; `record.py` writes it.

import { readFileSync } from "node:fs";
import { launch } from "./kit.mjs";

const plan = JSON.parse(readFileSync(process.argv[2]));
const browser = await launch(plan);
await Promise.all(Object.keys(plan.hosts).map(async (name) => {
  const drivers = await import(`./${name}.mjs`);
  await drivers[name](browser, { ...plan, visitors: plan.visitors[name].map((number) => plan.people[number]) });
}));
await browser.close();
