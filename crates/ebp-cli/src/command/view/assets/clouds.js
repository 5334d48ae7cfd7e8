// The room of clouds: all of a group, rows of clouds beside each other, paths and blends, one at a time.
//
// `data.clouds` holds all clouds in one array of 16-bit places; groups, rows, paths and blends name them by
// number. Every view is a list of cells, a cell a cloud with a label; the rest is common to all.
const COLOURINGS = ["height", "log density", "distance", "step"];
const FIRST_CAMERA = { turn: -0.72, tip: 0.36, zoom: 1 };

class CloudRoom {
  constructor(data, room) {
    this.data = data;
    const places = shorts(data.places), values = bytes(data.values);
    let first = 0;
    this.clouds = data.counts.map((count, index) => {
      const cloud = {
        name: data.names[index],
        places: places.subarray(3 * first, 3 * (first + count)),
        values: data.has_values[index] ? values.subarray(first, first + count) : null,
      };
      first += count;
      return cloud;
    });
    this.isFlat = data.dim < 3;
    this.camera = this.firstCamera();
    this.own = new Map();
    this.isLinked = true;
    this.isPlaying = !this.isFlat && !matchMedia("(prefers-reduced-motion: reduce)").matches && !location.hash.includes("still");
    this.size = 1;
    this.place = 0;
    this.chosen = 0;
    this.focus = null;
    this.colouring = 0;
    this.views = [];
    for (const group of data.groups) this.views.push({ kind: "all", name: group.name, group });
    if (data.rows.length) this.views.push({ kind: "rows", name: "Side by side", sets: data.rows });
    if (data.paths.length) this.views.push({ kind: "path", name: "Steps", sets: data.paths });
    if (data.blends.length) this.views.push({ kind: "path", name: "Blends", sets: data.blends });
    this.build(room);
    this.spheres = new Spheres(this.canvas);
    this.spheres.setBox(data.low, data.high, data.centre, data.span);
    new ResizeObserver(() => this.arrange()).observe(this.stage);
    theme.listeners.push(() => this.recolour());
    this.recolour();
    this.look(0);
    listen(this);
    requestAnimationFrame((time) => this.tick(time));
  }

  firstCamera() {
    return this.isFlat ? { turn: 0, tip: 0, zoom: 1 } : { ...FIRST_CAMERA };
  }

  build(room) {
    this.viewParts = parts(this.views.map((view) => view.name), (index) => this.look(index));
    this.choice = element("select", { onchange: () => this.choose(this.choice.selectedIndex) });
    this.choiceLabel = element("label", {}, this.choice);
    this.colours = element("select", { id: "colouring", onchange: () => this.colour(COLOURINGS.indexOf(this.colours.value)) },
      ...COLOURINGS.map((name) => element("option", { textContent: name, value: name })));
    this.sizes = element("input", { id: "size", type: "range", min: -2, max: 2, step: 0.1, value: 0,
      oninput: () => { this.size = 2 ** Number(this.sizes.value); this.isStale = true; } });
    this.link = element("input", { id: "linked", type: "checkbox", checked: true, onchange: () => this.setLinked(this.link.checked) });
    this.playButton = element("button", { id: "play", type: "button", onclick: () => this.play() });
    this.steps = element("input", { id: "steps", type: "range", min: 0, max: 1, step: 0.01, value: 0,
      oninput: () => { this.isPlaying = false; this.setPlace(Number(this.steps.value)); } });
    this.stepsName = element("span");
    this.stepsLabel = element("label", { className: "wide" }, this.steps, this.stepsName);
    this.canvas = element("canvas", { id: "clouds", tabIndex: 0 });
    this.canvas.setAttribute("aria-label", "Clouds of points; arrows turn them, plus and minus come nearer and go farther");
    this.labels = element("div", { className: "labels" });
    this.legend = element("div", { className: "legend" });
    this.stage = element("div", { className: "stage" }, this.canvas, this.labels);
    this.say = element("div", { className: "say" });
    room.classList.add("clouds");
    room.append(
      element("div", { className: "bar" }, this.viewParts, this.choiceLabel,
        element("label", {}, "Colour", this.colours), element("label", {}, "Size", this.sizes),
        element("label", {}, this.link, "Linked cameras"), this.playButton, this.stepsLabel),
      this.stage, element("div", { className: "foot" }, this.say, this.legend));
  }

  get view() { return this.views[this.current]; }
  get set() { return this.view.sets?.[this.chosen]; }

  look(index, chosen = 0) {
    this.current = index;
    this.chosen = chosen;
    this.focus = null;
    this.viewParts.press(index);
    const { kind, sets } = this.view;
    this.choice.replaceChildren(...(sets || []).map((set) => element("option", { textContent: set.name })));
    this.choiceLabel.hidden = !sets || sets.length < 2;
    this.stepsLabel.hidden = kind !== "path";
    [...this.colours.options].forEach((option, way) => { option.hidden = option.disabled = !this.canColour(way); });
    if (!this.canColour(this.colouring)) this.colour(0);
    this.choose(chosen);
  }

  choose(index) {
    this.chosen = index;
    this.choice.selectedIndex = index;
    this.focus = null;
    if (this.view.kind === "path") {
      const last = this.set.frames.length - 1;
      this.steps.max = last;
      this.forward = 1;
      // A path is shown from its beginning where it plays, at its end where it does not.
      this.setPlace(this.isPlaying || this.set.is_blend ? 0 : last);
    }
    this.arrange();
  }

  // Which clouds are in which cells.
  cells() {
    const { kind, group } = this.view;
    if (kind === "all") {
      const all = Array.from({ length: group.count }, (_, i) => group.first + i);
      const shown = this.focus === null ? all : [all[this.focus]];
      return { block: 1, cells: shown.map((cloud) => ({ cloud, label: this.clouds[cloud].name })) };
    }
    if (kind === "rows") {
      const rows = this.focus === null ? this.set.rows : [this.set.rows[this.focus]];
      const cells = rows.flatMap((row) => row.map((cloud, c) => ({
        cloud, head: this.set.heads[c], label: cloud === null ? "" : this.clouds[cloud].name })));
      return { block: this.set.heads.length, cells };
    }
    const { frames, labels, is_blend } = this.set;
    const near = Math.round(this.place), low = is_blend ? near : Math.floor(this.place);
    const last = frames.length - 1;
    return { block: 3, cells: [
      { cloud: frames[0], head: is_blend ? "one" : "start", label: labels[0] },
      { cloud: frames[low], next: frames[is_blend ? near : Math.min(last, low + 1)], head: is_blend ? "between" : "now", label: labels[near] },
      { cloud: frames[last], head: is_blend ? "other" : "end", label: labels[last] }] };
  }

  // Cells on the canvas: as large as they can be, in the shape of the canvas.
  arrange() {
    const width = this.stage.clientWidth, height = this.stage.clientHeight;
    if (width === 0 || height === 0) return;
    const density = Math.min(2, devicePixelRatio || 1);
    this.canvas.width = Math.round(width * density);
    this.canvas.height = Math.round(height * density);
    this.density = density;
    const { block, cells } = this.cells();
    const headRoom = cells.some((cell) => cell.head) ? 26 : 0;
    // Rows are kept whole; as many stand beside each other as make the cells largest.
    const count = cells.length / block;
    let [columns, rows, best] = [block, count, 0];
    for (let beside = 1; beside <= count; beside++) {
      const high = Math.ceil(count / beside), side = Math.min(width / (beside * block), (height - headRoom) / high);
      if (side > best * 1.001) [best, columns, rows] = [side, beside * block, high];
    }
    const narrow = this.view.kind === "path" && width < height;
    const foot = 16;
    const wide = narrow ? width / 2 : width / columns, high = (height - headRoom) / (narrow ? 2 : rows);
    this.labels.replaceChildren();
    this.slots = cells.map((cell, index) => {
      let x = ((index % columns) + 0.5) * wide, y = headRoom + (Math.floor(index / columns) + 0.5) * high;
      // On a narrow screen the ends share the upper row and the middle has its own.
      if (narrow) [x, y] = index === 1 ? [width / 2, headRoom + 1.5 * high] : [(index === 0 ? 0.5 : 1.5) * wide, headRoom + 0.5 * high];
      const hasLabel = high > 90 && cell.label;
      const room = Math.min(wide, high - (hasLabel ? foot : 0));
      if (cell.head && !narrow && index < columns) this.label(x, 6, cell.head, wide, "head");
      if (cell.head && narrow) this.label(x, y - high / 2 - (index === 1 ? 6 : 20), cell.head, wide, "head");
      if (hasLabel) this.label(x, y + high / 2 - 2, cell.label, wide, "");
      return { cell, index, x: x * density, y: (y - (hasLabel ? foot / 2 : 0)) * density, scale: 0.43 * room * density,
        half: 0.5 * Math.max(room, Math.min(wide, high)) * density, wide, high, left: x - wide / 2, top: y - high / 2 };
    });
    this.fill();
  }

  label(x, y, text, width, name) {
    const made = element("span", { textContent: text, className: name });
    Object.assign(made.style, { left: `${x}px`, top: `${y}px`, maxWidth: `${Math.max(40, width - 6)}px` });
    this.labels.append(made);
  }

  // The points of the clouds that are shown go to the device once, until others are shown.
  fill() {
    const shown = this.slots.filter(({ cell }) => cell.cloud !== null && cell.cloud !== undefined);
    this.spheres.setClouds(shown.map(({ cell, index }) => {
      const cloud = this.clouds[cell.cloud], next = this.clouds[cell.next ?? cell.cloud];
      const follows = next.places.length === cloud.places.length ? next : cloud;
      return { slot: index, here: cloud.places, there: follows.places, values: cloud.values };
    }));
    this.describe();
    this.isStale = true;
  }

  describe() {
    const points = this.spheres.count.toLocaleString("en");
    const clouds = this.slots.length;
    const note = (this.view.group || this.set)?.note || "";
    this.say.replaceChildren(element("b", { textContent: `${clouds} ${clouds === 1 ? "cloud" : "clouds"}, ${points} points. ` }), note);
    this.playButton.textContent = this.isPlaying ? "Pause" : "Play";
    this.canvas.dataset.points = this.spheres.count;
  }

  setPlace(place) {
    const before = this.place;
    this.place = place;
    this.steps.value = place;
    const set = this.set;
    this.stepsName.textContent = set.labels[Math.round(place)];
    this.isStale = true;
    if (this.slots && (Math.floor(before) !== Math.floor(place) || Math.round(before) !== Math.round(place))) this.arrange();
  }

  setLinked(isLinked) {
    this.isLinked = isLinked;
    this.link.checked = isLinked;
    this.own.clear();
    this.isStale = true;
  }

  // Log densities are there for models, steps on the way from one cloud to another.
  canColour(way) {
    return COLOURINGS[way] === "log density" ? this.data.has_values.some(Boolean) : COLOURINGS[way] !== "step" || this.view.kind === "path";
  }

  // The way of this number, or the next one that there is.
  colour(index) {
    while (!this.canColour(index)) index = (index + 1) % COLOURINGS.length;
    this.colouring = index;
    this.colours.value = COLOURINGS[index];
    this.recolour();
  }

  recolour() {
    if (!this.spheres) return;
    // The darkest end is lost on a dark page, the lightest on a white one.
    const range = theme.isDark() ? [0.16, 1] : [0, 0.9];
    const table = colourTable(["viridis", "inferno", "cividis", "viridis"][this.colouring], 256, ...range);
    this.spheres.setMap(table);
    const [low, high] = this.colouring === 1 ? this.data.value_range.map((x) => inWords(x)) : [["low", "high"], 0, ["far", "near"], ["first", "last"]][this.colouring];
    const bar = element("i");
    bar.style.background = asGradient(table);
    this.legend.replaceChildren(low, bar, high, ...(this.colouring === 1 ? [element("span", { textContent: this.data.value_name })] : []));
    this.isStale = true;
  }

  play() {
    this.isPlaying = !this.isPlaying;
    if (this.isPlaying && this.view.kind === "path" && this.place >= this.set.frames.length - 1) this.setPlace(0);
    this.describe();
  }

  cameraOf(index) {
    if (this.isLinked) return this.camera;
    if (!this.own.has(index)) this.own.set(index, { ...this.camera });
    return this.own.get(index);
  }

  // Turns and comes nearer: all clouds, or the one that is under the pointer.
  move(turn, tip, zoom, index = null) {
    const cameras = this.isLinked || index === null ? [this.camera, ...this.own.values()] : [this.cameraOf(index)];
    for (const camera of cameras) {
      if (!this.isFlat) {
        camera.turn += turn;
        camera.tip = clamp(camera.tip + tip, -Math.PI / 2, Math.PI / 2);
      }
      camera.zoom = clamp(camera.zoom * zoom, 0.3, 12);
    }
    this.isStale = true;
  }

  tick(time) {
    const seconds = Math.min(0.1, (time - (this.before ?? time)) / 1000);
    this.before = time;
    const isSeen = !this.stage.closest("[hidden]");
    if (this.isPlaying && isSeen) {
      this.move(0.35 * seconds, 0, 1);
      if (this.view.kind === "path") {
        // There and back for a blend; once, and a rest at the end, for a path.
        const last = this.set.frames.length - 1;
        let place = this.place + this.forward * seconds * (this.set.is_blend ? 3 : 5);
        if (place >= last) [place, this.forward] = [last, this.set.is_blend ? -1 : 0];
        if (place <= 0) [place, this.forward] = [0, 1];
        if (place !== this.place) this.setPlace(place);
      }
    }
    if (isSeen && this.isStale) this.draw();
    requestAnimationFrame((next) => this.tick(next));
  }

  draw() {
    this.isStale = false;
    if (!this.slots) return;
    const shares = this.view.kind === "path" ? [0, this.place / Math.max(1, this.set.frames.length - 1), 1] : [];
    const slots = this.slots.map((slot) => ({ ...slot, ...this.cameraOf(slot.index), share: shares[slot.index] ?? 0 }));
    const counts = this.slots.map(({ cell }) => (cell.cloud === null ? 0 : this.clouds[cell.cloud].places.length / 3));
    // A radius at which a surface of so many points is almost closed.
    const radius = 1.0 * this.size / Math.sqrt(Math.max(200, ...counts));
    const isPath = this.view.kind === "path" && !this.set.is_blend;
    this.spheres.draw(slots, {
      radius, mixing: isPath ? this.place - Math.floor(this.place) : 0, colouring: this.colouring,
      haze: theme.isDark() ? [0.09, 0.11, 0.14] : [0.95, 0.96, 0.97], hazing: this.isFlat ? 0 : 0.55, most: 40 * this.density,
    });
    this.canvas.dataset.calls = this.spheres.calls;
    this.canvas.dataset.draws = Number(this.canvas.dataset.draws || 0) + 1;
  }

  // A digit: one cloud of a group, one row, one path or blend.
  pick(number) {
    const { kind, group, sets } = this.view;
    if (number === 0) this.focus = null;
    else if (kind === "all" && number <= group.count) this.focus = number - 1;
    else if (kind === "rows" && number <= this.set.rows.length) this.focus = number - 1;
    else if (kind === "path" && number <= sets.length) return this.choose(number - 1);
    this.own.clear();
    this.arrange();
  }

  slotAt(x, y) {
    const found = this.slots?.find((slot) => Math.abs(x - slot.left - slot.wide / 2) <= slot.wide / 2 && Math.abs(y - slot.top - slot.high / 2) <= slot.high / 2);
    return found ? found.index : null;
  }

  step(by) {
    if (this.view.kind !== "path") return;
    this.isPlaying = false;
    this.setPlace(clamp(Math.round(this.place) + by, 0, this.set.frames.length - 1));
    this.describe();
  }

  reset() {
    this.camera = this.firstCamera();
    this.own.clear();
    this.isStale = true;
  }
}
