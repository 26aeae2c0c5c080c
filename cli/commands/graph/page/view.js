/** Pan, zoom, fold, and the lines of paths. */
import { bandOf, bands, boxes, drawing, page, pathLayer, view } from './page-data.js';

const SVG = 'http://www.w3.org/2000/svg';
const LEAST = 0.05;
const MOST = 6;
/** Kept free around what is shown. */
const EDGE = 12;

/** One transform of the whole drawing. */
const place = { x: 0, y: 0, scale: 1 };

/** The paths that are drawn. */
export const shown = { paths: [] };

function move(next) {
  Object.assign(place, next);
  view.setAttribute('transform', `translate(${place.x} ${place.y}) scale(${place.scale})`);
}

export function pan(x, y) {
  move({ x: place.x + x, y: place.y + y });
}

/** Zooms about a point of the stage; the middle when none is said. */
export function zoom(factor, at) {
  const { width, height } = drawing.getBoundingClientRect();
  const point = at ?? { x: width / 2, y: height / 2 };
  const scale = Math.min(MOST, Math.max(LEAST, place.scale * factor));
  const by = scale / place.scale;
  move({ scale, x: point.x - (point.x - place.x) * by, y: point.y - (point.y - place.y) * by });
}

/** Shows a part of the drawing as large as it fits, but not larger than `most`. */
export function show(area, most) {
  const { width, height } = drawing.getBoundingClientRect();
  const scale = Math.max(LEAST, Math.min(most, (width - 2 * EDGE) / area.w, (height - 2 * EDGE) / area.h));
  const middle = height / 2 - (area.y + area.h / 2) * scale;
  // No empty room above the drawing where the area fits without.
  const fitsBelow = (area.y + area.h) * scale + EDGE <= height;
  move({ scale, x: width / 2 - (area.x + area.w / 2) * scale, y: fitsBelow ? Math.min(middle, EDGE) : middle });
}

export function showAll() {
  const last = bands.at(-1);
  const bottom =
    last === undefined ? page.size.height : last.y + last.h + last.shift - (last.isFolded ? last.foldsBy : 0) + 24;
  show({ x: 0, y: 0, w: page.size.width + sideShift(), h: bottom }, 1.4);
}

/** How far everything right of the Pods is moved: left, while all Pods are folded away. */
function sideShift() {
  const withPods = bands.filter(({ pods }) => pods > 0);
  return withPods.length > 0 && withPods.every(({ isFolded }) => isFolded) ? -page.size.foldsBy : 0;
}

/** Puts everything where it belongs with the bands that are folded now. */
export function placeBands() {
  const side = sideShift();
  let shift = 0;
  for (const band of bands) {
    band.shift = shift;
    band.element.setAttribute('transform', `translate(0 ${shift})`);
    band.element.classList.toggle('is-folded', band.isFolded);
    const shrunk = band.isFolded ? band.foldsBy : 0;
    const set = (selector, attribute, value) => band.element.querySelector(selector)?.setAttribute(attribute, value);
    set('.shared', 'transform', `translate(${side} ${-shrunk / 2})`);
    set('.folded', 'transform', `translate(0 ${-shrunk / 2})`);
    set('.folded .pods-frame', 'width', band.podsWidth + side);
    set('.band-frame', 'height', band.h - shrunk);
    set('.band-frame', 'width', band.w + side);
    set('.band-hit', 'width', band.w + side);
    set('.band-header[tabindex]', 'aria-expanded', String(!band.isFolded));
    shift -= shrunk;
  }
  for (const title of drawing.querySelectorAll('.lane-title')) {
    title.setAttribute('transform', `translate(${title.getAttribute('data-lane') === 'pods' ? 0 : side} 0)`);
  }
  drawPaths();
}

export function foldBand(band, isFolded) {
  band.isFolded = isFolded;
  placeBands();
}

export function foldAll() {
  const isFolded = bands.some((band) => band.pods > 0 && !band.isFolded);
  for (const band of bands) band.isFolded = isFolded && band.pods > 0;
  placeBands();
  showAll();
}

/** Where a box is now. */
export function stopNow(node) {
  const { shift, isFolded, foldsBy } = bandOf(node);
  const { stop } = node;
  const bandTop = stop.bandTop + shift;
  if (stop.isInGrid) return { ...stop, y: stop.y + shift, bandTop };
  const side = sideShift();
  return {
    ...stop,
    x: stop.x + side,
    y: stop.y + shift - (isFolded ? foldsBy / 2 : 0),
    gapLeft: stop.gapLeft + side,
    gapRight: stop.gapRight + side,
    bandTop,
  };
}

export function drawPaths() {
  pathLayer.replaceChildren();
  for (const box of boxes) box?.classList.remove('is-on-path');
  drawing.classList.toggle('is-tracing', shown.paths.length > 0);
  for (const path of shown.paths) {
    const stops = path.stops.filter(({ node }) => page.nodes[node]?.stop);
    for (const { node } of stops) boxes[node]?.classList.add('is-on-path');
    for (const [index, { node, line }] of stops.entries()) {
      const before = stops[index - 1];
      if (before !== undefined) pathLayer.append(pathPiece(path.direction, before.node, node, line));
    }
  }
}

function pathPiece(direction, from, to, line) {
  const piece = document.createElementNS(SVG, 'path');
  piece.setAttribute('class', `path ${direction} ${line}`);
  // `pathLine` is that of the renderer, which puts it before this script.
  piece.setAttribute(
    'd',
    pathLine(stopNow(page.nodes[from]), stopNow(page.nodes[to]), direction === 'from-pod' ? -3 : 3),
  );
  piece.setAttribute('marker-end', `url(#tip-${line === 'ok' ? direction : line})`);
  return piece;
}
