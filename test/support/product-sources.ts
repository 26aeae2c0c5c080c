import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..');
/** Folders that have no part in an executable. */
const NO_PRODUCT = ['node_modules', 'dist', 'sim', 'test', 'bench', 'examples', 'tools', 'docs', 'conf'];

/** Returns the text of all product sources, one file after the other. */
export function productSources(): string {
  const paths = globSync('*/**/*.ts', { cwd: ROOT, exclude: NO_PRODUCT.map((folder) => `${folder}/**`) });
  return paths.map((path) => readFileSync(join(ROOT, path), 'utf8')).join('\n');
}
