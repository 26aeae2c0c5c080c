import { readFileSync } from 'node:fs';

/**
 * The page's script and style sheets, read from the folder of this file. A packaged executable contains their text
 * instead: see tools/build/bundle.ts.
 */
export const PAGE_SCRIPT: string = ['page-data.js', 'view.js', 'panel.js', 'search.js', 'page.js']
  .map((name) => withoutModuleSyntax(read(name)))
  .join('\n');

/** Style of the page around the drawing. */
export const PAGE_SHEET: string = read('page.css');

/** Style of the drawing, on the page and in an SVG file. */
export const DRAWING_SHEET: string = read('drawing.css');

function read(name: string): string {
  return readFileSync(new URL(name, import.meta.url), 'utf8');
}

/** Removes imports and exports: in the page all files form one script, in the order of their imports. */
function withoutModuleSyntax(source: string): string {
  return source.replace(/^import [^;]*;$/gm, '').replace(/^export (?=const|function)/gm, '');
}
