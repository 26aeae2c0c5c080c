import type { Graph, GraphPath } from './graph.ts';
import { FONTS, type Layout, planLayout, SIZES } from './plan-layout.ts';
import { findPathStops, pathLine, planStops } from './plan-path-line.ts';
import { wrapText } from './plan-text.ts';
import { renderDrawing } from './render-drawing.ts';
import { renderThemed } from './render-theme.ts';
import { element, escapeXml } from './render-xml.ts';

/** Height of title and legend, pixels. */
const HEAD = 74;
const LINE = 18;

/** Renders a drawing as one SVG file, readable on light and dark backgrounds, with the paths of `focus`. */
export function renderSvg(graph: Graph, focus: readonly GraphPath[], sheet: string): string {
  const layout = planLayout(graph);
  const notes = renderNotes(graph, layout.width, HEAD + layout.height);
  const height = HEAD + layout.height + notes.height;
  return `<?xml version="1.0" encoding="UTF-8"?>\n${element(
    'svg',
    {
      xmlns: 'http://www.w3.org/2000/svg',
      viewBox: `0 0 ${Math.ceil(layout.width)} ${Math.ceil(height)}`,
      width: Math.ceil(layout.width),
      height: Math.ceil(height),
      role: 'img',
      'aria-label': `${graph.title}: ${graph.subtitle}`,
    },
    [
      element('style', {}, escapeXml(renderThemed(sheet))),
      element('rect', { class: 'ground', x: 0, y: 0, width: layout.width, height }),
      renderHead(graph, focus, layout.width),
      element(
        'g',
        { transform: `translate(0 ${HEAD})` },
        renderDrawing(graph, layout, { isInteractive: false }) + renderPaths(graph, layout, focus),
      ),
      notes.markup,
    ].join('\n'),
  )}\n`;
}

/** Renders the lines of paths. The page draws its lines by the same function. */
function renderPaths(graph: Graph, layout: Layout, paths: readonly GraphPath[]): string {
  const stops = planStops(graph, layout);
  const lines = paths.flatMap((path, index) => {
    const refs = findPathStops(graph, path).flatMap(({ node, line }) => {
      const stop = stops.get(node);
      return stop === undefined ? [] : [{ stop, line }];
    });
    return refs.slice(1).map((to, at) => {
      const from = refs[at]?.stop ?? to.stop;
      const tip = to.line === 'ok' ? path.direction : to.line;
      return element('path', {
        class: `path ${path.direction} ${to.line}`,
        d: pathLine(from, to.stop, index % 2 === 0 ? -3 : 3),
        'marker-end': `url(#tip-${tip})`,
      });
    });
  });
  return element('g', { class: 'paths' }, `${lines.join('\n')} `);
}

function renderHead(graph: Graph, focus: readonly GraphPath[], width: number): string {
  const legend = [
    ...(focus.some(({ direction }) => direction === 'from-pod') ? [['path from-pod', 'from the Pod']] : []),
    ...(focus.some(({ direction }) => direction === 'to-pod') ? [['path to-pod', 'to the Pod']] : []),
    ['path broken', 'broken'],
    ['edge', 'leads to'],
  ] as const;
  const x = SIZES.margin;
  return [
    element('text', { class: 'heading', x, y: 34 }, escapeXml(graph.title)),
    element('text', { class: 'subheading', x, y: 56 }, escapeXml(graph.subtitle)),
    ...legend.map(([look = '', text = ''], index) => {
      const left = width - SIZES.margin - (legend.length - index) * 130;
      return (
        element('path', { class: look, d: `M${left} 34h28` }) +
        element('text', { class: 'legend-text', x: left + 36, y: 38 }, escapeXml(text))
      );
    }),
  ].join('\n');
}

/** Renders the findings below the drawing: what is wrong, why it matters and how to repair it. */
function renderNotes(graph: Graph, width: number, top: number): { readonly markup: string; readonly height: number } {
  const lines: { readonly cssClass: string; readonly text: string; readonly indent: number }[] = [];
  const addNote = (cssClass: string, text: string, indent: number): void => {
    const font = cssClass === 'mono' ? FONTS.text : FONTS.title;
    for (const line of wrapText(text, width - 2 * SIZES.margin - indent - 8, font))
      lines.push({ cssClass, text: line, indent });
  };
  for (const { severity, what, why, fix } of graph.findings) {
    if (severity === 'info') continue;
    addNote(severity === 'error' ? 'bad-text' : 'warn-text', `${severity === 'error' ? '✕' : '!'} ${what}`, 0);
    addNote('', why, 18);
    for (const step of fix) addNote('mono', `→ ${step}`, 18);
  }
  for (const { what, why, next } of graph.unknowns) addNote('subheading', `Not known: ${what}: ${why}. ${next}`, 0);
  const markup = lines.map(({ cssClass, text, indent }, index) =>
    element('text', { class: cssClass, x: SIZES.margin + indent, y: top + 8 + index * LINE }, escapeXml(text)),
  );
  return { markup: markup.join('\n'), height: lines.length === 0 ? 0 : lines.length * LINE + SIZES.margin };
}
