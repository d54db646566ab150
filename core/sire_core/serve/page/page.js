// Back and Forward show what their address asks for: pages push the address of every question, and load it again.
(() => {
  const address = () => location.pathname + location.search;
  let shown = address();
  window.sireGo = (target, title) => {
    const {pathname, search} = new URL(target, location);
    if (pathname + search !== shown) history.pushState(history.state, '', target);
    shown = pathname + search; document.title = title;
  };
  window.addEventListener('popstate', () => { if (address() !== shown) location.reload(); });  // not for a mere #hit
})();
// What an address points to (`#more`) may be drawn after the page has loaded: the browser looks for it again then.
(() => {
  if (!location.hash) return;
  const drawn = new MutationObserver(() => {
    if (!document.getElementById(decodeURIComponent(location.hash.slice(1)))) return;
    drawn.disconnect(); requestAnimationFrame(() => location.replace(location.hash));
  });
  drawn.observe(document, {childList: true, subtree: true});
})();
// The first picture as PNG: all of it, twice as large, without buttons; the browser hands it over as a file.
window.sirePng = async style => {
  const shown = document.querySelector('.sire-page svg.sire'), svg = shown.cloneNode(true);
  const [width, height] = ['width', 'height'].map(side => Number(svg.getAttribute(side)));
  svg.querySelectorAll('.more').forEach(button => button.remove());
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`); svg.removeAttribute('style');
  const drawn = new XMLSerializer().serializeToString(svg).replace('>', `><style>${style}</style>`);
  const image = new Image(), canvas = document.createElement('canvas'), pen = canvas.getContext('2d');
  image.src = `data:image/svg+xml,${encodeURIComponent(drawn)}`; await image.decode();
  canvas.width = 2 * width; canvas.height = 2 * height;
  pen.fillStyle = getComputedStyle(shown).backgroundColor; pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(image, 0, 0, canvas.width, canvas.height);
  const file = document.createElement('a');
  file.href = canvas.toDataURL('image/png'); file.download = 'question.png'; file.click();
};
// Options stay open for those who use them.
document.addEventListener('toggle', event => {
  if (event.target.matches('.sire-options')) localStorage.sireOptions = event.target.open ? 'open' : '';
}, true);
// Pictures are zoomed by buttons and by the wheel with Ctrl (a pinch), dragged, and their buttons take the return key.
(() => {
  const box = svg => svg.viewBox.baseVal;
  const zoom = (svg, factor, x = 0.5, y = 0.5) => {
    const view = box(svg), [width, height] = [svg.width, svg.height].map(side => Number(side.baseVal.valueAsString));
    if (!factor) { svg.style.touchAction = ''; return svg.setAttribute('viewBox', `0 0 ${width} ${height}`); }
    const wide = Math.max(width / 12, Math.min(width * 2, view.width / factor)), high = wide * height / width;
    svg.style.touchAction = wide < width ? 'none' : '';  // what is seen in part is dragged by a finger, too
    svg.setAttribute('viewBox', `${view.x + (view.width - wide) * x} ${view.y + (view.height - high) * y} ${wide} ${high}`);
  };
  let held = null, moved = 0;
  document.addEventListener('wheel', event => {
    const svg = event.ctrlKey && event.target.closest('.picture svg');
    if (!svg) return;
    const shown = svg.getScreenCTM(), view = box(svg);
    event.preventDefault();
    zoom(svg, Math.exp(-event.deltaY / 300), ((event.clientX - shown.e) / shown.a - view.x) / view.width,
      ((event.clientY - shown.f) / shown.d - view.y) / view.height);
  }, {passive: false});
  document.addEventListener('pointerdown', event => {
    const svg = event.target.closest('.picture svg');
    held = svg && (event.pointerType === 'mouse' || svg.style.touchAction) ? svg : null; moved = 0;
  });
  document.addEventListener('pointermove', event => {
    if (!held || !event.buttons) return;
    const view = box(held), scale = 1 / held.getScreenCTM().a;
    moved += Math.abs(event.movementX) + Math.abs(event.movementY);
    held.setAttribute('viewBox', `${view.x - event.movementX * scale} ${view.y - event.movementY * scale} ${view.width} ${view.height}`);
  });
  document.addEventListener('pointerup', () => { held = null; setTimeout(() => { moved = 0; }); });  // a click comes before
  document.addEventListener('dragstart', event => { if (event.target.closest('.picture svg')) event.preventDefault(); });
  document.addEventListener('click', event => {
    const button = event.target.closest('[data-zoom]');
    if (button) zoom(button.closest('.picture').querySelector('svg'), Number(button.dataset.zoom));
    if (moved > 4) { event.preventDefault(); event.stopPropagation(); }  // it was dragged, not clicked
  }, true);
  // The box whose neighbours are drawn stays where it is, as large as it is.
  document.addEventListener('click', event => {
    const button = event.target.closest('[data-expand]');
    if (!button?.ownerSVGElement) return;
    const before = button.getBoundingClientRect(), scale = button.ownerSVGElement.getScreenCTM().a;
    const grown = new MutationObserver(() => {
      const again = [...document.querySelectorAll('[data-expand]')].find(other => other !== button && other.ownerSVGElement &&
        other.dataset.expand === button.dataset.expand && other.getClientRects().length);
      if (!again || button.isConnected) return;
      grown.disconnect();
      const svg = again.ownerSVGElement, frame = svg.getBoundingClientRect();
      const [wide, high] = [frame.width / scale, frame.height / scale], whole = svg.getScreenCTM(), after = again.getBoundingClientRect();
      const [x, y] = [(after.x - whole.e) / whole.a, (after.y - whole.f) / whole.d];  // in the units of the picture
      svg.setAttribute('viewBox', `${x - (before.x - frame.x) / scale} ${y - (before.y - frame.y) / scale} ${wide} ${high}`);
      if (wide < Number(svg.getAttribute('width'))) svg.style.touchAction = 'none';
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
