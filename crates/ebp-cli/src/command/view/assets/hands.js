// Keys, mouse and fingers of the room of clouds.
const listen = (room) => {
  const { canvas } = room;
  const pointers = new Map();
  let moved = 0;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const spread = () => {
    const [a, b] = [...pointers.values()];
    return Math.hypot(a.x - b.x, a.y - b.y);
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    const at = place(event);
    if (pointers.size === 0) moved = 0;
    pointers.set(event.pointerId, { ...at, slot: room.slotAt(at.x, at.y) });
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const at = place(event);
    const [dx, dy] = [at.x - before.x, at.y - before.y];
    moved += Math.abs(dx) + Math.abs(dy);
    if (pointers.size === 2) {
      const wide = spread();
      pointers.set(event.pointerId, { ...before, ...at });
      // Two fingers: nearer by their distance, and each turns by half.
      room.move(0.004 * dx, 0.004 * dy, spread() / Math.max(1, wide), before.slot);
      return;
    }
    pointers.set(event.pointerId, { ...before, ...at });
    if (moved > 3) {
      if (room.isPlaying && room.view.kind !== "path") room.play();
      room.move(0.009 * dx, 0.009 * dy, 1, before.slot);
    }
  });
  const up = (event) => {
    const before = pointers.get(event.pointerId);
    pointers.delete(event.pointerId);
    // A click shows one, another goes back to all.
    if (before && event.type === "pointerup" && moved <= 3 && room.view.kind !== "path") {
      if (room.focus !== null) room.pick(0);
      else if (before.slot !== null) {
        room.focus = room.view.kind === "rows" ? Math.floor(before.slot / room.set.heads.length) : before.slot;
        room.own.clear();
        room.arrange();
      }
    }
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const at = place(event);
    room.move(0, 0, Math.exp(-0.0014 * event.deltaY), room.slotAt(at.x, at.y));
  }, { passive: false });
};

// What a key does in the room of clouds; true if it does anything.
const cloudKeys = (room, key) => {
  const turn = 0.12;
  const actions = {
    ArrowLeft: () => room.move(turn, 0, 1), ArrowRight: () => room.move(-turn, 0, 1),
    ArrowUp: () => room.move(0, turn, 1), ArrowDown: () => room.move(0, -turn, 1),
    "+": () => room.move(0, 0, 1.15), "=": () => room.move(0, 0, 1.15), "-": () => room.move(0, 0, 1 / 1.15), "−": () => room.move(0, 0, 1 / 1.15),
    " ": () => room.play(), ",": () => room.step(-1), ".": () => room.step(1),
    v: () => room.look((room.current + 1) % room.views.length),
    c: () => room.colour((room.colouring + 1) % COLOURINGS.length),
    l: () => room.setLinked(!room.isLinked), r: () => room.reset(), Escape: () => room.pick(0),
  };
  if (/^[0-9]$/.test(key)) room.pick(Number(key));
  else if (actions[key]) actions[key]();
  else return false;
  return true;
};
