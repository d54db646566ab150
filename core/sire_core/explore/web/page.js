// Parts of a page are drawn again for another address of it, which becomes its own: a picture that has grown, a list.
const draw = async address => {
  const page = new DOMParser().parseFromString(await (await fetch(address)).text(), 'text/html');
  const fresh = page.querySelectorAll('.sire-drawn');
  document.querySelectorAll('.sire-drawn').forEach((old, at) => fresh[at] && old.replaceWith(document.importNode(fresh[at], true)));
  history.replaceState(history.state, '', address);
};
// Names are filtered while they are typed.
(() => {
  let waiting;
  document.addEventListener('input', event => {
    const form = event.target.closest('.sire-filter');
    clearTimeout(waiting);
    if (form) waiting = setTimeout(() => draw(`${form.action}?${new URLSearchParams(new FormData(form))}`), 250);
  });
})();
// The picture as PNG, twice as large: the browser draws the saved one and hands it over as a file.
document.addEventListener('click', async event => {
  const form = event.target.closest('[data-png]')?.form;
  if (!form) return;
  const drawn = await (await fetch(`${form.action}?${new URLSearchParams(new FormData(form))}&as=svg`)).text();
  const image = new Image(), canvas = document.createElement('canvas'), pen = canvas.getContext('2d');
  image.src = `data:image/svg+xml,${encodeURIComponent(drawn)}`; await image.decode();
  [canvas.width, canvas.height] = [2 * image.width, 2 * image.height];
  pen.fillStyle = getComputedStyle(document.body).backgroundColor; pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(image, 0, 0, canvas.width, canvas.height);
  const file = document.createElement('a');
  file.href = canvas.toDataURL('image/png'); file.download = 'question.png'; file.click();
});
// Options stay open for those who use them.
if (localStorage.sireOptions) document.querySelector('.sire-options')?.setAttribute('open', '');
document.addEventListener('toggle', event => {
  if (event.target.matches('.sire-options')) localStorage.sireOptions = event.target.open ? 'open' : '';
}, true);
// Pictures scroll; they are zoomed by buttons and by the wheel with Ctrl (a pinch), dragged, and their buttons take the return key.
(() => {
  const sides = svg => ['width', 'height'].map(side => Number(svg.getAttribute(side)));
  const fitting = svg => Math.min(1.4, svg.parentElement.clientWidth / sides(svg)[0], 0.78 * innerHeight / sides(svg)[1]);
  const resize = (svg, scale) => {
    const [width, height] = sides(svg).map(side => `${side * scale}px`);
    Object.assign(svg.style, {width, height, minWidth: 0, minHeight: 0, maxWidth: 'none', maxHeight: 'none'});
  };
  const zoom = (svg, factor, x, y) => {  // x, y: what stays where it is, else the middle of what is seen
    const pane = svg.parentElement, frame = pane.getBoundingClientRect(), before = svg.getScreenCTM(), fit = fitting(svg);
    const [left, top] = [x ?? frame.x + frame.width / 2, y ?? frame.y + frame.height / 2];
    resize(svg, factor ? Math.max(fit / 2, Math.min(12, before.a * factor)) : fit);
    const after = svg.getScreenCTM(), grown = after.a / before.a;
    pane.scrollBy((left - before.e) * grown + after.e - left, (top - before.f) * grown + after.f - top);
  };
  let held = null, moved = 0;
  document.addEventListener('wheel', event => {
    const svg = event.ctrlKey && event.target.closest('.picture svg');
    if (!svg) return;
    event.preventDefault();
    zoom(svg, Math.exp(-event.deltaY / 300), event.clientX, event.clientY);
  }, {passive: false});
  document.addEventListener('pointerdown', event => {  // a finger scrolls without help
    held = event.pointerType === 'mouse' ? event.target.closest('.picture svg') : null; moved = 0;
  });
  document.addEventListener('pointermove', event => {
    if (!held || !event.buttons) return;
    moved += Math.abs(event.movementX) + Math.abs(event.movementY);
    held.parentElement.scrollBy(-event.movementX, -event.movementY);
  });
  document.addEventListener('pointerup', () => { held = null; setTimeout(() => { moved = 0; }); });  // a click comes before
  document.addEventListener('dragstart', event => { if (event.target.closest('.picture svg')) event.preventDefault(); });
  document.addEventListener('click', event => {
    const button = event.target.closest('[data-zoom]');
    if (button) zoom(button.closest('.picture').querySelector('svg'), Number(button.dataset.zoom));
    if (moved > 4) { event.preventDefault(); event.stopPropagation(); }  // it was dragged, not clicked
  }, true);
  // The box whose neighbours are drawn stays where it is, and keeps the focus. A picture that was seen as a whole still
  // is, as far as its letters can be read.
  document.addEventListener('click', async event => {
    const button = event.target.closest('[data-expand]');
    if (!button) return;
    const svg = button.ownerSVGElement, pane = svg?.parentElement, scale = svg?.getScreenCTM().a;
    const before = button.getBoundingClientRect(), address = new URL(location);
    const isWhole = pane && pane.scrollWidth <= pane.clientWidth && pane.scrollHeight <= pane.clientHeight;
    address.hash = ''; address.searchParams.append('grow', button.dataset.expand);
    await draw(address);
    const again = [...document.querySelectorAll('[data-expand]')].find(other =>
      other.dataset.expand === button.dataset.expand && other.getClientRects().length);
    if (!again) return;
    if (again.ownerSVGElement) {
      const drawn = again.ownerSVGElement;
      resize(drawn, isWhole ? Math.max(Math.min(scale, fitting(drawn)), 1) : scale);
      const after = again.getBoundingClientRect();
      drawn.parentElement.scrollBy(after.x - before.x, after.y - before.y);
      window.scrollBy(0, again.getBoundingClientRect().y - before.y);
    }
    again.focus({preventScroll: true});
  });
  document.addEventListener('keydown', event => {
    const button = event.target.closest('[data-expand]');
    if (!button || (event.key !== 'Enter' && event.key !== ' ')) return;
    event.preventDefault();
    button.dispatchEvent(new MouseEvent('click', {bubbles: true}));
  });
})();
