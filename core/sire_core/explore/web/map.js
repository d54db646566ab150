// The map of a corpus. Points are written into the pixels of a canvas: 100,000 of them take milliseconds without WebGL.
(() => {
  const COLOURS = ['#3b7dd8', '#d9822b', '#2f9e5b', '#c94f4f', '#8f6fd1', '#a5673f', '#d05fa8', '#9a941f', '#1f9fb0',
    '#8a929c'];
  // Marks: whether a pixel belongs to a mark of radius r, and the mark as a polygon of CSS.
  const MARKS = [
    {holds: (x, y, r) => x * x + y * y <= r * r + 0.5, path: 'circle(50%)'},
    {holds: (x, y, r) => Math.min(Math.abs(x), Math.abs(y)) <= r / 3 && Math.max(Math.abs(x), Math.abs(y)) <= r + 1,
      path: 'polygon(33% 0, 67% 0, 67% 33%, 100% 33%, 100% 67%, 67% 67%, 67% 100%, 33% 100%, 33% 67%, 0 67%, 0 33%, 33% 33%)'},
    {holds: (x, y, r) => y <= r && 2 * Math.abs(x) <= y + r + 1, path: 'polygon(50% 0, 100% 100%, 0 100%)'},
  ];
  const CELL = 8;  // pixels of the grid in which points are counted, so that labels cover few of them
  const view = {x: 0.5, y: 0.5, zoom: 1};
  const EXACT = 400, TITLES = 100, ROOM = 4000;  // points that labels may not touch, that have titles; pixels for a title
  const FAINT = 80;  // how much of their colour points keep while a question is shown, of 255
  const PARTS = 6;  // of a side of the map: where most points of a value are, its label stands
  const CLOSE = 2, WIDE = 170, HIGH = 44;  // zoom from which points have titles, one in a cell of these sides if they are many
  const titles = new Map();
  let root, canvas, pen, data, points, colour, labels = [], found = {hits: [], passed: [], steps: []}, waiting, near = -1, asked = 0;
  let radius = 1, visible = [], apart = [];
  const bytes = text => Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  const style = name => getComputedStyle(root).getPropertyValue(name).trim();
  const rgb = hex => [1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16));
  const pixel = (hex, alpha) => { const [r, g, b] = rgb(hex); return (alpha << 24 | b << 16 | g << 8 | r) >>> 0; };
  const onScreen = (x, y) => [(x - view.x) * view.zoom * canvas.width + canvas.width / 2,
    (y - view.y) * view.zoom * canvas.height + canvas.height / 2];
  const place = point => onScreen(points[2 * point] / 65535, points[2 * point + 1] / 65535);
  // Topics share a colour where they differ in their mark; the last colour is for all other values of a key.
  const tint = value => COLOURS[value % (COLOURS.length - (colour === 'topic'))];
  const mark = value => MARKS[colour === 'topic' ? Math.floor(value / (COLOURS.length - 1)) % MARKS.length : 0];
  const ratio = () => window.devicePixelRatio || 1;

  function drawPoints() {
    const {width, height} = canvas, image = pen.createImageData(width, height), cells = new Uint32Array(image.data.buffer);
    const {values, names} = data.colours[colour], searched = found.hits.length > 0;
    radius = Math.max(1, Math.min(6 * ratio(), 0.2 * Math.sqrt(width * height * view.zoom / (points.length / 2)))) * 0.7;
    const reach = Math.ceil(radius) + 1, shapes = MARKS.map(({holds}) => {
      const offsets = [];
      for (let y = -reach; y <= reach; y++)
        for (let x = -reach; x <= reach; x++) if (holds(x, y, radius)) offsets.push(y * width + x);
      return offsets;
    });
    const shape = names.map((_, value) => shapes[MARKS.indexOf(mark(value))]);
    const across = Math.ceil(width / CELL), grid = new Uint16Array(across * Math.ceil(height / CELL));
    const pixels = names.map((_, value) => pixel(tint(value), searched ? FAINT : 255));
    const [ax, ay] = [width, height].map(side => view.zoom * side / 65535), [bx, by] = onScreen(0, 0);
    const firsts = new Map(), [wide, high] = [WIDE, HIGH].map(side => side * ratio());
    visible = [];
    for (let point = 0; point < values.length; point++) {
      const x = points[2 * point] * ax + bx | 0, y = points[2 * point + 1] * ay + by | 0;
      if (x < reach || y < reach || x >= width - reach || y >= height - reach) continue;
      const centre = y * width + x, value = pixels[values[point]];
      for (const offset of shape[values[point]]) cells[centre + offset] = value;
      grid[(y / CELL | 0) * across + (x / CELL | 0)]++;
      if (visible.length <= EXACT) visible.push(point);
      const cell = 4096 * Math.floor((y - by) / high) + Math.floor((x - bx) / wide);  // moves with the points
      if (!firsts.has(cell)) firsts.set(cell, point);
    }
    apart = [...firsts.values()].slice(0, TITLES);
    pen.putImageData(image, 0, 0);
    if (visible.length <= EXACT) {
      const places = visible.map(place);
      return (x, y, wide, high) => places.filter(([px, py]) =>
        Math.abs(px - x) < wide + radius && Math.abs(py - y) < high + radius).length;
    }
    return (x, y, wide, high) => {  // points in a box around x, y
      let covered = 0;
      for (let row = Math.max(0, (y - high) / CELL | 0); row <= (y + high) / CELL && row * CELL < height; row++)
        for (let at = Math.max(0, (x - wide) / CELL | 0); at <= (x + wide) / CELL && at < across; at++)
          covered += grid[row * across + at];
      return covered;
    };
  }

  // Writes a text where it covers no other text and the fewest points, if these are few enough; says whether it did.
  function write(text, size, spots, {taken, covered = () => 0, most = Infinity, ink = style('--ink'), weight = 600}) {
    pen.font = `${weight} ${size * ratio()}px system-ui, sans-serif`;
    const wide = pen.measureText(text).width / 2 + 6 * ratio(), high = 0.65 * size * ratio();
    let best = null, least = Infinity;
    spots(wide, high).forEach(([x, y], number) => {
      x = Math.max(wide, Math.min(canvas.width - wide, x));
      if (y < high || y > canvas.height - high) return;
      if (taken.some(box => Math.abs(box[0] - x) < box[2] + wide && Math.abs(box[1] - y) < box[3] + high)) return;
      const points = covered(x, y, wide, high);
      if (points <= most && points + number / 8 < least) [best, least] = [[x, y], points + number / 8];
    });
    if (!best || 2 * wide > canvas.width) return false;
    taken.push([...best, wide, high]);
    pen.lineWidth = 4 * ratio(); pen.strokeStyle = style('--ground'); pen.strokeText(text, ...best);
    pen.fillStyle = ink; pen.fillText(text, ...best);
    return true;
  }

  const AROUND = [0, -1, 1, -2, 2, -3, 3, -4, 4].flatMap(rows => [0, -0.5, 0.5].map(columns => [rows, columns]))
    .sort((a, b) => Math.hypot(...a) - Math.hypot(...b));

  function writeTopics(taken, covered) {
    labels.forEach(({label, at}, value) => {
      const [x, y] = onScreen(...at);
      if (x < 0 || y < 0 || x > canvas.width || y > canvas.height) return;
      const first = label.split(', ')[0], ink = tint(value);
      const spots = (wide, high) => AROUND.map(([rows, columns]) => [x + columns * wide, y + 2 * rows * high]);
      const most = visible.length > EXACT ? Infinity : 0;  // among few points none is covered; the topics are listed, too
      [[label, 0], [first, 0], [first, 3], [first, most]].some(([text, most]) =>
        write(text, 13, spots, {taken, covered, most, ink}));
    });
  }

  // Titles beside the points, where so few are seen that there is room for them.
  function writeTitles(taken, covered) {
    const few = visible.length <= Math.min(TITLES, canvas.width * canvas.height / (ROOM * ratio() ** 2));
    const wanted = few ? visible : view.zoom >= CLOSE ? apart : [], most = visible.length > EXACT ? Infinity : 0;
    const shown = wanted.filter(point => titles.has(point) && ![...found.hits, ...found.passed].some(one => one.point === point));
    if (wanted.some(point => !titles.has(point))) askTitles(wanted);
    const written = shown.filter(point => {
      const [x, y] = place(point), gap = radius + 2 * ratio();
      return write(titles.get(point).short, 12, (wide, high) => [[x + gap + wide, y], [x - gap - wide, y],
        [x, y - gap - high], [x, y + gap + high], [x + wide, y - gap - high], [x + wide, y + gap + high],
        [x - wide, y - gap - high], [x - wide, y + gap + high]].filter(([at]) => at >= wide && at <= canvas.width - wide),
      {taken, covered, most, weight: 400});
    });
    canvas.dataset.titles = written.map(point => titles.get(point).short).join('; ');
  }

  async function read(wanted) {
    const missing = wanted.filter(point => !titles.has(point));
    const answer = missing.length ? await (await fetch(`${root.dataset.documents}&points=${missing}`)).json() : [];
    for (const known of answer) titles.set(known.point, known);
  }

  let asking = false;
  async function askTitles(wanted) {
    if (asking) return;
    asking = true;
    await new Promise(done => setTimeout(done, 150));  // not for all that a zoom passes
    await read(wanted).finally(() => { asking = false; });
    redraw();
  }

  function draw() {
    waiting = 0;
    if (!data) return;
    const start = performance.now(), size = canvas.getBoundingClientRect(), taken = [];
    const [width, height] = [size.width, size.height].map(side => Math.max(1, Math.round(side * ratio())));
    if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
    const covered = drawPoints();
    pen.textAlign = 'center'; pen.textBaseline = 'middle'; pen.lineJoin = 'round';
    pen.strokeStyle = style('--askline'); pen.lineWidth = 2 * ratio();
    for (const [from, to] of found.steps) {
      pen.beginPath(); pen.moveTo(...place(from)); pen.lineTo(...place(to)); pen.stroke();
    }
    pen.font = `600 ${12 * ratio()}px system-ui, sans-serif`;
    const spots = [], high = 10 * ratio();  // signs of hits, best first: one that would cover another stands beside its point
    for (const {point, ranks, title} of found.hits) {
      const [x, y] = place(point), label = ranks.join(', '), wide = Math.max(high, pen.measureText(label).width / 2 + 6 * ratio());
      const free = ([at, row]) => !taken.some(box => Math.abs(box[0] - at) < box[2] + wide && Math.abs(box[1] - row) < box[3] + high);
      const spot = AROUND.map(([rows, columns]) => [x + 3 * columns * wide, y + 2.2 * rows * high]).find(free) ?? [x, y];
      spots.push({x: spot[0], y: spot[1], wide, title, label, point});
      taken.push([...spot, wide + ratio(), high + ratio()]);
    }
    for (const {x, y, wide, label, point} of [...spots].reverse()) {
      pen.strokeStyle = style('--accent'); pen.beginPath(); pen.moveTo(...place(point)); pen.lineTo(x, y); pen.stroke();
      pen.beginPath(); pen.roundRect(x - wide, y - high, 2 * wide, 2 * high, high);
      pen.fillStyle = style('--accent'); pen.fill(); pen.strokeStyle = style('--ground'); pen.stroke();
      pen.fillStyle = style('--ground'); pen.fillText(label, x, y);
    }
    canvas.dataset.ranks = spots.map(spot => spot.label).join('; ');
    canvas.dataset.signs = JSON.stringify(spots.map(({x, y, wide}) => [x, y, wide, high]));
    const isInside = (x, y) => x >= 0 && y >= 0 && x <= canvas.width && y <= canvas.height;
    for (const {x, y, title} of spots.filter(({x, y}) => isInside(x, y)))
      write(title, 12, (wide, high) => [24, -24].map(rows => [x, y + rows * ratio()]), {taken});
    for (const {point, title} of found.passed) {
      const [x, y] = place(point);
      if (isInside(x, y)) write(title, 12, (wide, high) => AROUND.map(([rows, columns]) => [x + columns * wide, y + (2 * rows + 1.8) * high]),
        {taken, weight: 400});
    }
    writeTopics(taken, covered);
    writeTitles(taken, covered);
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
    await read([nearest]);
    if (request !== asked) return;
    tip.textContent = titles.get(nearest).title; tip.hidden = false;
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
        if (near < 0) return;
        await read([near]);
        location.href = titles.get(near).address;
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

  function middles({names, values}) {  // where most points of every value are
    const cells = names.map(() => new Map());
    values.forEach((value, point) => {
      const at = [points[2 * point] / 65535, points[2 * point + 1] / 65535], cell = at.map(side => Math.floor(side * PARTS)).join();
      const [x, y, number] = cells[value].get(cell) ?? [0, 0, 0];
      cells[value].set(cell, [x + at[0], y + at[1], number + 1]);
    });
    const most = cells.map(sums => [...sums.values()].reduce((one, other) => other[2] > one[2] ? other : one, [0, 0, 0]));
    return names.map((label, value) => ({label, at: most[value].slice(0, 2).map(sum => sum / Math.max(1, most[value][2]))}))
      .filter(({label}) => label !== 'other or none');  // the last one: it stands for no place
  }

  function paint(key) {
    colour = key;
    labels = key === 'topic' ? data.topics : middles(data.colours[key]);
    legend();
    redraw();
  }

  function legend() {
    const shown = colour === 'topic' ? [] : data.colours[colour].names;
    root.querySelector('ul').replaceChildren(...shown.map((name, value) => {
      const item = document.createElement('li'), sign = document.createElement('i');
      sign.style.background = tint(value); item.append(sign, name);
      return item;
    }));
    document.querySelectorAll('[data-topic]').forEach((sign, value) => {  // the list of topics is their legend
      sign.style.background = tint(value); sign.style.clipPath = mark(value).path;
      sign.hidden = colour !== 'topic';
    });
  }

  async function start() {
    root = document.querySelector('.sire-map'); canvas = root.querySelector('canvas'); pen = canvas.getContext('2d');
    found = JSON.parse(root.dataset.lit);
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
    if (!before) showHits();
    paint(choice.value);
  }

  function showHits() {  // where some hits are out of sight, a view that has them all
    const hits = found.hits.map(({point}) => [points[2 * point] / 65535, points[2 * point + 1] / 65535]);
    const isSeen = ([x, y]) => Math.max(Math.abs(x - view.x), Math.abs(y - view.y)) * view.zoom < 0.47;
    if (!hits.length || hits.every(isSeen)) return;
    const ends = [0, 1].map(side => [Math.min(...hits.map(at => at[side])), Math.max(...hits.map(at => at[side]))]);
    const zoom = Math.min(view.zoom, 0.8 / Math.max(0.01, ...ends.map(([low, high]) => high - low)));
    Object.assign(view, {x: (ends[0][0] + ends[0][1]) / 2, y: (ends[1][0] + ends[1][1]) / 2, zoom: Math.max(0.92, zoom)});
  }

  start();
})();
