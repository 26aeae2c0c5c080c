import { readFileSync, writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { inspect } from 'node:util';
import type { Script } from './deed.ts';

/** Writes a script as JSON. Returns the name of the file. */
export function writeScript(script: Script): string {
  const path = `simulation-${script.seed}.json`;
  const actions = script.actions.map((action) => `    ${JSON.stringify(action)}`).join(',\n');
  const { seed, temper } = script;
  writeFileSync(
    path,
    `{\n  "seed": ${seed},\n  "temper": ${JSON.stringify(temper)},\n  "actions": [\n${actions}\n  ]\n}\n`,
  );
  return relative(process.cwd(), path);
}

/** Reads what was written so. */
export function readScript(path: string): Script {
  return JSON.parse(readFileSync(path, 'utf8'));
}

/** Renders a script as the lines of a story, to be kept in `stories/`. Pure. */
export function renderStory({ seed, temper, actions }: Script, title: string): readonly string[] {
  const { rates: _rates, ...kept } = temper;
  return [
    `export const seed${seed}: Story = scripted('${title.replaceAll("'", '’')}', {`,
    `  seed: ${seed},`,
    `  temper: ${lineOf(kept)},`,
    '  actions: [',
    ...actions.map((action) => `    ${lineOf(action)},`),
    '  ],',
    '});',
  ];
}

function lineOf(value: object): string {
  return inspect(value, { breakLength: Number.POSITIVE_INFINITY, compact: true, depth: 5, numericSeparator: true });
}
