import { closeSync, globSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openPinoLogger } from '../../../runtime/pino-logger.ts';
import { isObject, type JsonObject } from '../../../sim/support/netns.ts';
import { productSources } from '../../support/product-sources.ts';
import { createTempDir } from '../../support/temp-dir.ts';

const DOCS = join(import.meta.dirname, '..', '..', '..', 'docs');

/** Lists the log messages that the docs search for, and those of before, with the fields beside each, and what every line has. */
export function recordLogs(recorded: readonly string[]): object {
  const pages = globSync('**/*.md', { cwd: DOCS }).map((path) => readFileSync(join(DOCS, path), 'utf8'));
  const named = pages.flatMap((text) =>
    [...text.matchAll(/(?:logs? [^`]*|: `)grep (?:-i )?'([^']+)'/g)].map(([, one = '']) => one),
  );
  return logsOf([...new Set([...named, ...recorded])].sort());
}

/** Returns what the product has now of messages that were recorded. */
export function logsOf(messages: readonly string[]): object {
  const sources = productSources();
  const found = messages.filter((message) => sources.includes(message));
  return {
    messages: Object.fromEntries(found.map((message) => [message, fieldsBeside(message, sources)])),
    ...lineOf(),
  };
}

/** Lists the names of fields in the objects that stand behind a message in calls; what is spread into them is not seen. */
function fieldsBeside(message: string, sources: string): readonly string[] {
  // One word stands in more than messages.
  if (!message.includes(' ')) return [];
  const call = new RegExp(`['"\`][^'"\`\\n]*${message}[^'"\`\\n]*['"\`],\\s*\\{`);
  const objects = sources.split(call).slice(1).map(upToBrace);
  const names = objects.flatMap((text) => partsOf(text)).flatMap((part) => /^\s*(\w+)/.exec(part)?.slice(1) ?? []);
  return [...new Set(names)].sort();
}

function upToBrace(text: string): string {
  let depth = 1;
  for (let at = 0; at < text.length; at++) {
    if ('{[('.includes(text[at] ?? '')) depth++;
    if ('}])'.includes(text[at] ?? '') && --depth === 0) return text.slice(0, at);
  }
  return '';
}

/** Parts a text by the commas that are in no brackets of their own. */
function partsOf(text: string): readonly string[] {
  const parts = [''];
  let depth = 0;
  for (const character of text) {
    if ('{[('.includes(character)) depth++;
    if ('}])'.includes(character)) depth--;
    if (character === ',' && depth === 0) parts.push('');
    else parts[parts.length - 1] += character;
  }
  return parts;
}

/** Writes a line with an error in it and lists the names in both. */
function lineOf(): { readonly line: readonly string[]; readonly error: readonly string[] } {
  const dir = createTempDir('frozen');
  try {
    const fd = openSync(dir.join('log'), 'w');
    openPinoLogger('info', fd).warn('m', {
      error: Object.assign(new Error('e', { cause: new Error('c') }), { code: 'C' }),
    });
    closeSync(fd);
    const line = JSON.parse(readFileSync(dir.join('log'), 'utf8')) as JsonObject;
    const { error } = line;
    return { line: Object.keys(line).sort(), error: Object.keys(isObject(error) ? error : {}).sort() };
  } finally {
    dir.close();
  }
}
