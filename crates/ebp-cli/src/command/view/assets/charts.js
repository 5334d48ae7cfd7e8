// The room of training: a chart of every number that the run records, with its running mean.
class TrainingRoom {
  constructor(metrics, room) {
    this.room = room;
    this.columns = new Map();
    this.backs = [];
    this.smoothing = 0.9;
    this.isLog = false;
    this.cards = new Map();
    this.grid = element("div", { className: "grid" });
    this.empty = element("p", { className: "empty", textContent: "Nothing is recorded yet." });
    room.append(
      element("div", { className: "bar", style: "padding: 0 0 12px" },
        element("label", {}, "Smooth", element("input", { type: "range", min: 0, max: 0.99, step: 0.01, value: 0.9,
          oninput: (event) => { this.smoothing = Number(event.target.value); this.draw(); } })),
        element("label", {}, element("input", { type: "checkbox", onchange: (event) => { this.isLog = event.target.checked; this.draw(); } }), "Logarithmic where all numbers are positive")),
      this.empty, this.grid);
    this.take(metrics.columns || {}, metrics.backs || []);
    this.draw();
  }

  // Columns of [steps, values].
  take(columns, backs) {
    for (const [name, [steps, values]] of Object.entries(columns)) {
      if (!this.columns.has(name)) this.columns.set(name, { steps: [], values: [] });
      const column = this.columns.get(name);
      for (let i = 0; i < steps.length; i++) {
        column.steps.push(steps[i]);
        column.values.push(values[i]);
      }
    }
    this.backs.push(...backs);
  }

  // A run that went back records its steps again.
  forgetFrom(step) {
    for (const column of this.columns.values()) {
      let count = column.steps.length;
      while (count > 0 && column.steps[count - 1] >= step) count--;
      column.steps.length = count;
      column.values.length = count;
    }
  }

  clear() {
    this.columns.clear();
    this.backs = [];
    this.cards.clear();
    this.grid.replaceChildren();
  }

  get lastStep() {
    return Math.max(-1, ...[...this.columns.values()].map(({ steps }) => steps[steps.length - 1] ?? -1));
  }

  draw() {
    this.empty.hidden = this.columns.size > 0;
    const first = ["loss", "nats", "held_out_nats", "held_out_bound_nats", "perplexity", "excess"];
    const rank = (name) => (first.indexOf(name) + 1 || (name.startsWith("held_out") ? 20 : 30));
    const names = [...this.columns.keys()].sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
    for (const name of names) {
      if (!this.cards.has(name)) {
        const number = element("small"), holder = element("div");
        const card = element("section", { className: "card" }, element("h2", {}, name.replaceAll("_", " "), number), holder);
        card.dataset.name = name;
        this.cards.set(name, { card, number, holder });
      }
      this.chart(name, this.cards.get(name));
    }
    const cards = names.map((name) => this.cards.get(name).card);
    if (cards.some((card, i) => this.grid.children[i] !== card)) this.grid.replaceChildren(...cards);
  }

  chart(name, { number, holder }) {
    const { steps, values } = this.columns.get(name);
    const finite = [];
    for (let i = 0; i < values.length; i++) if (Number.isFinite(values[i])) finite.push(i);
    const last = finite.length ? values[finite[finite.length - 1]] : null;
    number.textContent = finite.length ? `${inWords(last)} at step ${inWords(steps[finite[finite.length - 1]])}` : "no number";
    const [W, H, L, R, T, B] = [420, 200, 54, 8, 8, 22];
    const svg = shape("svg", { viewBox: `0 0 ${W} ${H}`, class: "chart", role: "img", "aria-label": `${name} by step` });
    holder.replaceChildren(svg);
    if (!finite.length) return;
    const isLog = this.isLog && finite.every((i) => values[i] > 0);
    const f = isLog ? Math.log10 : (x) => x;
    // The first steps are often far away: the range is that of all but the most extreme fiftieth.
    const sorted = finite.map((i) => f(values[i])).sort((a, b) => a - b);
    const cut = finite.length > 50 ? Math.floor(finite.length / 50) : 0;
    let [low, high] = [sorted[cut], sorted[sorted.length - 1 - cut]];
    if (high - low < 1e-9 * Math.max(1, Math.abs(high))) [low, high] = [low - 0.5 * Math.max(1e-3, Math.abs(low)), high + 0.5 * Math.max(1e-3, Math.abs(high))];
    const pad = 0.06 * (high - low);
    [low, high] = [low - pad, high + pad];
    const [from, to] = [steps[0], Math.max(steps[steps.length - 1], steps[0] + 1)];
    const x = (step) => L + ((W - L - R) * (step - from)) / (to - from);
    const y = (value) => clamp(H - B - ((H - T - B) * (f(value) - low)) / (high - low), T - 3, H - B + 3);
    for (const tick of ticks(low, high, 4)) {
      const at = H - B - ((H - T - B) * (tick - low)) / (high - low);
      svg.append(shape("line", { x1: L, x2: W - R, y1: at, y2: at, class: "axis" }),
        shape("text", { x: L - 6, y: at + 4, "text-anchor": "end" }, short(isLog ? 10 ** tick : tick)));
    }
    for (const tick of ticks(from, to, 5).filter(Number.isInteger)) {
      svg.append(shape("text", { x: x(tick), y: H - 6, "text-anchor": x(tick) > W - 30 ? "end" : "middle" }, short(tick)));
    }
    for (const back of this.backs) svg.append(shape("line", { x1: x(back), x2: x(back), y1: T, y2: H - B, class: "back" }));
    // A chart is a few hundred pixels wide: of long records every so many points is drawn.
    const sparse = (points) => { const every = Math.ceil(points.length / 600); return every > 1 ? points.filter((_, i) => (points.length - 1 - i) % every === 0) : points; };
    const path = (points) => sparse(points).map(([a, b], i) => `${i ? "L" : "M"}${a.toFixed(1)} ${b.toFixed(1)}`).join("");
    const raw = finite.map((i) => [x(steps[i]), y(values[i])]);
    if (finite.length < 25) for (const [a, b] of raw) svg.append(shape("circle", { cx: a, cy: b, r: 2.6, class: "points" }));
    const isSmoothed = this.smoothing > 0 && finite.length > 20;
    svg.append(shape("path", { d: path(raw), class: isSmoothed ? "raw" : "smooth" }));
    if (isSmoothed) {
      // Exponential means from both sides, so that the curve does not lag behind.
      const pass = (order) => {
        let [sum, weight] = [0, 0];
        return order.map((i) => {
          sum = this.smoothing * sum + (1 - this.smoothing) * values[i];
          weight = this.smoothing * weight + 1 - this.smoothing;
          return [sum, weight];
        });
      };
      const forth = pass(finite), back = pass([...finite].reverse()).reverse();
      const own = 1 - this.smoothing;
      const smooth = finite.map((i, k) => {
        const sum = forth[k][0] + back[k][0] - own * values[i], weight = forth[k][1] + back[k][1] - own;
        return [x(steps[i]), y(sum / weight)];
      });
      svg.append(shape("path", { d: path(smooth), class: "smooth" }));
    }
    const cursor = shape("line", { y1: T, y2: H - B, class: "cursor", visibility: "hidden" });
    svg.append(cursor);
    const was = number.textContent;
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const step = from + ((((event.clientX - box.left) / box.width) * W - L) / (W - L - R)) * (to - from);
      let [a, b] = [0, finite.length - 1];
      while (a < b) { const m = (a + b) >> 1; if (steps[finite[m]] < step) a = m + 1; else b = m; }
      if (a > 0 && Math.abs(steps[finite[a - 1]] - step) < Math.abs(steps[finite[a]] - step)) a--;
      cursor.setAttribute("x1", x(steps[finite[a]]));
      cursor.setAttribute("x2", x(steps[finite[a]]));
      cursor.setAttribute("visibility", "visible");
      number.textContent = `${inWords(values[finite[a]])} at step ${inWords(steps[finite[a]])}`;
    });
    svg.addEventListener("pointerleave", () => { cursor.setAttribute("visibility", "hidden"); number.textContent = was; });
  }
}

// Round numbers between two, about `count` of them.
const ticks = (low, high, count) => {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((x) => x * power).find((x) => x >= rough);
  const found = [];
  for (let i = Math.ceil(low / step); i * step <= high; i++) found.push(Number((i * step).toPrecision(12)));
  return found;
};
const short = (x) => (Math.abs(x) >= 1e4 ? `${Number((x / 1000).toPrecision(4))}k` : x !== 0 && Math.abs(x) < 1e-3 ? x.toExponential(0) : String(Number(x.toPrecision(4))));
