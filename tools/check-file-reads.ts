/**
 * Checks that product code opens files to read them only in `runtime/read-regular-file.ts`, which refuses what blocks its
 * reader (a FIFO, a device) and files without a bound. Other files that may are in `tools/file-reads.json`, with the number
 * of their reads and why they do no harm. Prints every violation and exits 1; prints one line and exits 0 when there is none.
 */
import { globSync, readFileSync } from 'node:fs';
import { type SyntaxNode, syntaxNodes } from './parse-source.ts';

/** Where a file opens files by itself. */
type FileReadUse = {
  /** Places that open a file. */
  readonly reads: number;
  /** Which files; why they neither block nor have any size. */
  readonly why: string;
};

/** What of `node:fs` and `node:fs/promises` opens a file for reading, or may. */
const READERS = new Set([
  ...['readFile', 'readFileSync', 'open', 'openSync', 'openAsBlob', 'createReadStream', 'ReadStream'],
  ...['copyFile', 'copyFileSync', 'cp', 'cpSync', 'promises'],
]);
const FS = /^(?:node:)?fs(?:\/promises)?$/;

/** Lists the lines of a source that open a file, or take all of `node:fs` at once, from 1; a line for each place. Pure. */
export function findFileReads(text: string): readonly number[] {
  if (!/['"](?:node:)?fs(?:\/promises)?['"]/.test(text)) return [];
  const nodes = syntaxNodes(text);
  const readers = new Set<string>();
  const places: SyntaxNode[] = [];
  for (const node of nodes) {
    if (isRead(node, 'ImportDeclaration', 'ExportNamedDeclaration', 'ExportAllDeclaration', 'ImportExpression')) {
      const names = node.type === 'ImportDeclaration' ? importedReaders(node) : undefined;
      if (names === undefined) places.push(node);
      else for (const name of names) readers.add(name);
    }
    const isRequire = node.type === 'CallExpression' && /^(?:require|getBuiltinModule)$/.test(calleeName(node));
    if (isRequire && FS.test(String((node['arguments'] as { value?: unknown }[])[0]?.value))) places.push(node);
  }
  places.push(...nodes.filter((node) => node.type === 'Identifier' && readers.has(String(node['name']))));
  return places.map((node) => node.loc?.start.line ?? 0).sort((a, b) => a - b);
}

function isRead(node: SyntaxNode, ...types: readonly string[]): boolean {
  const source = node['source'] as { readonly value?: unknown } | null | undefined;
  return types.includes(node.type) && FS.test(String(source?.value));
}

/** Local names of the readers that a declaration imports; undefined when it imports all of the module. */
function importedReaders(node: SyntaxNode): readonly string[] | undefined {
  type Specifier = {
    readonly type: string;
    readonly imported?: { readonly name: string };
    readonly local: { name: string };
  };
  const specifiers = node['specifiers'] as readonly Specifier[];
  if (specifiers.some(({ type }) => type !== 'ImportSpecifier')) return undefined;
  return specifiers.filter(({ imported }) => READERS.has(imported?.name ?? '')).map(({ local }) => local.name);
}

function calleeName(node: SyntaxNode): string {
  const callee = node['callee'] as { readonly name?: string; readonly property?: { readonly name?: string } };
  return callee.name ?? callee.property?.name ?? '';
}

/** Compares the sources with the table: a read without an entry, another number, an entry without a read. Pure. */
export function checkFileReads(
  sources: readonly { readonly path: string; readonly text: string }[],
  table: Readonly<Record<string, FileReadUse>>,
): readonly string[] {
  const found = new Map(sources.map(({ path, text }) => [path, findFileReads(text)]));
  const wrong = [...found].flatMap(([path, lines]) => {
    const wanted = table[path]?.reads ?? 0;
    if (lines.length === wanted) return [];
    const where = lines.length === 0 ? '' : ` (lines ${lines.join(', ')})`;
    return [
      `${path}: opens files in ${lines.length} places${where}, ${wanted} in tools/file-reads.json; ` +
        'use readRegularText, or write there why these files neither block nor have any size',
    ];
  });
  const gone = Object.keys(table).filter((path) => !found.has(path));
  const mute = Object.entries(table).filter(([, { why }]) => why.trim().length < MIN_WHY);
  return [
    ...wrong,
    ...gone.map((path) => `tools/file-reads.json: there is no ${path}`),
    ...mute.map(([path]) => `tools/file-reads.json: ${path} needs a reason`),
  ];
}

/** A reason of fewer characters is none. */
const MIN_WHY = 20;

if (import.meta.main) {
  const outside = ['node_modules/**', 'dist/**', 'test/**', 'sim/**', 'bench/**', 'tools/**', 'examples/**', '*.ts'];
  const paths = globSync('**/*.ts', { exclude: outside }).sort();
  const sources = paths.map((path) => ({ path, text: readFileSync(path, 'utf8') }));
  const table = JSON.parse(readFileSync('tools/file-reads.json', 'utf8')) as Readonly<Record<string, FileReadUse>>;
  const violations = checkFileReads(sources, table);
  for (const violation of violations) console.error(violation);
  console.error(`file reads: ${paths.length} files, ${violations.length} violations`);
  process.exitCode = violations.length === 0 ? 0 : 1;
}
