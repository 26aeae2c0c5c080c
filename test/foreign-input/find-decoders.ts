import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A function of the product that takes foreign input, found in its source. */
export type FoundDecoder = {
  /** Path below the root of the repository. */
  readonly file: string;
  readonly name: string;
  /** `decoder`: takes value, path, faults; `function`: takes the input first; `text`: so, and it is a text. */
  readonly form: 'decoder' | 'function' | 'text';
};

const FOLDERS = [
  'agent',
  'cli',
  'cloud',
  'cloud-controller-manager',
  'cni-plugins',
  'crd',
  'dataplane',
  'ipamd',
  'kube',
  'netlink',
  'runtime',
  'scheduler',
  'webhook',
] as const;

const DECODER = /^export const (\w+)(?:: Decoder<| = (?:record|resourceOf|list)\()/gm;
/** A function that is called decode, read, parse or answer and whose first parameter is a value of unknown shape, bytes or a text. */
const FUNCTION =
  /^export (?:async )?(?:function|const) ((?:decode|read|parse|answer)\w+)(?:<[^(]*>)?(?: = )?\(\s*(?:\{[^}]*\}|\{?\s*(?!\w*(?:[pP]ath|[dD]ir|[rR]oot|[fF]older|role)\b)\w+\??): (unknown|string|KubeObject|Buffer|Uint8Array|Shape|Readonly<Record<string, unknown>>)(?!\w)/gm;

/**
 * Left out: the YAML parser takes a kilobyte for each item. It reads files of the operator alone: settings, kubeconfig,
 * a supply file.
 */
const EXCEPT: readonly string[] = ['decodeYaml'];

/**
 * Finds what is exported by the product and takes foreign input, by its signature. A program's start (`main.ts`) is left
 * out.
 * @param root the root of the repository
 */
export function findDecoders(root: string): readonly FoundDecoder[] {
  return FOLDERS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts') && !path.endsWith('main.ts'))
      .flatMap((path) => decodersOf(root, join(folder, path))),
  );
}

function decodersOf(root: string, file: string): readonly FoundDecoder[] {
  const source = readFileSync(join(root, file), 'utf8');
  const decoders = [...source.matchAll(DECODER)].map(([, name = '']) => ({ file, name, form: 'decoder' as const }));
  const functions = [...source.matchAll(FUNCTION)].map(([, name = '', type]) => {
    return { file, name, form: type === 'string' ? ('text' as const) : ('function' as const) };
  });
  return [...decoders, ...functions].filter(({ name }) => !EXCEPT.includes(name));
}
