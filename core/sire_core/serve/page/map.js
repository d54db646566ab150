// The map of a corpus. Points are written into the pixels of a canvas: 100,000 of them take milliseconds without WebGL.
window.sireMap = (() => {
  const COLOURS = ['#3b7dd8', '#d9822b', '#2f9e5b', '#c94f4f', '#8f6fd1', '#a5673f', '#d05fa8', '#9a941f', '#1f9fb0',
    '#8a929c'];
  const view = {x: 0.5, y: 0.5, zoom: 1};
  let root, canvas, pen, data, points, colour, found = {hits: [], steps: []}, waiting, near = -1, asked = 0;
  const bytes = text => Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  const style = name => getComputedStyle(root).getPropertyValue(name).trim();
  const rgb = hex => [1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16));
  const pixel = hex => { const [r, g, b] = rgb(hex); return (255 << 24 | b << 16 | g << 8 | r) >>> 0; };
  const onScreen = (x, y) => [(x - view.x) * view.zoom * canvas.width + canvas.width / 2,
    (y - view.y) * view.zoom * canvas.height + canvas.height / 2];
  const place = point => onScreen(points[2 * point] / 65535, points[2 * point + 1] / 65535);
  const tint = value => COLOURS[value % (COLOURS.length - (colour === 'topic'))];  // the last one is for all others
  const ratio = () => window.devicePixelRatio || 1;

  function drawPoints() {
    const {width, height} = canvas, image = pen.createImageData(width, height), cells = new Uint32Array(image.data.buffer);
    const {values, names} = data.colours[colour], searched = found.hits.length > 0;
    const radius = Math.max(1, Math.min(6, 0.2 * Math.sqrt(width * height * view.zoom / (points.length / 2)))) * 0.7;
    const disc = [], reach = Math.ceil(radius);
    for (let y = -reach; y <= reach; y++)
      for (let x = -reach; x <= reach; x++) if (x * x + y * y <= radius * radius + 0.5) disc.push(y * width + x);
    const pixels = names.map((_, value) => searched ? pixel(style('--edge')) : pixel(tint(value)));
    const [ax, ay] = [width, height].map(side => view.zoom * side / 65535), [bx, by] = onScreen(0, 0);
    for (let point = 0; point < values.length; point++) {
      const x = points[2 * point] * ax + bx | 0, y = points[2 * point + 1] * ay + by | 0;
      if (x < reach || y < reach || x >= width - reach || y >= height - reach) continue;
      const centre = y * width + x, value = pixels[values[point]];
      for (const offset of disc) cells[centre + offset] = value;
    }
    pen.putImageData(image, 0, 0);
  }

  function write(text, x, y, size, taken) {
    pen.font = `600 ${size * ratio()}px system-ui, sans-serif`;
    const wide = pen.measureText(text).width / 2 + 4, high = size * ratio();
    if (x < 0 || y < 0 || x > canvas.width || y > canvas.height) return;
    x = Math.max(wide, Math.min(canvas.width - wide, x));
    if (taken.some(box => Math.abs(box[0] - x) < box[2] + wide && Math.abs(box[1] - y) < box[3] + high)) return;
    taken.push([x, y, wide, high]);
    pen.lineWidth = 4 * ratio(); pen.strokeStyle = style('--ground'); pen.strokeText(text, x, y);
    pen.fillStyle = style('--ink'); pen.fillText(text, x, y);
  }

  function draw() {
    waiting = 0;
    if (!data) return;
    const start = performance.now(), size = canvas.getBoundingClientRect(), taken = [];
    const [width, height] = [size.width, size.height].map(side => Math.max(1, Math.round(side * ratio())));
    if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
    drawPoints();
    pen.textAlign = 'center'; pen.textBaseline = 'middle'; pen.lineJoin = 'round';
    pen.strokeStyle = style('--askline'); pen.lineWidth = 2 * ratio();
    for (const [from, to] of found.steps) {
      pen.beginPath(); pen.moveTo(...place(from)); pen.lineTo(...place(to)); pen.stroke();
    }
    for (const {point, rank} of found.hits) {
      const [x, y] = place(point);
      pen.beginPath(); pen.arc(x, y, 10 * ratio(), 0, 7); pen.fillStyle = style('--accent'); pen.fill();
      pen.font = `600 ${12 * ratio()}px system-ui, sans-serif`; pen.fillStyle = style('--ground'); pen.fillText(rank, x, y);
      taken.push([x, y, 10 * ratio(), 10 * ratio()]);
    }
    for (const hit of found.hits) {
      const [x, y] = place(hit.point);
      write(hit.title.length > 44 ? hit.title.slice(0, 43) + '\u2026' : hit.title, x, y + 24 * ratio(), 12, taken);
    }
    for (const {label, at} of data.topics) write(label, ...onScreen(...at), 13, taken);
    if (near >= 0) { pen.beginPath(); pen.arc(...place(near), 7 * ratio(), 0, 7); pen.strokeStyle = style('--ink'); pen.stroke(); }
    canvas.dataset.milliseconds = (performance.now() - start).toFixed(1);
  }

  const redraw = () => { waiting = waiting || requestAnimationFrame(draw); remember(); };

  let remembering;
  function remember() {  // for Back: what is seen belongs to the entry of the history
    clearTimeout(remembering);
    if (data) remembering = setTimeout(() => history.replaceState({...history.state, map: {...view, colour}}, ''), 200);
  }

  function zoom(factor, x = 0, y = 0) {  // x, y: what stays where it is, from the middle in parts of the canvas
    const after = Math.max(1, Math.min(400, view.zoom * factor));
    view.x += x / view.zoom - x / after; view.y += y / view.zoom - y / after; view.zoom = after;
    pan(0, 0);
  }

  function pan(x, y) {
    const bound = value => Math.max(0, Math.min(1, value));
    view.x = bound(view.x - x / view.zoom); view.y = bound(view.y - y / view.zoom);
    redraw();
  }

  function reset() { Object.assign(view, {x: 0.5, y: 0.5, zoom: 0.92}); redraw(); }

  async function show(event) {
    const size = canvas.getBoundingClientRect(), tip = root.querySelector('[role=tooltip]');
    const x = (event.clientX - size.left) * ratio(), y = (event.clientY - size.top) * ratio();
    const unit = [canvas.width, canvas.height].map(side => view.zoom * side / 65535), origin = onScreen(0, 0);
    let best = 81 * ratio() * ratio(), nearest = -1;
    for (let point = 0; point < points.length / 2; point++) {
      const distance = (points[2 * point] * unit[0] + origin[0] - x) ** 2 + (points[2 * point + 1] * unit[1] + origin[1] - y) ** 2;
      if (distance < best) { best = distance; nearest = point; }
    }
    if (nearest === near) return;
    near = nearest; redraw(); tip.hidden = true;
    canvas.style.cursor = near < 0 ? 'grab' : 'pointer';
    if (near < 0) return;
    const request = ++asked;
    await new Promise(done => setTimeout(done, 60));  // not for every point on the way
    if (request !== asked) return;
    const answer = await (await fetch(`${root.dataset.document}&point=${nearest}`)).json();
    if (request !== asked) return;
    tip.textContent = answer.title; tip.hidden = false;
    tip.style.left = `${Math.min(event.clientX - size.left + 14, size.width - 220)}px`;
    tip.style.top = `${event.clientY - size.top + 14}px`;
  }

  function listen() {
    const held = new Map();
    let moved = 0;
    canvas.addEventListener('pointerdown', event => {
      held.set(event.pointerId, event); moved = 0; canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointermove', event => {
      const size = canvas.getBoundingClientRect(), before = held.get(event.pointerId);
      if (!before) return data && show(event);
      const [x, y] = [event.clientX - before.clientX, event.clientY - before.clientY];
      const other = [...held.values()].find(one => one.pointerId !== event.pointerId);
      if (other) {
        const apart = one => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
        zoom(apart(event) / Math.max(1, apart(before)));
      } else pan(x / size.width, y / size.height);
      moved += Math.abs(x) + Math.abs(y); held.set(event.pointerId, event);
    });
    const release = async event => {
      held.delete(event.pointerId);
      if (event.type === 'pointerup' && moved < 4 && data) {
        await show(event);
        if (near >= 0) location.href = (await (await fetch(`${root.dataset.document}&point=${near}`)).json()).address;
      }
    };
    canvas.addEventListener('pointerup', release); canvas.addEventListener('pointercancel', release);
    canvas.addEventListener('wheel', event => {
      const size = canvas.getBoundingClientRect(); event.preventDefault();
      zoom(Math.exp(-event.deltaY / 400), (event.clientX - size.left) / size.width - 0.5,
        (event.clientY - size.top) / size.height - 0.5);
    }, {passive: false});
    const keys = {ArrowLeft: () => pan(0.1, 0), ArrowRight: () => pan(-0.1, 0), ArrowUp: () => pan(0, 0.1),
      ArrowDown: () => pan(0, -0.1), '+': () => zoom(1.5), '=': () => zoom(1.5), '-': () => zoom(1 / 1.5), 0: reset};
    canvas.addEventListener('keydown', event => {
      if (event.ctrlKey || event.metaKey || !keys[event.key]) return;
      event.preventDefault(); keys[event.key]();
    });
    for (const button of root.querySelectorAll('button')) button.onclick = keys[button.value];
    new ResizeObserver(redraw).observe(canvas);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  }

  function paint(key) {
    colour = key;
    const shown = key === 'topic' ? [] : data.colours[key].names;
    root.querySelector('ul').replaceChildren(...shown.map((name, value) => {
      const item = document.createElement('li'), mark = document.createElement('i');
      mark.style.background = tint(value); item.append(mark, name);
      return item;
    }));
    redraw();
  }

  async function start() {
    root = document.querySelector('.sire-map'); canvas = root.querySelector('canvas'); pen = canvas.getContext('2d');
    listen(); reset();
    const read = await (await fetch(root.dataset.points)).json();
    for (const column of Object.values(read.colours)) column.values = bytes(column.values);
    points = new Uint16Array(bytes(read.points).buffer); data = read;
    const choice = root.querySelector('select');
    choice.append(...Object.keys(data.colours).map(key => new Option(key)));
    choice.onchange = () => paint(choice.value);
    const before = history.state && history.state.map;
    if (before) Object.assign(view, {x: before.x, y: before.y, zoom: before.zoom});
    choice.value = before && data.colours[before.colour] ? before.colour : 'topic';
    paint(choice.value);
  }

  return {start, find: result => { found = result; if (root) redraw(); }};
})();
