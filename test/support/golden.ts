import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';

/**
 * Asserts that a text is what the file beside the test holds. With TKE_GOLDEN=write the file is written instead: look at
 * the difference before you commit it.
 * @param from the test's import.meta.url
 */
export function matchesGolden(t: ExecutionContext, from: string, name: string, text: string): void {
  const path = fileURLToPath(new URL(`golden/${name}`, from));
  if (process.env['TKE_GOLDEN'] === 'write') {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  t.is(text, readFileSync(path, 'utf8'), `differs from ${path}`);
}
