// What `tools/browser/check --live` does: trains `shapes` alone, with a page of `ebp view --live` that a client asks
// every second, and with that page open in a browser on the same machine, in turn; prints steps a second and
// their ratios, and when the first update was seen. At the end of a watched run browser and server are killed,
// and its record must be that of the run nobody looked at. To be run on an idle machine.
import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { launchProcess } from "./browser.mjs";

const ebp = process.env.EBP, rounds = 3;
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), "ebp-live-"));
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
const settings = ["train.num_steps=3000", "train.record_every=10", "evaluation.num_sets=4", "evaluation.num_points=60", "evaluation.every=3000"];
const train = (name) => {
  const words = ["train", "shapes", "-q", "--out", name, ...settings.flatMap((word) => ["--set", word])];
  const child = spawn(ebp, words, { cwd: scratch, stdio: ["ignore", "ignore", "inherit"] });
  return new Promise((done) => child.once("exit", done));
};
const record = (name) => fs.readFileSync(path.join(scratch, name, "metrics.jsonl"), "utf8");
// Steps a second between the first and the last line of the record, by the times at which they were there.
const rate = async (name, over) => {
  const file = path.join(scratch, name, "metrics.jsonl");
  const seen = [];
  while (!over.is) {
    if (fs.existsSync(file)) {
      const lines = fs.readFileSync(file, "utf8").trim().split("\n").filter(Boolean);
      const step = lines.length ? JSON.parse(lines.at(-1)).step : 0;
      if (step > (seen.at(-1)?.[0] ?? 0)) seen.push([step, performance.now()]);
    }
    await wait(200);
  }
  const [first, last] = [seen[0], seen.at(-1)];
  return (1000 * (last[0] - first[0])) / (last[1] - first[1]);
};
const serve = async (name) => {
  while (!fs.existsSync(path.join(scratch, name, "config.toml"))) await wait(20);
  const server = spawn(ebp, ["view", "--live", name], { cwd: scratch });
  const address = await new Promise((done) => server.stdout.once("data", (text) => done(text.toString().split(" ")[0].trim())));
  return { server, address };
};

const rates = { alone: [], client: [], browser: [] };
const first = [];
for (let round = 0; round < rounds; round++) {
  for (const way of Object.keys(rates)) {
    const name = `${way}-${round}`, over = { is: false };
    const run = train(name).then((code) => { over.is = true; return code; });
    const found = rate(name, over);
    let kill = null, server = null;
    if (way !== "alone") {
      const served = await serve(name);
      server = served.server;
      if (way === "client") {
        (async () => {
          while (!over.is) {
            await fetch(`${served.address}metrics.json?from=0&mark=`).then((answer) => answer.text()).catch(() => {});
            await wait(1000);
          }
        })();
      } else {
        const launched = await launchProcess();
        kill = launched.kill;
        const page = await launched.browser.newPage();
        const started = performance.now();
        await page.goto(served.address);
        await page.waitForFunction(() => Number(document.body.dataset.step) > 0, null, { timeout: 30000 });
        first.push(performance.now() - started);
      }
    }
    // The last watched run loses both on the way.
    if (way === "browser" && round === rounds - 1) {
      while (!over.is && !fs.existsSync(path.join(scratch, name, "metrics.jsonl"))) await wait(50);
      await wait(3000);
      process.kill(server.pid, "SIGKILL");
      kill();
      server = kill = null;
    }
    const code = await run;
    if (code !== 0) throw new Error(`the run ${name} ended with ${code}`);
    server?.kill("SIGINT");
    kill?.();
    rates[way].push(await found);
    console.log(`round ${round + 1}, ${way}: ${rates[way].at(-1).toFixed(1)} steps a second`);
  }
}
const median = (list) => [...list].sort((x, y) => x - y)[list.length >> 1];
for (const way of ["client", "browser"]) {
  const ratios = rates[way].map((one, round) => one / rates.alone[round]);
  console.log(`${way} / alone: ${ratios.map((ratio) => ratio.toFixed(3)).join(", ")}; median ${median(ratios).toFixed(3)}`);
}
console.log(`first update after ${first.map((ms) => (ms / 1000).toFixed(2)).join(", ")} s`);
const same = record(`browser-${rounds - 1}`) === record("alone-0");
console.log(`${same ? "ok    " : "FAILED"} the run whose server and browser were killed has the record of the run alone`);
fs.rmSync(scratch, { recursive: true });
process.exit(same ? 0 : 1);
