/** What is selected, and all that is known of it. */
import { bandOf, boxes, byId, page, panel } from './page-data.js';
import { drawPaths, foldBand, show, shown, stopNow } from './view.js';

const SHOWN_PODS = 60;
const SIGNS = { ok: '✓', broken: '✕', warning: '!', unknown: '?' };
const VERDICTS = { ok: 'in order', broken: 'broken', warning: 'warning', unknown: 'not known' };

let selected = -1;

function pathsOf(pod) {
  return page.paths.filter((path) => path.pod === pod);
}

/** The first way out and the first way in; a broken one before others. */
function mainPaths(pod) {
  const isBroken = (path) => path.steps.some(({ verdict }) => verdict === 'broken');
  return ['from-pod', 'to-pod'].flatMap((direction) => {
    const paths = pathsOf(pod).filter((path) => path.direction === direction);
    return paths.find(isBroken) ?? paths[0] ?? [];
  });
}

/** Selects a box, shows its Pod's paths and opens it; -1 goes back to the node. */
export function select(index, { isSeen = false } = {}) {
  boxes[selected]?.classList.remove('is-selected');
  selected = index;
  const node = page.nodes[index];
  const pod = node?.kind === 'veth' ? byId.get(node.podNode) : index;
  shown.paths = node === undefined ? [] : mainPaths(pod);
  if (node === undefined) {
    drawPaths();
    openOverview();
    return;
  }
  const band = bandOf(node);
  if (band.isFolded && (node.kind === 'pod' || node.kind === 'veth')) foldBand(band, false);
  else drawPaths();
  boxes[index]?.classList.add('is-selected');
  openNode(pod);
  if (!isSeen) showSelected(index);
}

/** Brings the selected box and its paths into view. */
function showSelected(index) {
  const on = [index, ...shown.paths.flatMap((path) => path.stops.map(({ node }) => node))];
  const stops = on.flatMap((node) => (page.nodes[node]?.stop ? [stopNow(page.nodes[node])] : []));
  if (stops.length === 0) return;
  const top = Math.min(...stops.map(({ y }) => y)) - 50;
  const right = Math.max(...stops.map(({ x, w }) => x + w)) + 40;
  const bottom = Math.max(...stops.map(({ y, h }) => y + h)) + 50;
  // From the left edge on: there the bands have their names.
  show({ x: 0, y: top, w: right, h: bottom - top }, 1.3);
}

/** Makes an element; strings among its children become text. */
export function make(name, words, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(words)) {
    if (key === 'onclick') made.addEventListener('click', value);
    else made.setAttribute(key, value);
  }
  made.append(...children.flat());
  return made;
}

function nodeLink(index, text) {
  const node = page.nodes[index];
  if (node === undefined) return text;
  return make('button', { type: 'button', class: 'link', onclick: () => select(index) }, text ?? node.title);
}

function findingCard(finding) {
  return make(
    'div',
    { class: `finding ${finding.severity}` },
    make('p', { class: 'what' }, `${{ error: '✕ ', warning: '! ', info: '' }[finding.severity]}${finding.what}`),
    make('p', { class: 'why' }, finding.why),
    finding.fix.length === 0 ? [] : [make('p', {}, 'Cure:'), ...finding.fix.map((step) => make('code', {}, step))],
    finding.subjects.length === 0 || finding.subjects.length > 8
      ? []
      : make(
          'p',
          {},
          'Concerns: ',
          ...finding.subjects.flatMap((index, at) => [at === 0 ? '' : ', ', nodeLink(index)]),
        ),
  );
}

function openOverview() {
  const counts = { error: 0, warning: 0, info: 0 };
  for (const { severity } of page.findings) counts[severity] += 1;
  const verdict =
    counts.error + counts.warning === 0
      ? 'Nothing wrong was found.'
      : `${counts.error} broken, ${counts.warning} to look at.`;
  panel.replaceChildren(
    make('h2', {}, 'What is wrong'),
    make('p', {}, verdict),
    ...page.findings.map(findingCard),
    ...page.unknowns.map(({ what, why, next }) =>
      make('p', {}, `Not known: ${what}: ${why}. `, make('code', {}, next)),
    ),
    make('h3', {}, 'How to read this'),
    make(
      'p',
      {},
      'From left to right: what a packet of a Pod meets on its way to the VPC. Select a Pod to see its path out and in, a band’s title to fold its Pods.',
    ),
    make(
      'p',
      {},
      ...keys([
        ['/', 'search'],
        ['+', ''],
        ['-', 'zoom'],
        ['0', 'show all'],
        ['f', 'fold'],
        ['Esc', 'back'],
      ]),
    ),
  );
}

function keys(pairs) {
  return pairs.flatMap(([key, does]) => [make('kbd', {}, key), ` ${does}${does === '' ? '' : '  '}`]);
}

function hopItem(step, isAfter) {
  const finding = page.findings[step.finding];
  return make(
    'li',
    { class: `hop ${isAfter ? 'after' : step.verdict}` },
    make('span', { class: 'sign', role: 'img', 'aria-label': VERDICTS[step.verdict] }, SIGNS[step.verdict]),
    make(
      'div',
      {},
      nodeLinkQuiet(step.node, step.title),
      finding === undefined ? [] : findingCard(finding),
      step.details.length === 0
        ? []
        : make(
            'details',
            {},
            make('summary', {}, 'evidence'),
            make('ul', { class: 'details' }, ...step.details.map((line) => make('li', {}, line))),
          ),
    ),
  );
}

/** Shows a box without leaving the Pod whose path goes through it. */
function nodeLinkQuiet(index, text) {
  const node = page.nodes[index];
  if (node?.stop === undefined || node.stop === null) return make('span', {}, text);
  return make('button', { type: 'button', class: 'link', onclick: () => show(around(stopNow(node)), 1.4) }, text);
}

function around({ x, y, w, h }) {
  return { x: x - 260, y: y - 160, w: w + 520, h: h + 320 };
}

function pathSection(path) {
  const brokenAt = path.steps.findIndex(({ verdict }) => verdict === 'broken');
  const isShown = shown.paths.includes(path);
  const verdict = brokenAt < 0 ? '' : ' — broken';
  const title = path.direction === 'from-pod' ? `Path out to ${path.to}` : `Path in from ${path.from}`;
  const toggle = make(
    'button',
    {
      type: 'button',
      class: 'choice',
      'aria-pressed': String(isShown),
      onclick: () => {
        shown.paths = isShown
          ? shown.paths.filter((one) => one !== path)
          : [...shown.paths.filter(({ direction }) => direction !== path.direction), path];
        drawPaths();
        openNode(path.pod);
      },
    },
    isShown ? 'Hide' : 'Draw',
  );
  return make(
    'section',
    { class: `path ${path.direction}` },
    make('h3', {}, `${title}${verdict} `, toggle),
    make('ol', {}, ...path.steps.map((step, index) => hopItem(step, brokenAt >= 0 && index > brokenAt))),
  );
}

function openNode(index) {
  const node = page.nodes[index];
  const veth = node.kind === 'pod' ? page.nodes.find(({ podNode }) => podNode === node.id) : undefined;
  const paths = pathsOf(index);
  const inPaths = new Set(paths.flatMap(({ steps }) => steps.map(({ finding }) => finding)));
  const through = new Set(
    page.paths.filter(({ stops }) => stops.some((stop) => stop.node === index)).map(({ pod }) => pod),
  );
  through.delete(index);
  const pods = [...through].slice(0, SHOWN_PODS);
  panel.replaceChildren(
    make('h2', {}, node.title),
    make('p', { class: 'kind' }, `${page.kinds[node.kind]}${node.state === 'ok' ? '' : ` · ${node.state}`}`),
    make('ul', { class: 'rows' }, ...node.lines.map((line) => make('li', {}, line))),
    ...node.findings.filter((at) => !inPaths.has(at)).map((at) => findingCard(page.findings[at])),
    ...paths.map(pathSection),
    ...[...node.facts, ...(veth?.facts ?? [])].flatMap(({ title, rows }) => [
      make('h3', {}, title),
      make('ul', { class: 'rows' }, ...rows.map((row) => make('li', {}, row))),
    ]),
    ...(pods.length === 0
      ? []
      : [
          make('h3', {}, `Pods whose path goes through it: ${through.size}`),
          make('ul', {}, ...pods.map((pod) => make('li', {}, nodeLink(pod)))),
        ]),
    make('p', {}, make('button', { type: 'button', onclick: () => select(-1) }, 'Back to the node')),
  );
  panel.scrollTop = 0;
}
