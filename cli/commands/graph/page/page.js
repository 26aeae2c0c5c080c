/** What pointers, wheel and keys do; runs last. */
import { bands, byId, drawing, page, panel, results, search } from './page-data.js';
import { select } from './panel.js';
import { clearSearch, searchNow } from './search.js';
import { foldAll, foldBand, pan, placeBands, showAll, zoom } from './view.js';

function activate(target) {
  const box = target.closest('.node');
  if (box !== null) return select(byId.get(box.getAttribute('data-id')), { isSeen: true });
  const header = target.closest('.band-header[tabindex]');
  if (header === null) return undefined;
  const band = bands.find(({ element }) => element.contains(header));
  return foldBand(band, !band.isFolded);
}

const pointers = new Map();
let dragged = 0;
drawing.addEventListener('pointerdown', (event) => {
  pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  dragged = 0;
});
window.addEventListener('pointermove', (event) => {
  const from = pointers.get(event.pointerId);
  if (from === undefined) return;
  const to = { x: event.clientX, y: event.clientY };
  const [one, two] = pointers.values();
  if (two === undefined) {
    dragged += Math.abs(to.x - from.x) + Math.abs(to.y - from.y);
    if (dragged > 4) {
      drawing.classList.add('is-dragged');
      pan(to.x - from.x, to.y - from.y);
    }
    pointers.set(event.pointerId, to);
    return;
  }
  const apart = () => Math.hypot(one.x - two.x, one.y - two.y);
  const before = apart();
  Object.assign(from, to);
  dragged = 5;
  const { left, top } = drawing.getBoundingClientRect();
  zoom(apart() / (before || 1), { x: (one.x + two.x) / 2 - left, y: (one.y + two.y) / 2 - top });
});
function letGo(event) {
  pointers.delete(event.pointerId);
  drawing.classList.remove('is-dragged');
}
window.addEventListener('pointerup', letGo);
window.addEventListener('pointercancel', letGo);
drawing.addEventListener('click', (event) => {
  if (dragged <= 4) activate(event.target);
});
drawing.addEventListener(
  'wheel',
  (event) => {
    event.preventDefault();
    const { left, top } = drawing.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY * (event.deltaMode === 0 ? 0.0016 : 0.05)), {
      x: event.clientX - left,
      y: event.clientY - top,
    });
  },
  { passive: false },
);
drawing.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' && event.key !== ' ') return;
  event.preventDefault();
  activate(event.target);
});

const STEP = 80;
const KEYS = {
  '/': () => search.focus(),
  '+': () => zoom(1.25),
  '=': () => zoom(1.25),
  '-': () => zoom(0.8),
  0: showAll,
  f: foldAll,
  Escape: () => (search.value === '' ? select(-1) : clearSearch()),
  ArrowLeft: () => pan(STEP, 0),
  ArrowRight: () => pan(-STEP, 0),
  ArrowUp: () => pan(0, STEP),
  ArrowDown: () => pan(0, -STEP),
};
document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target === search || event.composedPath().includes(panel))
    return;
  const act = KEYS[event.key];
  if (act === undefined) return;
  event.preventDefault();
  act();
});
search.addEventListener('input', searchNow);
search.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') {
    clearSearch();
    search.blur();
  }
  if (event.key === 'Enter') results.querySelector('button')?.click();
  if (event.key === 'ArrowDown') {
    event.preventDefault();
    results.querySelector('button')?.focus();
  }
});
results.addEventListener('keydown', (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step === undefined) return;
  event.preventDefault();
  // The drawing would pan.
  event.stopPropagation();
  const buttons = [...results.querySelectorAll('button')];
  const here = buttons.indexOf(/** @type {HTMLButtonElement} */ (event.target));
  (buttons[here + step] ?? search).focus();
});
document.getElementById('zoom-in').addEventListener('click', () => zoom(1.25));
document.getElementById('zoom-out').addEventListener('click', () => zoom(0.8));
document.getElementById('fit').addEventListener('click', showAll);
document.getElementById('fold').addEventListener('click', foldAll);
window.addEventListener('beforeprint', showAll);

placeBands();
showAll();
select(page.focus === null ? -1 : (byId.get(page.focus) ?? -1));
