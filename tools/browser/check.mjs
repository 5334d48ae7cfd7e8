// What tools/browser/check runs: every line that begins with `ok` is a thing that was seen in the browser.
import { spawn, execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { launch } from "./browser.mjs";

const ebp = process.env.EBP, shots = process.env.SCREENSHOTS;
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), "ebp-view-"));
const run = (...words) => execFileSync(ebp, words, { cwd: scratch, stdio: ["ignore", "pipe", "inherit"] }).toString();
let failures = 0;
const check = (is, what) => {
  console.log(`${is ? "ok    " : "FAILED"} ${what}`);
  if (!is) failures += 1;
};

// What is looked at: a small model, 100 clouds of 2048 points, curves, and names that try to be HTML.
const tiny = ["data.num_shapes=12", "data.num_points=300", "data.held_out=4", "evaluation.num_sets=4", "evaluation.num_points=60",
  "model.encoder_widths=[8,12]", "model.energy_widths=[12]", "model.latent_dim=3", "model.num_proposals=40", "batch_size=3",
  "train.num_steps=40", "train.record_every=1"].flatMap((word) => ["--set", word]);
run("train", "shapes", "--out", "run", "-q", ...tiny);
run("view", "run", "-q", "-n", "12", "--points", "300", "-o", "model.html");
run("data", "shapes", "hundred", "-n", "100", "--points", "2048");
run("view", "hundred/chair.npy", "-o", "hundred.html");
run("train", "sines", "--out", "sines", "-q", "--set", "train.num_steps=20", "--set", "model.energy_widths=[12,12]");
run("view", "sines", "-q", "-o", "sines.html");
const evil = "<img src=x onerror=alert(1)>";
fs.mkdirSync(path.join(scratch, evil));
for (const name of ["a", "b"]) fs.writeFileSync(path.join(scratch, evil, `<script>alert(2)<!--${name}.xyz`), "0 0 0\n1 1 1\n0 1 2\n");
run("view", evil, "-o", "evil.html");
const size = fs.statSync(path.join(scratch, "hundred.html")).size;
check(size < 3e6, `a page of 100 clouds of 2048 points has ${(size / 1e6).toFixed(2)} MB, below 3`);

const browser = await launch();
const lab = await browser.newPage();

// The share of pixels that differ between two screenshots, and the share unlike their own first pixel.
const compare = (one, other) => lab.evaluate(async ([a, b]) => {
  const read = async (text) => {
    const image = new Image();
    image.src = `data:image/png;base64,${text}`;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height), pen = canvas.getContext("2d");
    pen.drawImage(image, 0, 0);
    return pen.getImageData(0, 0, image.width, image.height).data;
  };
  const [x, y] = [await read(a), await read(b)];
  let [differing, filled] = [0, 0];
  for (let i = 0; i < x.length; i += 4) {
    if (Math.abs(x[i] - y[i]) + Math.abs(x[i + 1] - y[i + 1]) + Math.abs(x[i + 2] - y[i + 2]) > 12) differing += 1;
    if (Math.abs(x[i] - x[0]) + Math.abs(x[i + 1] - x[1]) + Math.abs(x[i + 2] - x[2]) > 60) filled += 1;
  }
  return { differing: differing / (x.length / 4), filled: filled / (x.length / 4) };
}, [one.toString("base64"), other.toString("base64")]);

const open = async (address, options = {}) => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  page.errors = [];
  page.requests = [];
  page.on("console", (message) => message.type() === "error" && page.errors.push(message.text()));
  page.on("pageerror", (error) => page.errors.push(error.message));
  page.on("dialog", (dialog) => { page.errors.push(`dialog ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => page.requests.push(request.url()));
  // Counts what the page asks of the graphics device.
  await page.addInitScript(() => {
    window.drawn = { calls: 0, clears: 0 };
    for (const name of Object.getOwnPropertyNames(WebGL2RenderingContext.prototype)) {
      if (!/^(draw|clear)/.test(name) || /^clear(Color|Depth|Stencil)$/.test(name) || name === "drawBuffers" || name.startsWith("drawingBuffer")) continue;
      const was = WebGL2RenderingContext.prototype[name];
      WebGL2RenderingContext.prototype[name] = function (...words) {
        window.drawn[name === "clear" ? "clears" : "calls"] += 1;
        return was.apply(this, words);
      };
    }
  });
  const started = Date.now();
  await page.goto(address);
  if (!options.hasNoClouds) await page.waitForFunction(() => Number(document.getElementById("clouds")?.dataset.draws) > 0, null, { timeout: 20000 });
  page.opened = Date.now() - started;
  return page;
};
const file = (name) => `${pathToFileURL(path.join(scratch, name))}#still`;
const settle = (page) => page.waitForTimeout(250);
const stage = (page) => page.locator(".stage").screenshot();
const keep = async (page, name) => shots && page.screenshot({ path: path.join(shots, `${name}.png`) });
const changes = async (page, what, act, least = 0.002) => {
  const before = await stage(page);
  await act();
  await settle(page);
  const { differing } = await compare(before, await stage(page));
  check(differing >= least, `${what} changes ${(100 * differing).toFixed(1)} % of the pixels`);
};
const isQuiet = (page, name) => {
  check(page.errors.length === 0, `${name}: no error ${page.errors.join(" | ")}`);
  const others = page.requests.filter((address) => !/^(file|data|blob):/.test(address));
  check(others.length === 0, `${name}: no request ${others.join(" | ")}`);
};

{
  const page = await open(file("hundred.html"));
  check(page.opened < 2000, `100 clouds of 2048 points open from file:// in ${page.opened} ms, below 2000`);
  await settle(page);
  const picture = await stage(page);
  check((await compare(picture, picture)).filled > 0.05, "the canvas is not empty");
  check((await page.getAttribute("#clouds", "data-points")) === "204800", "204,800 points are drawn");
  await page.evaluate(() => { window.drawn = { calls: 0, clears: 0 }; });
  for (let i = 0; i < 5; i++) { await page.keyboard.press("ArrowLeft"); await page.waitForTimeout(60); }
  const { calls, clears } = await page.evaluate(() => window.drawn);
  check(calls > 0 && calls === clears, `one draw call a frame: ${calls} calls in ${clears} frames`);
  // What the page itself does in a frame, and what a frame takes with the drawing, which is here the processor's.
  const [own, pace] = await page.evaluate(() => new Promise((done) => {
    const ask = window.requestAnimationFrame.bind(window), own = [];
    window.requestAnimationFrame = (work) => ask((time) => {
      const started = performance.now();
      work(time);
      own.push(performance.now() - started);
    });
    document.getElementById("play").click();
    const started = performance.now();
    let frames = 0;
    const tick = () => {
      if (++frames < 30) return ask(tick);
      own.sort((x, y) => x - y);
      return done([own[own.length >> 1], (performance.now() - started) / frames]);
    };
    ask(tick);
  }));
  check(own < 1000 / 60, `the page takes ${own.toFixed(1)} ms of the 16.7 ms of a frame while all clouds turn`);
  console.log(`       ${pace.toFixed(0)} ms a frame with the drawing, done in software by the processor`);
  await page.keyboard.press(" ");
  isQuiet(page, "clouds of a file");
  await keep(page, "hundred");
  await page.context().close();
}
{
  const page = await open(file("model.html"));
  await settle(page);
  await changes(page, "ArrowLeft", () => page.keyboard.press("ArrowLeft"));
  await changes(page, "ArrowUp", () => page.keyboard.press("ArrowUp"));
  await changes(page, "+", () => page.keyboard.press("+"));
  await changes(page, "the wheel", async () => { await page.mouse.move(500, 400); await page.mouse.wheel(0, 300); });
  await changes(page, "dragging", async () => { await page.mouse.down(); await page.mouse.move(620, 430, { steps: 4 }); await page.mouse.up(); });
  await changes(page, "colour by density", () => page.selectOption("#colouring", "log density"));
  await changes(page, "C", () => page.keyboard.press("c"));
  await changes(page, "the size", () => page.locator("#size").fill("1"));
  await changes(page, "1", () => page.keyboard.press("1"), 0.02);
  await changes(page, "0", () => page.keyboard.press("0"), 0.02);
  await changes(page, "a click", () => page.mouse.click(200, 300), 0.02);
  await changes(page, "another click", () => page.mouse.click(200, 300), 0.02);
  await changes(page, "T", () => page.keyboard.press("t"), 0.5);
  await page.keyboard.press("t");
  await page.keyboard.press("r");
  await settle(page);
  // Linked cameras turn all clouds, others only the one under the pointer.
  const halves = async () => {
    const box = await page.locator(".stage").boundingBox(), width = Math.floor(box.width / 2);
    return Promise.all([0, 1].map((half) => page.screenshot({ clip: { x: box.x + half * width, y: box.y, width, height: box.height } })));
  };
  const turn = async () => {
    const before = await halves();
    await page.mouse.move(120, 220);
    await page.mouse.down();
    await page.mouse.move(180, 240, { steps: 4 });
    await page.mouse.up();
    await settle(page);
    const after = await halves();
    return Promise.all([0, 1].map(async (half) => (await compare(before[half], after[half])).differing));
  };
  const linked = await turn();
  check(linked.every((share) => share > 0.002), "linked cameras turn together");
  await page.keyboard.press("l");
  const own = await turn();
  check(own[0] > 0.0005 && own[1] === 0, "others turn by themselves");
  await page.keyboard.press("l");
  await keep(page, "model-all");
  for (const view of ["rows", "steps", "blends"]) {
    await changes(page, `V to ${view}`, () => page.keyboard.press("v"), 0.02);
    await keep(page, `model-${view}`);
    if (view === "steps") await changes(page, "colour by step", () => page.selectOption("#colouring", "step"));
    if (view !== "rows") await changes(page, `. in ${view}`, async () => { for (let i = 0; i < 4; i++) await page.keyboard.press(view === "steps" ? "," : "."); });
  }
  await changes(page, "the slider of blends", () => page.locator("#steps").fill("6"));
  const place = await page.locator("#steps").inputValue();
  await page.keyboard.press(" ");
  await page.waitForTimeout(600);
  check((await page.locator("#steps").inputValue()) !== place, "space plays a blend");
  await page.keyboard.press(" ");
  for (const room of ["Training", "Pictures", "Numbers"]) {
    await page.getByRole("tab", { name: room }).click();
    check((await page.locator(".room:not([hidden]) .card").count()) > 0, `${room} has cards`);
    await keep(page, `model-${room.toLowerCase()}`);
  }
  await page.keyboard.press("?");
  check(await page.locator("dialog").isVisible(), "? shows the keys");
  isQuiet(page, "a model of clouds");
  await page.context().close();
}
{
  const page = await open(file("model.html"), { viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true, colorScheme: "dark", deviceScaleFactor: 2 });
  await settle(page);
  check(await page.evaluate(() => document.documentElement.dataset.theme === "dark"), "a dark system gets a dark page");
  check(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "a narrow screen needs no scrolling sideways");
  const session = await page.context().newCDPSession(page);
  const touch = (type, ...places) => session.send("Input.dispatchTouchEvent", { type, touchPoints: places.map(([x, y], id) => ({ x, y, id })) });
  await changes(page, "a finger", async () => {
    await touch("touchStart", [150, 450]);
    for (let i = 1; i <= 5; i++) await touch("touchMove", [150 + 16 * i, 450]);
    await touch("touchEnd");
  });
  await changes(page, "two fingers", async () => {
    await touch("touchStart", [180, 450], [210, 450]);
    for (let i = 1; i <= 5; i++) await touch("touchMove", [180 - 14 * i, 450], [210 + 14 * i, 450]);
    await touch("touchEnd");
  });
  await keep(page, "narrow-dark");
  isQuiet(page, "a narrow dark page");
  await page.context().close();
}
{
  const page = await open(file("sines.html"), { hasNoClouds: true });
  await settle(page);
  const map = () => page.getAttribute("#density", "data-map");
  const before = await map();
  const box = await page.locator("#density").boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.8, box.y + box.height * 0.2, { steps: 4 });
  await page.mouse.up();
  check((await map()) !== before, "dragging the point of the context shows another density");
  await keep(page, "densities");
  await page.getByRole("button", { name: "Curve 2" }).click();
  const few = await map();
  await page.keyboard.press("ArrowRight");
  check((await map()) !== few, "more points of a curve show another density");
  isQuiet(page, "curves");
  await page.context().close();
}
{
  const page = await open(file("evil.html"));
  await settle(page);
  check((await page.locator("h1").textContent()) === evil, "names of folders stay text");
  check((await page.locator(".labels").textContent()).includes("<script>alert(2)<!--a"), "names of clouds stay text");
  isQuiet(page, "dangerous names");
  await page.context().close();
}
{
  const record = path.join(scratch, "run", "metrics.jsonl");
  const server = spawn(ebp, ["view", "--live", "run"], { cwd: scratch });
  const address = await new Promise((done) => server.stdout.once("data", (text) => done(text.toString().split(" ")[0].trim())));
  const page = await open(address, { hasNoClouds: true });
  const started = Date.now();
  const reached = (step) => page.waitForFunction((step) => Number(document.body.dataset.step) >= step, step, { timeout: 15000 });
  await reached(40);
  check(Date.now() - started < 5000, `the first update came after ${Date.now() - started} ms, below 5000`);
  fs.appendFileSync(record, `{"step":40,"loss":1.25}\n{"step":41,"loss":1.125}\n`);
  await reached(42);
  check((await page.locator('[data-name="loss"] small').textContent()).includes("1.125"), "a live page shows what was added");
  await page.getByRole("tab", { name: "Pictures" }).click();
  await page.waitForFunction(() => [...document.images].some((image) => image.naturalWidth > 0), null, { timeout: 5000 });
  check(true, "a live page shows the run's pictures");
  await page.getByRole("tab", { name: "Training" }).click();
  await keep(page, "live");
  const strangers = page.requests.filter((one) => !one.startsWith(address) && !/^(data|blob):/.test(one));
  check(page.errors.length === 0 && strangers.length === 0, `the live page asks its server alone ${page.errors.concat(strangers).join(" | ")}`);
  server.kill("SIGINT");
  const code = await new Promise((done) => server.once("exit", done));
  check(code === 0, "Ctrl-C ends the server");
  await page.waitForFunction(() => document.getElementById("pulse").className === "stale", null, { timeout: 15000 });
  check((await page.locator('[data-name="loss"] svg').count()) === 1, "without its server the page keeps what it has");
  check(fs.readFileSync(record, "utf8").trim().split("\n").length === 42, "the record is as the run left it");
  await page.context().close();
}
await browser.close();
fs.rmSync(scratch, { recursive: true });
console.log(failures ? `${failures} checks FAILED` : "all checks in the browser passed");
process.exit(failures ? 1 : 0);
