// The other rooms: densities of curves, pictures, topics, numbers.

// Densities of curves. `data.maps` are heat maps of one byte a cell: 255 √(density / the map's peak), rows
// from the highest value down. A map stands for a context: `curves` have more and more points of a known
// curve, `one` has a single point anywhere on a lattice, to be dragged.
class DensityRoom {
  constructor(data, room) {
    this.data = data;
    this.maps = bytes(data.maps);
    this.ways = [...(data.one ? [{ name: "One point to drag", one: data.one }] : []), ...data.curves];
    this.canvas = element("canvas", { id: "density", tabIndex: 0 });
    this.note = element("p");
    this.slider = element("input", { type: "range", min: 0, step: 1, id: "context", oninput: () => { this.place = Number(this.slider.value); this.draw(); } });
    this.count = element("span");
    this.sliderLabel = element("label", { className: "wide" }, "Points of the context", this.slider, this.count);
    this.parts = parts(this.ways.map((way) => way.name), (index) => this.choose(index));
    room.append(element("section", { className: "card whole" },
      element("div", { className: "bar", style: "padding: 0 0 10px" }, this.parts, this.sliderLabel), this.canvas, this.note));
    const drag = (event) => {
      if (!this.way.one || (event.type === "pointermove" && !event.buttons)) return;
      const box = this.canvas.getBoundingClientRect();
      const share = (x, low, high) => clamp((x - low) / (high - low), 0, 1);
      const a = this.area;
      const t = data.t[0] + share(event.clientX - box.left, a.left, a.right) * (data.t[1] - data.t[0]);
      const x = data.x[1] - share(event.clientY - box.top, a.top, a.bottom) * (data.x[1] - data.x[0]);
      const near = (list, value) => list.reduce((best, v, i) => (Math.abs(v - value) < Math.abs(list[best] - value) ? i : best), 0);
      this.one = [near(this.way.one.t, t), near(this.way.one.x, x)];
      this.draw();
    };
    this.canvas.addEventListener("pointerdown", drag);
    this.canvas.addEventListener("pointermove", drag);
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    theme.listeners.push(() => this.draw());
    this.choose(0);
  }

  get way() { return this.ways[this.chosen]; }

  choose(index) {
    this.chosen = index;
    this.parts.press(index);
    this.sliderLabel.hidden = Boolean(this.way.one);
    if (this.way.one) this.one = [Math.floor(this.way.one.t.length / 2), Math.floor(this.way.one.x.length / 2)];
    else {
      this.slider.max = this.way.contexts.length - 1;
      this.place = Math.min(3, this.way.contexts.length - 1);
      this.slider.value = this.place;
    }
    this.draw();
  }

  key(key) {
    const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[key];
    if (/^[1-9]$/.test(key) && key <= this.ways.length) this.choose(key - 1);
    else if (by && this.way.one) {
      this.one = [clamp(this.one[0] + by[0], 0, this.way.one.t.length - 1), clamp(this.one[1] + by[1], 0, this.way.one.x.length - 1)];
      this.draw();
    } else if (by) {
      this.place = clamp(this.place + by[0] + by[1], 0, this.way.contexts.length - 1);
      this.slider.value = this.place;
      this.draw();
    } else return false;
    return true;
  }

  draw() {
    const { data } = this, wide = this.canvas.clientWidth;
    if (!wide) return;
    const density = Math.min(2, devicePixelRatio || 1), high = clamp(wide * 0.5, 240, 560);
    this.canvas.style.height = `${high}px`;
    this.canvas.width = wide * density;
    this.canvas.height = high * density;
    const pen = this.canvas.getContext("2d");
    pen.scale(density, density);
    const a = (this.area = { left: 56, right: wide - 10, top: 10, bottom: high - 36 });
    const { one } = this.way;
    const context = one ? { points: [[one.t[this.one[0]], one.x[this.one[1]]]], map: one.first + this.one[0] * one.x.length + this.one[1] } : this.way.contexts[this.place];
    const size = data.columns * data.rows, table = colourTable("inferno", 256, theme.isDark() ? 0.02 : 0);
    const cells = this.maps.subarray(context.map * size, (context.map + 1) * size);
    const picture = new ImageData(data.columns, data.rows);
    for (let i = 0; i < size; i++) picture.data.set(table.subarray(4 * cells[i], 4 * cells[i] + 4), 4 * i);
    const small = element("canvas", { width: data.columns, height: data.rows });
    small.getContext("2d").putImageData(picture, 0, 0);
    pen.imageSmoothingQuality = "high";
    pen.drawImage(small, a.left, a.top, a.right - a.left, a.bottom - a.top);
    const x = (t) => a.left + ((t - data.t[0]) / (data.t[1] - data.t[0])) * (a.right - a.left);
    const y = (v) => a.bottom - ((v - data.x[0]) / (data.x[1] - data.x[0])) * (a.bottom - a.top);
    const ink = getComputedStyle(this.canvas).color;
    pen.font = "12px system-ui, sans-serif";
    pen.fillStyle = ink;
    pen.textAlign = "center";
    for (const tick of ticks(...data.t, 6)) pen.fillText(short(tick), x(tick), a.bottom + 16);
    pen.fillText(data.names[0], (a.left + a.right) / 2, a.bottom + 31);
    pen.save();
    pen.translate(12, (a.top + a.bottom) / 2);
    pen.rotate(-Math.PI / 2);
    pen.fillText(data.names[1], 0, 0);
    pen.restore();
    pen.textAlign = "right";
    for (const tick of ticks(...data.x, 5)) pen.fillText(short(tick), a.left - 6, y(tick) + 4);
    if (this.way.truth) {
      pen.strokeStyle = "rgb(255 255 255 / .75)";
      pen.setLineDash([4, 4]);
      pen.beginPath();
      this.way.truth.forEach(([t, v], i) => (i ? pen.lineTo(x(t), y(v)) : pen.moveTo(x(t), y(v))));
      pen.stroke();
      pen.setLineDash([]);
    }
    for (const [t, v] of context.points) {
      pen.beginPath();
      pen.arc(x(t), y(v), one ? 8 : 5, 0, 7);
      pen.fillStyle = "#5ec9ff";
      pen.strokeStyle = "#04263c";
      pen.lineWidth = 1.5;
      pen.fill();
      pen.stroke();
    }
    this.count.textContent = String(context.points.length);
    this.canvas.dataset.map = context.map;
    this.note.textContent = one ? "Drag the point, or move it with the arrows: the density of the value at every location, given this one point. " + (data.note || "")
      : "Bright: likely values, given the points of the context. " + (data.note || "");
  }
}

const pictureCard = ({ name, source, width, caption }) => {
  const image = element("img", { alt: caption || name, src: source, loading: "lazy" });
  if (width && width < 160) image.className = "small";
  return element("section", { className: width && width > 900 ? "card whole" : "card" },
    element("h2", {}, caption || name, element("small", { textContent: caption ? name : "" })), image);
};

const picturesRoom = (pictures, room) => {
  const grid = element("div", { className: "grid" });
  room.append(grid);
  const put = (list) => grid.replaceChildren(...(list.length ? list.map(pictureCard) : [element("p", { className: "empty", textContent: "No pictures yet." })]));
  put(pictures);
  return { put };
};

const topicsRoom = (topics, room) => {
  const largest = Math.max(...topics.flatMap(({ words }) => words.map(([, weight]) => weight)));
  room.append(element("div", { className: "grid" }, ...topics.map(({ name, note, words }) =>
    element("section", { className: "card" }, element("h2", {}, name, element("small", { textContent: note || "" })), ...words.map(([word, weight]) => {
      const bar = element("i", { title: inWords(weight) });
      bar.style.width = `${(100 * weight) / largest}%`;
      return element("div", { className: "word" }, element("span", { textContent: word }), bar);
    })))));
};

// Long names go on in the next line behind a dot or an underscore, not within a word.
const breakable = (name) => name.split(/(?<=[._])/).flatMap((part, index) => (index ? [element("wbr"), part] : [part]));

const numbersRoom = (tables, room) => {
  room.append(element("div", { className: "grid" }, ...tables.map(({ name, rows }) =>
    element("section", { className: "card" }, element("h2", { textContent: name }),
      element("table", {}, element("tbody", {}, ...rows.map(([key, value]) =>
        element("tr", {}, element("th", { scope: "row" }, ...breakable(key)), element("td", { textContent: typeof value === "number" ? inWords(value) : value })))))))));
};
