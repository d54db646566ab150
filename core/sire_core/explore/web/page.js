// Back and Forward show what their address asks for: pages push the address of every question, and load it again.
(() => {
  const address = () => location.pathname + location.search;
  let shown = address();
  window.sireGo = (target, title, again) => {  // again: in place of the address before
    const {pathname, search} = new URL(target, location);
    if (pathname + search !== shown) history[again ? 'replaceState' : 'pushState'](history.state, '', target);
    shown = pathname + search; document.title = title;
  };
  window.addEventListener('popstate', () => {  // not for a mere #hit
    if (address() !== shown) { leaves = true; location.reload(); }
  });
  // They also show the place that was read: what was drawn by scripts is not there yet when the browser scrolls.
  const place = history.state?.scroll;
  let leaves = false, waiting, found = !place;
  const note = () => {
    clearTimeout(waiting);
    if (found && !leaves) history.replaceState({...history.state, scroll: scrollY}, '');
  };
  document.addEventListener('scroll', () => { clearTimeout(waiting); waiting = setTimeout(note, 100); });
  document.addEventListener('click', note, true);
  if (found) return;
  const drawn = new MutationObserver(() => requestAnimationFrame(() => {
    if (found || document.documentElement.scrollHeight - innerHeight < place - 1) return;
    scrollTo(0, place); done();
  }));
  const done = () => { found = true; drawn.disconnect(); };
  drawn.observe(document, {childList: true, subtree: true, characterData: true});
  for (const moved of ['wheel', 'pointerdown', 'touchstart', 'keydown']) document.addEventListener(moved, done, {once: true});
})();
// What an address points to (`#more`) may be drawn after the page has loaded: the browser looks for it again then.
(() => {
  if (!location.hash || history.state?.scroll) return;
  const drawn = new MutationObserver(() => {
    if (!document.getElementById(decodeURIComponent(location.hash.slice(1)))) return;
    drawn.disconnect(); requestAnimationFrame(() => location.replace(location.hash));
  });
  drawn.observe(document, {childList: true, subtree: true});
})();
// What was asked for is drawn below the window: it is scrolled to and takes the focus.
window.sireShow = id => {
  const behavior = matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth';
  const show = () => {
    const element = document.getElementById(id);
    if (!element) return requestAnimationFrame(show);
    element.focus({preventScroll: true}); element.scrollIntoView({behavior, block: 'start'});
  };
  show();
};
// The first picture as PNG: all of it, twice as large, without buttons; the browser hands it over as a file.
window.sirePng = async style => {
  const shown = document.querySelector('.sire-page svg.sire'), svg = shown.cloneNode(true);
  const [width, height] = ['width', 'height'].map(side => Number(svg.getAttribute(side)));
  svg.querySelectorAll('.more').forEach(button => button.remove());
  svg.removeAttribute('style');
  const drawn = new XMLSerializer().serializeToString(svg).replace('>', `><style>${style}</style>`);
  const image = new Image(), canvas = document.createElement('canvas'), pen = canvas.getContext('2d');
  image.src = `data:image/svg+xml,${encodeURIComponent(drawn)}`; await image.decode();
  canvas.width = 2 * width; canvas.height = 2 * height;
  pen.fillStyle = getComputedStyle(shown.closest('.sire-page')).backgroundColor; pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(image, 0, 0, canvas.width, canvas.height);
  const file = document.createElement('a');
  file.href = canvas.toDataURL('image/png'); file.download = 'question.png'; file.click();
};
// Options stay open for those who use them.
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
  document.addEventListener('click', event => {
    const button = event.target.closest('[data-expand]');
    if (!button) return;
    const svg = button.ownerSVGElement, pane = svg?.parentElement, scale = svg?.getScreenCTM().a;
    const before = button.getBoundingClientRect();
    const isWhole = pane && pane.scrollWidth <= pane.clientWidth && pane.scrollHeight <= pane.clientHeight;
    const grown = new MutationObserver(() => {
      const again = [...document.querySelectorAll('[data-expand]')].find(other => other !== button &&
        other.dataset.expand === button.dataset.expand && other.getClientRects().length);
      if (!again || button.isConnected) return;
      grown.disconnect();
      if (again.ownerSVGElement) {
        const drawn = again.ownerSVGElement;
        resize(drawn, isWhole ? Math.max(Math.min(scale, fitting(drawn)), 1) : scale);
        const after = again.getBoundingClientRect();
        drawn.parentElement.scrollBy(after.x - before.x, after.y - before.y);
        window.scrollBy(0, again.getBoundingClientRect().y - before.y);
      }
      again.focus({preventScroll: true});
    });
    grown.observe(document.body, {childList: true, subtree: true});
  });
  document.addEventListener('keydown', event => {
    const button = event.target.closest('[data-expand]');
    if (!button || (event.key !== 'Enter' && event.key !== ' ')) return;
    event.preventDefault();
    button.dispatchEvent(new MouseEvent('click', {bubbles: true}));
  });
})();
