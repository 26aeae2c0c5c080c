import { type Document, isCollection, isNode, isScalar, LineCounter, parseDocument } from 'yaml';
import { ConfigError, type Decoder, type Fault, Faults, MAX_FAULTS } from '../decode.ts';

/** Largest file. For comparison: a node with 1,000 addresses takes 150 kB. */
const MAX_BYTES = 4 * 1024 * 1024;

/**
 * Parses a YAML text and decodes it.
 * @param source its file name, for errors.
 * @throws ConfigError with every fault and the line of each.
 */
export function decodeYaml<T>(content: string, source: string, decoder: Decoder<T>): T {
  if (content.length > MAX_BYTES) {
    throw new ConfigError(source, [{ path: '', expected: `at most ${MAX_BYTES} bytes`, got: `${content.length}` }]);
  }
  const lines = new LineCounter();
  const document = parseDocument(content, { lineCounter: lines, uniqueKeys: true, prettyErrors: false });
  if (document.errors.length > 0) {
    const faults = document.errors.slice(0, MAX_FAULTS).map((error): Fault => {
      const { line, col } = lines.linePos(error.pos[0]);
      return { path: `line ${line}, column ${col}`, expected: 'valid YAML', got: error.message };
    });
    throw new ConfigError(source, faults, document.errors.length);
  }
  const faults = new Faults();
  const decoded = decoder(toValue(document, source), '', faults);
  if (faults.list.length > 0 || decoded === undefined) {
    throw new ConfigError(
      source,
      faults.list.map((fault) => ({ ...fault, path: withLine(fault.path, document, lines) })),
      faults.count,
    );
  }
  return decoded;
}

function toValue(document: Document, source: string): unknown {
  try {
    return document.toJS({ maxAliasCount: 100 });
  } catch (error) {
    // Aliases that multiply without limit, or that refer to nothing.
    throw new ConfigError(source, [{ path: '', expected: 'valid YAML', got: String(error) }]);
  }
}

/** Adds the line of the field to a path, or the line of the nearest parent that exists. */
function withLine(path: string, document: Document, lines: LineCounter): string {
  const keys = [...path.matchAll(/[^.[\]]+/g)].map(([key]) => (/^\d+$/.test(key) ? Number(key) : key));
  for (let depth = keys.length; depth > 0; depth--) {
    const node = document.getIn(keys.slice(0, depth), true);
    const range = isNode(node) && (isScalar(node) || isCollection(node)) && node.range;
    if (range) return `${path} (line ${lines.linePos(range[0]).line})`;
  }
  return path;
}
