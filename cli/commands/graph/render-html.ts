import { createHash } from 'node:crypto';
import { jsonText } from '../../output/render-json.ts';
import type { Graph } from './graph.ts';
import { planLayout, SIZES } from './plan-layout.ts';
import { findPathStops, pathLine, planStops } from './plan-path-line.ts';
import { KIND_NAMES, renderDrawing } from './render-drawing.ts';
import { renderThemed } from './render-theme.ts';
import { element, escapeXml } from './render-xml.ts';

/** Sources of the page, as read from its folder. */
type PageSources = { readonly script: string; readonly pageSheet: string; readonly drawingSheet: string };

/** From this number of Pods on, their groups are folded when the page opens. */
const FOLDED_FROM = 60;

/**
 * Renders a drawing as one HTML page that works from a file: pan, zoom, search, fold, and open boxes.
 *
 * Other programs and users choose the names on a node. So names are escaped in the markup and stay text in the script,
 * and the page's security policy runs and loads only what the page contains.
 */
export function renderHtml(graph: Graph, focus: string | undefined, sources: PageSources): string {
  const style = `${renderThemed(sources.pageSheet)}${renderThemed(sources.drawingSheet)}`;
  // The page draws lines by the same function as the SVG.
  const script = `'use strict';\nconst pathLine = ${pathLine.toString()};\n${sources.script}`;
  const policy = [
    "default-src 'none'",
    `script-src '${sourceHash(script)}'`,
    `style-src '${sourceHash(style)}'`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
  return [
    '<!doctype html>',
    '<html lang="en">',
    '<head>',
    '<meta charset="utf-8">',
    `<meta http-equiv="Content-Security-Policy" content="${policy}">`,
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="referrer" content="no-referrer">',
    `<title>${escapeXml(`${graph.title} · tke-eni graph`)}</title>`,
    `<style>${style}</style>`,
    '</head>',
    '<body>',
    renderBody(graph),
    `<script type="application/json" id="graph">${dataText(graph, focus)}</script>`,
    `<script>${script}</script>`,
    '</body>',
    '</html>',
    '',
  ].join('\n');
}

function renderBody(graph: Graph): string {
  const layout = planLayout(graph);
  const button = (id: string, label: string, text: string) =>
    `<button type="button" id="${id}" aria-label="${label}" title="${label}">${text}</button>`;
  return [
    '<header>',
    `<div class="name"><h1>${escapeXml(graph.title)}</h1><p>${escapeXml(graph.subtitle)}</p></div>`,
    '<div class="search" role="search"><input id="search" type="search" autocomplete="off" spellcheck="false" placeholder="Search: Pod, address, interface, rule  ( / )" aria-label="Search the node" aria-controls="results"><ol id="results" hidden></ol></div>',
    '<div class="tools" role="toolbar" aria-label="View">',
    button('zoom-out', 'Zoom out ( - )', '−'),
    button('zoom-in', 'Zoom in ( + )', '+'),
    button('fit', 'Show all ( 0 )', 'Fit'),
    button('fold', 'Fold or unfold all Pods ( f )', 'Fold'),
    '</div>',
    '<ul class="legend" aria-label="Lines"><li class="from-pod">from the Pod</li><li class="to-pod">to the Pod</li><li class="broken">broken</li><li class="after">not reached</li></ul>',
    '</header>',
    '<main>',
    '<div id="stage">',
    element(
      'svg',
      { id: 'drawing', role: 'group', 'aria-label': `Drawing of ${graph.title}` },
      `<g id="view">${renderDrawing(graph, layout, { isInteractive: true })}<g id="paths"></g></g>`,
    ),
    '</div>',
    '<aside id="panel" aria-label="Details" aria-live="polite" tabindex="-1"></aside>',
    '</main>',
  ].join('\n');
}

/** Renders the data of the page's script. `<` is escaped, so that no text can end the script element. */
function dataText(graph: Graph, focus: string | undefined): string {
  const layout = planLayout(graph);
  const stops = planStops(graph, layout);
  const index = new Map(graph.nodes.map(({ id }, at) => [id, at]));
  const pods = graph.nodes.filter(({ kind }) => kind === 'pod').length;
  const { texts, hops, paths } = pathData(graph, index);
  const page = {
    focus: focus ?? null,
    isFolded: pods >= FOLDED_FROM,
    size: {
      width: layout.width,
      height: layout.height,
      // Everything to the right of the Pods moves left by this much while all Pods are folded.
      foldsBy: Math.max(0, (layout.lanes.find(({ lane }) => lane === 'pods')?.w ?? 0) - SIZES.foldedWidth),
    },
    bands: layout.bands.map(({ group, frame, foldsBy, podCount, pods: grid }) => ({
      group: group.id,
      y: frame.y,
      w: frame.w,
      h: frame.h,
      podsWidth: grid?.w ?? 0,
      foldsBy,
      pods: podCount,
    })),
    kinds: KIND_NAMES,
    nodes: graph.nodes.map(({ id, kind, group, title, lines, state, facts, findings, podNode }) => ({
      id,
      kind,
      group,
      title,
      lines,
      state,
      facts,
      findings,
      podNode: podNode ?? null,
      stop: stops.get(id) ?? null,
    })),
    texts,
    hops,
    paths,
    findings: graph.findings.map((finding) => ({
      ...finding,
      subjects: graph.nodes.flatMap(({ findings }, at) =>
        findings.includes(graph.findings.indexOf(finding)) ? [at] : [],
      ),
    })),
    unknowns: graph.unknowns,
  };
  return jsonText(page).replace(UNSAFE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Matches what would end the element, and what a terminal that shows the page's source would interpret. */
const UNSAFE = /[<\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

type PathData = {
  readonly texts: readonly unknown[];
  readonly hops: readonly unknown[];
  readonly paths: readonly object[];
};

/**
 * Builds the paths for the page. Most of a page is evidence of hops, and most hops are on several paths: each hop and
 * each text is stored once.
 */
function pathData(graph: Graph, index: ReadonlyMap<string, number>): PathData {
  const at = (node: string | undefined) => (node === undefined ? -1 : (index.get(node) ?? -1));
  const texts = collect();
  const hops = collect();
  const paths = graph.paths.map((path) => ({
    pod: at(path.pod),
    direction: path.direction,
    from: path.from,
    to: path.to,
    steps: path.steps.map(({ node, title, details, verdict, finding }) =>
      hops.add([at(node), texts.add(title), details.map((line) => texts.add(line)), verdict, finding ?? -1]),
    ),
    stops: findPathStops(graph, path).map(({ node, line }) => [at(node), line]),
  }));
  return { texts: texts.all, hops: hops.all, paths };
}

/** Collects values; equal ones are stored once, in the order of their first use. */
function collect(): { readonly all: readonly unknown[]; add(value: unknown): number } {
  const all: unknown[] = [];
  const indexes = new Map<string, number>();
  return {
    all,
    add: (value) => {
      const key = JSON.stringify(value);
      const known = indexes.get(key);
      if (known !== undefined) return known;
      indexes.set(key, all.length);
      return all.push(value) - 1;
    },
  };
}

/** Returns the hash of a source for the security policy. @see CSP level 3, section 2.3.1 hash-source */
function sourceHash(source: string): string {
  return `sha256-${createHash('sha256').update(source).digest('base64')}`;
}
